"""The whole model, written out: one dense matrix per map, zeros where the separation lets nothing pass.

Nothing is skipped here, shared between sequences, or left out because nobody reads it. The matrices are
filled from copies of the model's own parameters, so that the gradient by a copy is the gradient by that block
of the matrix.

Shape letters: B batch, H heads, N tokens, D model width, d head width, w width of one stream.
"""

from itertools import groupby

import torch
import torch.nn.functional as F
from torch import Tensor

from sepnb.encodings import alibi_bias, alibi_slopes, apply_rope, rope_frequencies, sinusoidal

F64 = torch.float64
Slices = dict[str, slice]
ACTIVATIONS = {"gelu": F.gelu, "relu": F.relu, "silu": F.silu}


class Plain:
    """A masked-dense copy of a language model, in float64.

    Args:
        model: with the encodings sinusoidal, learned, rope and alibi only, and without dropout.
        unbuilt: scale of the noise in those entries that the config allows and the model left out. What the
            model computes must not depend on it.
    """

    def __init__(self, model, unbuilt: float = 0.0) -> None:
        self.config = model.config
        self.leaves = {
            name: parameter.detach().clone().requires_grad_() for name, parameter in model.named_parameters()
        }
        self.heads = [block.attention.heads for block in model.transformer.blocks]
        self.unbuilt, self.generator = unbuilt, torch.Generator().manual_seed(7)
        streams, d = self.config.streams, self.config.head_width
        self.shared = self.config.heads_per_kv
        self.full = slice(0, streams.d_model)
        self.wide = {name: slice(4 * c.start, 4 * c.stop) for name, c in streams.slices.items()}
        self.kv = {
            name: slice(c.start // self.shared, c.stop // self.shared) for name, c in streams.slices.items()
        }
        assert self.config.expansion == 4 and d * self.config.n_heads == streams.d_model

    def noise(self, *shape: int) -> Tensor:
        return self.unbuilt * torch.randn(*shape, generator=self.generator, dtype=F64)

    @property
    def kind(self) -> str:
        """The `query_key`, with the preset of the mode."""
        return self.config.query_key or {"separated": "joint", "strict": "strict"}[self.config.mode]

    def reads(self, head: int) -> list[str]:
        """The streams of which a head makes queries and keys, by the definition of `query_key`."""
        names, d, kind = list(self.config.streams.names), self.config.head_width, self.kind
        if len(names) == 1 or kind == "joint":
            return names
        if kind == "content":
            return ["sem"]
        for name, columns in self.config.streams.slices.items():
            if name != "sem" and columns.start <= head * d and (head + 1) * d <= columns.stop:
                return [name]
        return names

    # --- the matrices

    def vector(self, prefix: str, start: float) -> Tensor:
        """A vector over the streams, `[D]`: a gain or a bias of a norm."""
        vector = start + self.noise(self.config.streams.d_model)
        for name, columns in self.config.streams.slices.items():
            if f"{prefix}.{name}" in self.leaves:
                vector[columns] = self.leaves[f"{prefix}.{name}"]
        return vector

    def map(
        self, prefix: str, rows: Slices, columns: Slices, split: bool, half: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """A map from `columns` to `rows`, given per stream: its matrix and its bias.

        `half` takes one half of the rows of every block: the gate (0) or the value (1) of a gated perceptron.
        """

        def leaf(name: str) -> Tensor | None:
            found = self.leaves.get(f"{prefix}.{name}")
            return found if found is None or half is None else found.chunk(2)[half]

        shape = max(r.stop for r in rows.values()), max(c.stop for c in columns.values())
        allowed = torch.zeros(shape, dtype=F64)
        for name in rows:
            allowed[rows[name], columns[name] if split else slice(None)] = 1
        weight, bias = self.noise(*shape) * allowed, torch.zeros(shape[0], dtype=F64)
        for name in rows:
            if (block := leaf(f"{name}.weight")) is not None:
                weight[rows[name], columns[name]] = block
            if (block := leaf(f"{name}.bias")) is not None:
                bias[rows[name]] = block
        if (joint := leaf("joint.weight")) is not None:
            assert not split
            # The last map to the residual state may have the rows of the sem stream only.
            at = slice(0, shape[0]) if len(joint) == shape[0] else rows["sem"]
            weight[at] = joint
            if (block := leaf("joint.bias")) is not None:
                bias[at] = block
        return weight, bias

    def queries_and_keys(self, layer: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """W_Q `[H*d, D]` and its bias, W_K `[H_kv*d, D]` and its bias."""
        streams, d, shared = self.config.streams, self.config.head_width, self.shared
        n_heads, width, common = self.config.n_heads, streams.d_model, self.common(layer)
        counts = {"queries": n_heads, "keys": n_heads // shared}
        made = {}
        for what, count in counts.items():
            made[what] = torch.zeros(count * d, width, dtype=F64), torch.zeros(count * d, dtype=F64)
            for head in range(count):
                for name in self.reads(head * n_heads // count):
                    made[what][0][head * d : (head + 1) * d, streams.slices[name]] = self.noise(
                        d, streams.widths[name]
                    )
        groups = groupby(self.heads[layer], key=self.reads)
        for index, (reads, heads) in enumerate(groups):
            heads, prefix = list(heads), f"transformer.blocks.{layer}.attention.query_key.{index}"
            columns = torch.cat([torch.arange(width)[streams.slices[name]] for name in reads])
            places = {
                "queries": torch.cat([torch.arange(h * d, (h + 1) * d) for h in heads]),
                "keys": torch.cat(
                    [torch.arange(h // shared * d, (h // shared + 1) * d) for h in heads[::shared]]
                ),
            }
            of_head = places["keys"].unflatten(0, (-1, d))
            places["keys"] = of_head[:, common:].flatten()
            n, m = len(places["queries"]), len(places["queries"]) + len(places["keys"])
            parts = [("queries", places["queries"], slice(n)), ("keys", places["keys"], slice(n, m))]
            parts += [("keys", rows, slice(m, m + common)) for rows in of_head[:, :common]]
            for what, rows, at in parts:
                weight, bias = made[what]
                weight[rows[:, None], columns] = self.leaves[f"{prefix}.weight"][at]
                if f"{prefix}.bias" in self.leaves:
                    bias[rows] = self.leaves[f"{prefix}.bias"][at]
            assert m + common == len(self.leaves[f"{prefix}.weight"])
        return made["queries"], made["keys"]

    def common(self, layer: int) -> int:
        """The first columns of a key that the heads of a group share: its W_K has them once, as last rows."""
        shares = [e.partial for e in self.acting(layer) if e.name == "rope" and e.shared]
        return round(shares[0] * self.config.head_width) if shares else 0

    def acting(self, layer: int) -> list:
        """The encodings that act in a layer."""
        every = self.config.nope_every
        return [*self.config.encodings] if every is None or (layer + 1) % every else []

    # --- the model

    def codes(self, positions: Tensor) -> Tensor:
        """What the encodings at the input give, `[..., N, D]`."""
        config, streams, index = self.config, self.config.streams, 0
        total = torch.zeros(*positions.shape, streams.d_model, dtype=F64)
        filled = [name for name in streams.names if name != "sem"] or ["sem"]
        for encoding in config.input_encodings:
            for name in filled:
                table = self.leaves.get(f"transformer.input_encodings.{index}.table")
                index += 1
                if encoding.name == "sinusoidal":
                    code = sinusoidal(positions, streams.widths[name], dtype=F64)
                elif table is None:  # not built: any table must do
                    code = self.noise(config.max_length, streams.widths[name])[positions]
                else:
                    code = table[positions]
                total = total + F.pad(
                    code, (streams.slices[name].start, self.full.stop - streams.slices[name].stop)
                )
        return total

    def entering(self, layer: int, x: Tensor, codes: Tensor, positions: Tensor) -> Tensor:
        """The residual state `[B, N, D]` before a layer other than the first, codes given again included."""
        return x + codes if self.config.pos_stream == "reinjected" else x

    def averaged(self, layer: int, weights: Tensor, values: Tensor, positions: Tensor) -> Tensor:
        """Weights `[B, H, N, N]` and values `[B, H, N, d]` to `[B, H, N, d]`."""
        return weights @ values

    def norm(self, prefix: str, x: Tensor) -> Tensor:
        """`[..., D]` to `[..., D]`, one norm per stream or one over the width, by its formula."""
        over = self.config.streams.slices.values() if "norm" in self.config.splits else [self.full]
        pieces = []
        for columns in over:
            part = x[..., columns]
            if self.config.norm_kind == "layer":
                part = part - part.mean(-1, keepdim=True)
            pieces.append(part / (part.square().mean(-1, keepdim=True) + 1e-5).sqrt())
        return torch.cat(pieces, -1) * self.vector(f"{prefix}.gain", 1.0) + self.vector(
            f"{prefix}.bias", 0.0
        ) * (self.config.norm_kind == "layer")

    def heads_of(self, layer: int, u: Tensor, bias: float = 1.0) -> tuple[Tensor, Tensor]:
        """Queries and keys `[B, H, N, d]` of the normalised state, before any encoding."""
        made = []
        for weight, shift in self.queries_and_keys(layer):
            x = u @ weight.T + bias * shift
            made.append(x.unflatten(-1, (-1, self.config.head_width)).transpose(1, 2))
        return made[0], made[1].repeat_interleave(self.shared, dim=1)

    def scores(self, layer: int, u: Tensor, positions: Tensor) -> Tensor:
        """`[B, H, N, N]` of the normalised state, biases included, no mask."""
        config, d = self.config, self.config.head_width
        names = [encoding.name for encoding in self.acting(layer)]

        def products(u: Tensor, bias: float) -> Tensor:
            q, k = self.heads_of(layer, u, bias)
            if "rope" in names:
                per_head = positions.expand(len(u), -1)[:, None].expand(-1, config.n_heads, -1)
                inv_freq, _ = rope_frequencies(d)
                q, k = apply_rope(q, per_head, inv_freq), apply_rope(k, per_head, inv_freq)
            return q @ k.transpose(-1, -2) / d**0.5

        scores = products(u, 1.0)
        if self.kind == "untied":  # content with content, positions with positions; the bias is the content's
            content = torch.zeros_like(u)
            content[..., config.streams.slices["sem"]] = u[..., config.streams.slices["sem"]]
            apart = products(content, 1.0) + products(u - content, 0.0)
            both = torch.tensor([len(self.reads(head)) > 1 for head in range(config.n_heads)])
            scores = torch.where(both[:, None, None], apart, scores)
        if "alibi" in names:
            scores = scores + alibi_bias(alibi_slopes(config.n_heads), positions, positions)
        return scores

    def state(self, content: Tensor, positions: Tensor, seen: Tensor | None = None) -> Tensor:
        """The final residual state `[B, N, D]`.

        Args:
            content: `[B, N, d_sem]`.
            positions: `[N]` or `[B, N]`.
            seen: bool `[N, N]`, the keys that each query may see; by default those that the config names.
        """
        config, streams, d = self.config, self.config.streams, self.config.head_width
        batch, n = content.shape[:2]
        if seen is None:
            seen = (
                torch.ones(n, n, dtype=torch.bool).tril()
                if config.causal
                else torch.ones(n, n, dtype=torch.bool)
            )
        codes = self.codes(positions)
        x = F.pad(content, (streams.slices["sem"].start, self.full.stop - streams.slices["sem"].stop)) + codes
        evolves = torch.ones(self.full.stop, dtype=F64)
        if config.pos_stream == "constant":
            evolves = torch.zeros(self.full.stop, dtype=F64)
            evolves[streams.slices["sem"]] = 1
        value_output, split_mlp = "value_output" in config.splits, "mlp" in config.splits
        for layer in range(config.n_layers):
            prefix = f"transformer.blocks.{layer}"
            x = self.entering(layer, x, codes, positions) if layer else x
            u = self.norm(f"{prefix}.attention_norm", x)
            weights = self.scores(layer, u, positions).masked_fill(~seen, -torch.inf).softmax(-1)
            w_v, b_v = self.map(f"{prefix}.attention.value.blocks", self.kv, streams.slices, value_output)
            values = (
                (u @ w_v.T + b_v).unflatten(-1, (-1, d)).transpose(1, 2).repeat_interleave(self.shared, dim=1)
            )
            z = self.averaged(layer, weights, values, positions).transpose(1, 2).flatten(-2)
            w_o, b_o = self.map(
                f"{prefix}.attention.output.blocks", streams.slices, streams.slices, value_output
            )
            x = x + evolves * (z @ w_o.T + b_o)
            x = x + evolves * self.mlp(f"{prefix}.mlp", self.norm(f"{prefix}.mlp_norm", x), split_mlp)
        assert x.shape == (batch, n, streams.d_model)
        return x

    def mlp(self, prefix: str, w: Tensor, split: bool) -> Tensor:
        """`[..., D]` to `[..., D]`."""
        slices, activation = self.config.streams.slices, self.config.activation

        def up(half: int | None = None) -> Tensor:
            weight, bias = self.map(f"{prefix}.up.blocks", self.wide, slices, split, half)
            return w @ weight.T + bias

        hidden = F.silu(up(0)) * up(1) if activation == "swiglu" else ACTIVATIONS[activation](up())
        weight, bias = self.map(f"{prefix}.down.blocks", slices, self.wide, split)
        return hidden @ weight.T + bias

    def __call__(self, tokens: Tensor, positions: Tensor | None = None, seen: Tensor | None = None) -> Tensor:
        """Logits `[B, N, V]`."""
        if positions is None:
            positions = torch.arange(tokens.shape[1])
        content = self.leaves["embedding.weight"][tokens]
        x = self.norm("norm", self.state(content, positions, seen))
        if self.config.readout == "sem":
            x = x[..., self.config.streams.slices["sem"]]
        return x @ self.leaves.get("head.weight", self.leaves["embedding.weight"]).T

    def check(self, model, *given: Tensor, bound: float = 1e-10) -> None:
        """The model gives these logits, and every parameter has the gradient of its copy."""
        ours, expected = model(*given), self(*given)
        torch.testing.assert_close(ours, expected, rtol=0, atol=bound)
        for logits in (ours, expected):
            logits.square().mean().backward()
        for name, parameter in model.named_parameters():
            assert self.leaves[name].grad is not None, name
            torch.testing.assert_close(parameter.grad, self.leaves[name].grad, rtol=0, atol=bound, msg=name)
