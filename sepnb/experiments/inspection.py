"""What is asked of a trained model from inside, on what text and under which rules: the rows of `inside`.

Half of the test documents fit the probes, the other half score them, so that no document is on both sides. A
text that starts elsewhere is the same bytes at other indices: its length is not new, nor is any distance in
it. Depths count the blocks that were passed; the stream "joint" is the whole width.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .. import analysis
from ..data import text
from ..evaluation.losses import evaluate
from ..extrapolators import SOURCE_METHODS, describe
from ..models import LanguageModel, TransformerConfig
from .run import Rows

NATIVE = "native"
"""The encoding's own rule for every position."""

RULES = {
    "learned": (*SOURCE_METHODS, "clamp", "wrap"),
    "sinusoidal": (NATIVE, "clamp"),
}
"""What stands for positions from the trained length on, by encoding; the native rule where none is named."""

FAR = (2, 4, 8)
"""Texts of L/2 bytes lie wholly past the trained length, their middle at these multiples of it: a rule that
repeats after L then jumps in the middle of the text."""

SHOWN = 4
"""Of these, the one at which every layer is looked at."""

HELD_OUT = 4
"""One position in so many is kept from a probe, to ask it about positions that it never saw."""

STATES = ("trained", "initial")


@dataclass(frozen=True)
class Inspection:
    """How much a run looks at.

    Args:
        length: the trained length L.
        documents: of the test text, the first that are long enough.
        windows: windows of L bytes of each, for probes and variances.
        texts: texts of L/2 bytes of each, which start at several indices, and texts of 2L bytes.
        leak_texts, leak_tokens: texts at which a Jacobian is taken, and their length.
        path_points: positions at which trajectories are kept.
        fit_steps: of the perceptron of equation (5).
    """

    length: int
    documents: int
    windows: int
    texts: int
    leak_texts: int
    leak_tokens: int
    path_points: int
    fit_steps: int

    @property
    def starts(self) -> tuple[int, ...]:
        """Where a text of L/2 bytes may start with every index trained; it is compared with itself at 0."""
        return (self.length // 4, self.length // 2)

    @property
    def far_starts(self) -> tuple[int, ...]:
        return tuple(times * self.length - self.length // 4 for times in FAR)

    @property
    def shown_starts(self) -> tuple[int, int]:
        """A trained and a far start at which every layer is looked at."""
        return self.starts[-1], self.far_starts[FAR.index(SHOWN)]


class Sample(NamedTuple):
    """What a run reads: tokens `[n, .]` to fit on and to score on, short texts `[n, L/2 + 1]`, long ones."""

    fit: Tensor
    scored: Tensor
    short: Tensor
    long: Tensor


def sample(held_out: text.Text, inspection: Inspection) -> Sample:
    """Cut the sample out of a held-out text; even documents fit, odd ones are scored.

    Raises:
        ValueError: too few documents are long enough.
    """
    length, wanted = inspection.length, inspection.documents
    each = max(inspection.windows, 2 * inspection.texts)
    cut = text.windows(held_out, length=length, per_document=each * length)
    documents, counts = np.unique(cut.document, return_counts=True)
    documents = documents[counts == each][:wanted]
    if len(documents) < wanted:
        raise ValueError(
            f"{len(documents)} documents of {held_out.name} hold {each} windows of {length} bytes; "
            f"{wanted} are needed: lower documents, windows or texts"
        )
    place = cut.start // length
    chosen, odd = np.isin(cut.document, documents), np.isin(cut.document, documents[1::2])
    near, few = chosen & (place < inspection.windows), chosen & (place < inspection.texts)
    pairs = text.windows(held_out, length=2 * length, per_document=inspection.texts * 2 * length)
    long = np.isin(pairs.document, documents[1::2])
    return Sample(
        torch.from_numpy(cut.tokens[near & ~odd][:, :length]),
        torch.from_numpy(cut.tokens[near & odd][:, :length]),
        torch.from_numpy(cut.tokens[few][:, : length // 2 + 1]),
        torch.from_numpy(pairs.tokens[long][:, : 2 * length]),
    )


def rules_of(config: TransformerConfig) -> tuple[str, ...]:
    """The rules past the trained length of a model with one encoding."""
    (encoding,) = config.encodings
    return RULES.get(encoding.name, (NATIVE,))


def rules(model: LanguageModel, inspection: Inspection) -> dict[str, LanguageModel]:
    """The model under each rule past its trained length."""
    options = {"learned": {"steps": inspection.fit_steps}}
    return {
        name: model if name == NATIVE else model.extended(name, **options.get(name, {}))
        for name in rules_of(model.config)
    }


def _each(
    model: LanguageModel, *states: list[analysis.states.State]
) -> Iterator[tuple[str, int, list[Tensor]]]:
    """(stream, depth, that stream of each of the lists of states), where it is computed: all streams and the
    joint one; of a dense model the joint one only."""
    names = model.config.streams.names if model.config.separated else ()
    for stream in (*names, "joint"):
        for depth, together in enumerate(zip(*states, strict=True)):
            parts = [analysis.stream_state(model, state, stream) for state in together]
            if parts[0] is not None:
                yield stream, depth, parts


def position_rows(model: LanguageModel, read: Sample, state: str) -> Rows:
    """Shares of variance, and how well the index and its logarithm are read at trained positions.

    A probe can learn L rows by heart. So there are two scores on unseen documents: `r_squared` at the
    positions that it was fitted on, and `unseen` at those that were kept from it.
    """
    fitted, scored = (analysis.residual_states(model, tokens) for tokens in (read.fit, read.scored))
    at = torch.arange(read.fit.shape[1])
    every, kept, index = at >= 0, at % HELD_OUT != HELD_OUT // 2, at.double()
    rows: Rows = []
    for stream, depth, (fit, score) in _each(model, fitted, scored):
        about = {"state": state, "stream": stream, "depth": depth}
        shares = analysis.variance_shares(torch.cat([fit, score]))
        rows.append({"kind": "variance", **about, "position": shares.position, "text": shares.text})
        for target, values in (("index", index), ("log index", (index + 1).log2())):
            scores = {}
            for name, known, asked in (("r_squared", every, every), ("unseen", kept, ~kept)):
                probe = _position_probe(fit[:, known], values[known])
                said = probe(score[:, asked])[..., 0]
                scores[name] = analysis.r_squared(said, values[asked].expand_as(said))
            rows.append({"kind": "position probe", **about, "target": target, **scores})
    return rows


def _position_probe(states: Tensor, values: Tensor) -> analysis.LinearProbe:
    """Fitted on states `[B, N, w]` at positions of these values `[N]`."""
    return analysis.fit_probe(states.flatten(0, 1), values.repeat(len(states))[:, None])


def beyond_rows(model: LanguageModel, read: Sample, inspection: Inspection) -> Rows:
    """The index read at positions L to 2L-1 by probes fitted below L: R squared, mean error in positions."""
    length = read.fit.shape[1]
    fitted = analysis.residual_states(model, read.fit)
    index = torch.arange(2 * length, dtype=torch.float64)
    rows: Rows = []
    for rule, extended in rules(model, inspection).items():
        states = analysis.residual_states(extended, read.long)
        for stream, depth, (fit, far) in _each(model, fitted, states):
            if depth and rule not in (NATIVE, "clamp"):
                continue  # the other rules: at the input, what they claim to give
            said = _position_probe(fit, index[:length])(far[:, length:])[..., 0]
            wanted = index[length:].expand_as(said)
            about = {"kind": "position beyond", "rule": rule, "stream": stream, "depth": depth}
            error = float((said - wanted).abs().mean())
            rows.append({**about, "r_squared": analysis.r_squared(said, wanted), "error": error})
    return rows


def byte_rows(model: LanguageModel, read: Sample) -> Rows:
    """How often the current and the previous byte are read; "pos less position" is what is left of the pos
    stream when its mean over texts at each position is taken away."""
    fitted, scored = (analysis.residual_states(model, tokens) for tokens in (read.fit, read.scored))
    # The first token has no previous one: it is left out for both targets.
    targets = {"current": (read.fit[:, 1:], read.scored[:, 1:])}
    targets["previous"] = (read.fit[:, :-1], read.scored[:, :-1])
    rows: Rows = []
    for target, (fit, score) in targets.items():
        about = {"kind": "byte probe", "stream": "majority", "depth": 0, "target": target}
        rows.append({**about, "accuracy": analysis.majority_rate(fit.flatten(), score.flatten())})
    for stream, depth, (fit, score) in _each(model, fitted, scored):
        if stream == "joint" and model.config.separated:
            continue
        features = {stream: (fit, score)}
        if stream == "pos":
            mean = analysis.position_mean(fit)
            features["pos less position"] = (fit.double() - mean, score.double() - mean)
        for name, (x, y) in features.items():
            for target, (known, asked) in targets.items():
                probe = analysis.fit_classifier(x[:, 1:].flatten(0, 1), known.flatten(), 256)
                hits = analysis.accuracy(probe, y[:, 1:].flatten(0, 1), asked.flatten())
                about = {"kind": "byte probe", "stream": name, "depth": depth, "target": target}
                rows.append({**about, "accuracy": hits})
    return rows


def geometry_rows(model: LanguageModel, read: Sample, points: int) -> Rows:
    """The mean over texts at each position, of the pos stream or a dense state: its roughness, waves, path.

    In a dense state some of it is what the sample's texts happen to have in common, 1/B of their variance.
    """
    states = analysis.residual_states(model, torch.cat([read.fit, read.scored]))
    wanted = "pos" if model.config.separated else "joint"
    rows: Rows = []
    for stream, depth, (state,) in _each(model, states):
        if stream != wanted:
            continue
        table = analysis.position_mean(state)
        about = {"stream": stream, "depth": depth}
        described = describe(table - table.mean(0))
        shape = {"median_step": described.median_step, "mean_row_norm": described.mean_row_norm}
        shape |= {"frequencies_8": described.frequency_energy[8]}
        shape |= {f"components_{k}": described.component_energy[k] for k in (2, 8)}
        rows.append({"kind": "geometry", **about, **shape})
        shares = analysis.frequency_shares(table)
        rows.append({"kind": "spectrum", **about, "shares": [round(float(share), 5) for share in shares]})
        paths, along = analysis.principal_trajectory(table, 2)
        at = torch.linspace(0, len(table) - 1, points).round().long()
        for component in range(2):
            path = {"component": component + 1, "share": float(along[component])}
            path["positions"] = at.tolist() if not depth and not component else []
            path["values"] = [float(f"{value:.4g}") for value in paths[at, component]]
            rows.append({"kind": "path", **about, **path})
    return rows


def leak_rows(model: LanguageModel, read: Sample, inspection: Inspection, state: str) -> Rows:
    """Derivatives between the streams, the largest entry and the mean relative size over texts."""
    if not model.config.separated:
        return []
    device = next(model.parameters()).device
    texts = read.scored[:: max(1, len(read.scored) // inspection.leak_texts)][: inspection.leak_texts]
    texts = texts[:, : inspection.leak_tokens].to(device)
    rows: Rows = []
    for depth in range(1, model.config.n_layers):
        for weights in ("frozen", "live"):
            leaks = [analysis.leakage(model, one[None], depth, frozen=weights == "frozen") for one in texts]
            for direction in zip(*leaks, strict=True):
                about = {"state": state, "weights": weights, "depth": depth}
                about |= {"source": direction[0].source, "target": direction[0].target}
                largest = max(one.largest for one in direction)
                relative = float(np.mean([one.relative for one in direction]))
                rows.append({"kind": "leak", **about, "largest": largest, "relative": relative})
    return rows


def drift_rows(model: LanguageModel, read: Sample, inspection: Inspection, **how: Any) -> Rows:
    """The same short texts at other indices: how far the content has moved, where heads look, what it costs.

    Args:
        how: device and precision, as in `evaluate`.
    """
    tokens = read.short[:, :-1]
    here = torch.arange(tokens.shape[1])
    reference = analysis.residual_states(model, tokens)
    maps = analysis.attention_maps(model, tokens)
    held_here = analysis.held_attention_states(model, tokens, here)
    rows: Rows = [_start_row(model, read, "trained", 0, 0.0, how)]
    for depth, state in enumerate(reference):  # the ruler: the same places of the next text
        about = {"kind": "drift", "rule": "another text", "start": 0, "depth": depth}
        rows.append({**about, "drift": analysis.drift(state["sem"].roll(1, 0), state["sem"])})
    rows += _routing_rows(maps, maps, "trained", 0)
    moves = [("trained", model, start) for start in inspection.starts]
    far = rules(model, inspection).items()
    moves += [(rule, one, start) for rule, one in far for start in inspection.far_starts]
    for rule, extended, start in moves:
        there = here + start
        states = analysis.residual_states(extended, tokens, there)
        pairs = zip(states, reference, strict=True)
        moved = [analysis.drift(state["sem"], own["sem"]) for state, own in pairs]
        rows.append(_start_row(extended, read, rule, start, moved[-1], how))
        if start not in inspection.shown_starts:
            continue
        held = analysis.held_attention_states(extended, tokens, there)
        for depth, one in enumerate(moved):
            about = {"kind": "drift", "rule": rule, "start": start, "depth": depth, "drift": one}
            rows.append({**about, "held": analysis.drift(held[depth]["sem"], held_here[depth]["sem"])})
        rows += _routing_rows(analysis.attention_maps(extended, tokens, there), maps, rule, start)
    return rows


def _start_row(
    model: LanguageModel, read: Sample, rule: str, start: int, moved: float, how: dict[str, Any]
) -> dict[str, Any]:
    positions = start + np.arange(read.short.shape[1] - 1)
    bits = evaluate(model, read.short.numpy(), positions=positions, **how).bits_per_byte
    return {"kind": "start", "rule": rule, "start": start, "drift": moved, "bits_per_byte": bits}


def _routing_rows(
    maps: list[dict[str, Tensor]], reference: list[dict[str, Tensor]], rule: str, start: int
) -> Rows:
    return [
        {
            **{"kind": "routing", "rule": rule, "start": start, "depth": depth, "heads": owner},
            "distance": analysis.attention_distance(weights, reference[depth][owner]),
            "entropy": analysis.attention_entropy(weights),
        }
        for depth, layer in enumerate(maps)
        for owner, weights in layer.items()
    ]
