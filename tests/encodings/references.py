"""Every encoding by its equation, inside the model written out: an answer that no module of it had a part in.

The encodings of this book have their references here, apart from the package that is judged by them, each in
`REFERENCES` by its name. One that is added may bring its own, as `reference` of its class. What a reference
is given, and has to give, stands in `sepnb.encodings.reference`.

Shape letters: B batch, H heads, N tokens, d head width, n coordinates.
"""

import copy
import math

import torch
import torch.nn.functional as F
from torch import Tensor

from sepnb.encodings import Encoding, Site
from sepnb.encodings.reference import Layer, Reference, biased, product, scaled
from sepnb.encodings.sinusoidal import orthonormal
from sepnb.seqpe import SequentialPositionEncoder

from ..models.plain import F64, Plain

# --- at the input


def sinusoid(layer: Layer, width: int) -> Tensor:
    layout = layer.encoding.layout
    waves = width if layer.encoding.columns is None else layer.encoding.columns
    n_sines, period, copies = (waves + 1) // 2, layer.encoding.period, layer.encoding.copies
    at = layer.at.to(F64) if period is None else (layer.at - period * (layer.at // period)).to(F64)

    def column(c: int) -> Tensor:
        if c >= waves * copies:
            return torch.zeros_like(layer.at, dtype=F64)
        c %= waves
        m, even = (c // 2, c % 2 == 0) if layout == "interleaved" else (c % n_sines, c < n_sines)
        exponent = m / (waves / 2 - 1) if layout == "halves-endpoint" else 2 * m / waves
        angle = at / layer.encoding.base**exponent
        return (angle.sin() if even else angle.cos()) / copies**0.5

    found = [column(c) for c in range(width)]
    if (directions := layer.encoding.directions) is not None:
        axes = orthonormal(waves, directions)
        projected = [sum(found[c] * axes[c, k] for c in range(waves)) for k in range(directions)]
        found = projected + (width - directions) * [torch.zeros_like(layer.at, dtype=F64)]
    return torch.stack(found, dim=-1)


def row_of_the_table(layer: Layer, width: int) -> Tensor:
    return torch.stack([layer.leaf("table")[row] for row in layer.at])


# --- rotations


def turned(q: Tensor, k: Tensor, angles: list[Tensor], gains: list[Tensor | float], layout: str) -> Tensor:
    """Re sum_m g_m q_m conj(k_m) exp(J angle_m), unscaled, of so many first pairs; the other columns as they
    are. Angles and gains are `[B, 1, N, N]`, those of i - j."""
    width = 2 * len(angles)
    total = product(q[..., width:], k[..., width:])
    for m, (angle, gain) in enumerate(zip(angles, gains, strict=True)):
        a, b = (m, m + width // 2) if layout == "half" else (2 * m, 2 * m + 1)
        of_query, of_key = (torch.complex(x[..., a], x[..., b]) for x in (q, k))
        both = of_query[..., :, None] * of_key.conj()[..., None, :]
        total = total + gain * (both * torch.exp(1j * angle)).real
    return total


def rope(layer: Layer, q: Tensor, k: Tensor, u: Tensor) -> Tensor:
    encoding, d = layer.encoding, q.shape[-1]
    width = d if encoding.partial is None else round(encoding.partial * d)
    kept = width // 2 if encoding.p is None else round(encoding.p * width / 2)
    slower = 1.0 if encoding.extension is None else encoding.extension.factor
    angles = [
        layer.distance * (encoding.base ** (-2 * m / width) / slower if m < kept else 0.0)
        for m in range(width // 2)
    ]
    return turned(q, k, angles, [1.0] * len(angles), encoding.layout) / math.sqrt(d)


def xpos(layer: Layer, q: Tensor, k: Tensor, u: Tensor) -> Tensor:
    encoding, d, t = layer.encoding, q.shape[-1], layer.distance
    shares = [2 * m / d for m in range(d // 2)]
    angles = [t * encoding.base**-share for share in shares]
    gains = [((s + encoding.gamma) / (1 + encoding.gamma)) ** (t / encoding.scale_base) for s in shares]
    return turned(q, k, angles, gains, encoding.layout) / math.sqrt(d)


def axial_rope(layer: Layer, q: Tensor, k: Tensor, u: Tensor) -> Tensor:
    encoding, d = layer.encoding, q.shape[-1]
    each = d // 2 // encoding.dims
    apart = (layer.at[:, :, None] - layer.at[:, None, :]).to(F64)  # [B, N, N, n]
    angles = [
        apart[..., axis][:, None] * encoding.base ** (-2 * m / (d // encoding.dims))
        for axis in range(encoding.dims)
        for m in range(each)
    ]
    return turned(q, k, angles, [1.0] * len(angles), encoding.layout) / math.sqrt(d)


# --- terms of the score


def tupe(layer: Layer, q: Tensor, k: Tensor, u: Tensor) -> Tensor:
    """The maps of queries and keys, applied to the normalised sinusoid of each."""
    columns, heads = layer.leaf("terms.0.gain").shape[0], q.shape[1]
    angles = [layer.at.to(F64) / 10_000 ** (2 * (c // 2) / columns) for c in range(columns)]
    p = torch.stack([a.cos() if c % 2 else a.sin() for c, a in enumerate(angles)], dim=-1)
    centred = p - p.mean(-1, keepdim=True)
    p = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    p = p * layer.leaf("terms.0.gain") + layer.leaf("terms.0.bias")
    asked, keys = (p @ layer.leaf(f"terms.0.{name}.weight").T for name in ("query", "key"))
    of_positions = product(*(x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (asked, keys)))
    return (product(q, k) + of_positions) / math.sqrt(q.shape[-1])


def phase(layer: Layer, q: Tensor, k: Tensor, u: Tensor) -> Tensor:
    longest = layer.max_length if layer.encoding.longest is None else layer.encoding.longest
    waves, heads = layer.encoding.waves, q.shape[1]
    pairs = (u @ layer.leaf("coefficients.weight").T).unflatten(-1, (heads, waves, 2)).transpose(1, 2)
    total = product(q, k)
    for m in range(waves):
        w = 2 * math.pi / (4 * (longest / 4) ** (m / (waves - 1)))
        c = torch.complex(pairs[..., m, 0], pairs[..., m, 1])
        total = total + (c[..., None] * torch.exp(1j * w * layer.distance)).real
    return total / math.sqrt(q.shape[-1])


def forgetting(layer: Layer, q: Tensor, k: Tensor, u: Tensor) -> Tensor:
    """Gate by gate: what lies between key and query is multiplied, and its logarithm added."""
    gates = torch.sigmoid(u @ layer.leaf("gates.weight").T + layer.leaf("gates.bias")).transpose(1, 2)
    n, one = q.shape[2], torch.ones_like(gates[..., 0])
    kept = [[gates[..., j + 1 : i + 1].prod(-1) if j < i else one for j in range(n)] for i in range(n)]
    return scaled(q, k) + torch.stack([torch.stack(row, dim=-1) for row in kept], dim=-2).log()


def digit_strings(layer: Layer, width: int) -> Tensor:
    return torch.stack([layer.encoder.plain(row) for row in layer.at])


def seqpe(layer: Layer, q: Tensor, k: Tensor, u: Tensor) -> Tensor:
    encoding = layer.encoding
    index = layer.number if encoding.per_layer else 0
    embedded = torch.stack([layer.encoder.plain(row) for row in layer.at])
    p_q = embedded @ layer.leaf(f"queries.{index}.weight").T + layer.leaf(f"queries.{index}.bias")
    p_k = embedded @ layer.leaf(f"keys.{index}.weight").T
    if encoding.site == "multiply":
        p_k = p_k + layer.leaf(f"keys.{index}.bias")
    p_q, p_k = (x.unflatten(-1, (q.shape[1], -1)).transpose(1, 2) for x in (p_q, p_k))
    if encoding.site == "score":
        return (product(q, k) + encoding.factor * product(p_q, p_k)) / math.sqrt(q.shape[-1])
    return scaled(q + p_q, k + p_k) if encoding.site == "add" else scaled(q * p_q, k * p_k)


# --- biases


def slopes(heads: int) -> list[float]:
    """For heads that are no power of two, as many as there are of the next lower one, and odd ones of twice
    that list."""
    whole = 1 << heads.bit_length() - 1
    exponents = [8 * h / whole for h in range(1, whole + 1)]
    exponents += [8 * h / (2 * whole) for h in range(1, 2 * (heads - whole), 2)]
    return [2.0**-e for e in exponents]


def alibi(layer: Layer, heads: int) -> Tensor:
    return -torch.tensor(slopes(heads), dtype=F64)[:, None, None] * layer.distance.abs()


def t5_bucket(r: int, n_buckets: int, max_distance: int, bidirectional: bool) -> int:
    """The formula with logarithms; a margin of 1e-9 stands for exact arithmetic at the edges of buckets."""
    buckets, offset = n_buckets, 0
    if bidirectional:
        buckets //= 2
        offset = buckets if r > 0 else 0
    n = abs(r) if bidirectional else max(-r, 0)
    exact = buckets // 2
    if n < exact:
        return offset + n
    share = math.log(n / exact) / math.log(max_distance / exact)
    return offset + min(buckets - 1, exact + math.floor(share * (buckets - exact) + 1e-9))


def t5(layer: Layer, q: Tensor, k: Tensor, u: Tensor) -> Tensor:
    encoding, relative = layer.encoding, -layer.distance[:, 0].long()
    settings = encoding.n_buckets, encoding.max_distance, encoding.bidirectional
    of_pair = [t5_bucket(r, *settings) for r in relative.flatten().tolist()]
    bias = layer.leaf("table")[torch.tensor(of_pair)].unflatten(0, relative.shape).movedim(-1, 1)
    return (scaled(q, k) if encoding.scale is None else encoding.scale * product(q, k)) + bias


def kerple(layer: Layer, heads: int) -> Tensor:
    r1, raw = F.softplus(layer.leaf("raw_r1"))[:, None, None], layer.leaf("raw_r2")[:, None, None]
    t = layer.distance.abs()
    if layer.encoding.form == "logarithmic":
        return -r1 * torch.log(1 + F.softplus(raw) * t)
    return -r1 * torch.where(t == 0, 0.0, t.clamp(min=1) ** (2 * torch.sigmoid(raw)))


def sandwich(layer: Layer, heads: int) -> Tensor:
    encoding, t = layer.encoding, layer.distance.abs()
    waves = [
        torch.cos(t * encoding.base ** (-2 * m / encoding.width)) for m in range(1, encoding.width // 2 + 1)
    ]
    compression = torch.tensor([heads / (8 * h) for h in range(1, heads + 1)], dtype=F64)
    return (sum(waves) - encoding.width / 2) * compression[:, None, None]


def fire(layer: Layer, heads: int) -> Tensor:
    c, threshold = layer.leaf("c").abs(), (layer.leaf("multiplier") * layer.encoding.threshold).abs()
    longest = torch.maximum(threshold, layer.at.to(F64))[:, None, :, None]
    x = torch.log(c * layer.distance.clamp(min=0) + 1) / (torch.log(c * longest + 1) + 1e-6)
    (weights, shifts), out = layer.leaf("hidden"), layer.leaf("out")
    units = torch.relu(x[..., None] * weights + shifts)[:, 0]  # [B, N, N, width]
    return (units @ out[:, :-1].T + out[:, -1]).movedim(-1, 1)


# --- scores made otherwise


def shaw_vectors(layer: Layer, table: Tensor) -> Tensor:
    """`[B, H, N, N, d]`, H being 1 where the heads share the table."""
    clip = layer.encoding.clip
    return table[:, (-layer.distance[:, 0]).long().clamp(-clip, clip) + clip].transpose(0, 1)


def shaw(layer: Layer, q: Tensor, k: Tensor, u: Tensor) -> Tensor:
    keys = k[:, :, None] + shaw_vectors(layer, layer.leaf("pairs.table"))
    return (q[:, :, :, None] * keys).sum(-1) / math.sqrt(q.shape[-1])


def shaw_values(layer: Layer, weights: Tensor) -> Tensor:
    return (weights[..., None] * shaw_vectors(layer, layer.leaf("added.table"))).sum(-2)


def transformer_xl(layer: Layer, q: Tensor, k: Tensor, u: Tensor) -> Tensor:
    to_r, heads, d = layer.leaf("distances.weight"), q.shape[1], q.shape[-1]
    width = to_r.shape[1]
    angles = [layer.distance[:, 0] * layer.encoding.base ** (-2 * m / width) for m in range(width // 2)]
    waves = torch.stack([x.sin() for x in angles] + [x.cos() for x in angles], dim=-1)
    r = (waves @ to_r.T).unflatten(-1, (heads, d)).movedim(-2, 1)  # [B, H, N, N, d]
    by_content = product(q + layer.leaf("pairs.u")[:, None], k)
    return (by_content + ((q + layer.leaf("pairs.v")[:, None])[:, :, :, None] * r).sum(-1)) / math.sqrt(d)


def distance_aware(layer: Layer, q: Tensor, k: Tensor, u: Tensor) -> Tensor:
    w, v = (layer.leaf(f"pairs.{name}")[:, None, None] for name in "wv")
    gate = (1 + v.exp()) / (1 + (v - w * layer.distance.abs()).exp())
    scores = torch.relu(scaled(q, k)) if layer.encoding.relu else scaled(q, k)
    return scores * gate if layer.encoding.gate == "multiplied" else scores + gate


def cope(layer: Layer, q: Tensor, k: Tensor, u: Tensor) -> Tensor:
    table, n = layer.leaf("pairs.table"), q.shape[2]
    gates = torch.sigmoid(product(q, k) if layer.encoding.gate == "raw" else scaled(q, k))
    rows = []
    for i in range(n):
        counts = [gates[:, :, i, j : i + 1].sum(-1).clamp(max=len(table) - 1) for j in range(n)]
        p = torch.stack(counts, dim=-1)  # 0 for keys after the query
        low = p.detach().floor().long()
        high = (low + 1).clamp(max=len(table) - 1)
        e = table[low] + (p - low)[..., None] * (table[high] - table[low])
        rows.append((q[:, :, i, None] * e).sum(-1))
    return scaled(q, k) + torch.stack(rows, dim=2)


EXACT = 1e-9
"""How near a model in float64 comes to the equation of its encoding, in logits and in every gradient."""

REFERENCES: dict[str, Reference] = {
    "none": Reference(),
    "sinusoidal": Reference(at_input=sinusoid),
    "learned": Reference(at_input=row_of_the_table, at_query_key=row_of_the_table),
    "rope": Reference(scores=rope),
    "xpos": Reference(scores=xpos),
    "phase": Reference(scores=phase),
    "tupe": Reference(scores=tupe),
    "axial-rope": Reference(scores=axial_rope),
    "alibi": biased(alibi),
    "t5": Reference(scores=t5),
    "kerple": biased(kerple),
    "sandwich": biased(sandwich),
    "fire": biased(fire),
    "shaw": Reference(scores=shaw, at_value=shaw_values),
    "transformer-xl": Reference(scores=transformer_xl),
    "distance-aware": Reference(scores=distance_aware),
    "cope": Reference(scores=cope),
    "forgetting": Reference(scores=forgetting),
    "seqpe": Reference(at_input=digit_strings, scores=seqpe),
}


def reference_of(encoding: Encoding) -> Reference:
    """That of its class, or of `REFERENCES`.

    Raises:
        LookupError: there is none, or one in each place.
    """
    name, kind = encoding.name, type(encoding)
    here, own = REFERENCES.get(name), encoding.reference
    if here is None and own is None:
        raise LookupError(
            f"{name} has no equation to be held against: give {kind.__module__}.{kind.__name__} one, a "
            f"class attribute `reference`, as a sepnb.encodings.reference.Reference"
        )
    if here is not None and own is not None:
        raise LookupError(f"{name} has two references, in its class and in REFERENCES; take one away")
    return own if here is None else here


class Written(Plain):
    """A dense causal model written out, with the references of its one encoding.

    Positions are `[N]` or `[B, N]`; with n coordinates there is one dimension more.
    """

    def __init__(self, model) -> None:
        super().__init__(model)
        (self.encoding,), self.encoder = self.config.encodings, None
        self.reference = reference_of(self.encoding)
        for name, module in model.named_modules():
            if isinstance(module, SequentialPositionEncoder):
                self.encoder = copy.deepcopy(module)
                leaves = self.encoder.named_parameters()
                self.leaves |= {f"{name}.{key}": parameter for key, parameter in leaves}

    def layer(self, number: int, positions: Tensor, batch: int) -> Layer:
        own = self.config.axes > 1
        positions = positions if positions.dim() == 2 + own else positions.expand(batch, *positions.shape)

        def leaf(end: str) -> Tensor:
            """The layer's, or that of the later codes of this layer, or the only one that there is."""
            found = [name for name in self.leaves if name.endswith(f".{end}")]
            mine = (f".blocks.{number}.", f".later_encodings.{number - 1}.")
            chosen = [name for name in found if any(part in name for part in mine)]
            first = [name for name in found if ".later_encodings." not in name]
            return self.leaves[(chosen or first)[0]]

        return Layer(self.encoding, leaf, self.encoder, positions, self.config.max_length, number)

    def acts_at(self, site: Site, layer: int = 0) -> bool:
        return site in self.encoding.sites and (site is Site.INPUT or self.encoding in self.acting(layer))

    def codes(self, positions: Tensor) -> Tensor:
        width = self.config.streams.d_model
        if not self.acts_at(Site.INPUT):
            return torch.zeros(width, dtype=F64)
        return self.reference.at_input(self.layer(0, positions, 1), width)

    def entering(self, layer: int, x: Tensor, codes: Tensor, positions: Tensor) -> Tensor:
        if not (self.acts_at(Site.INPUT) and self.encoding.per_layer):
            return x
        return x + self.reference.at_input(self.layer(layer, positions, len(x)), x.shape[-1])

    def scores(self, layer: int, u: Tensor, positions: Tensor) -> Tensor:
        told = self.layer(layer, positions, len(u))
        between = self.acts_at(Site.QUERY_KEY, layer) or self.acts_at(Site.SCORE, layer)
        if between and self.reference.at_query_key is not None:
            u = u + self.reference.at_query_key(told, u.shape[-1])
        q, k = self.heads_of(layer, u)
        return self.reference.scores(told, q, k, u) if between and self.reference.scores else scaled(q, k)

    def averaged(self, layer: int, weights: Tensor, values: Tensor, positions: Tensor) -> Tensor:
        plain = super().averaged(layer, weights, values, positions)
        if not self.acts_at(Site.VALUE, layer):
            return plain
        return plain + self.reference.at_value(self.layer(layer, positions, len(weights)), weights)
