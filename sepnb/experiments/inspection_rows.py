"""What is asked of a trained model from inside: the tidy rows of the experiment `inside`.

Depths count the blocks that were passed; "joint" is the whole width.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import analysis
from ..evaluation.losses import evaluate
from ..extrapolators import describe
from ..models import LanguageModel
from .inspection import NATIVE, Inspection, Sample, rules

Rows = list[dict[str, Any]]

HELD_OUT = 4
"""One position in so many is kept from a probe, to ask it about positions that it never saw."""

STATES = ("trained", "initial")


def streams_of(model: LanguageModel) -> tuple[str, ...]:
    """The streams that are looked at: all and the joint one; of a dense model the joint one only."""
    return (*model.config.streams.names, "joint") if model.config.separated else ("joint",)


def _each(
    model: LanguageModel, *states: list[analysis.states.State]
) -> Iterator[tuple[str, int, list[Tensor]]]:
    """(stream, depth, that stream of each of the lists of states), where it is computed."""
    for stream in streams_of(model):
        for depth, together in enumerate(zip(*states, strict=True)):
            found = [analysis.stream_state(model, state, stream) for state in together]
            if found[0] is not None:
                yield stream, depth, found


def position_rows(model: LanguageModel, read: Sample, state: str) -> Rows:
    """Shares of variance, and how well the index and its logarithm are read at trained positions.

    A probe can learn L rows by heart. So there are two scores on unseen documents: `r_squared` at the
    positions that it was fitted on, and `unseen` at those that were kept from it.
    """
    fitted, scored = (analysis.residual_states(model, tokens) for tokens in (read.fit, read.scored))
    length = read.fit.shape[1]
    index = torch.arange(length, dtype=torch.float64)
    kept = torch.arange(length) % HELD_OUT != HELD_OUT // 2
    rows: Rows = []
    for stream, depth, (fit, score) in _each(model, fitted, scored):
        about = {"state": state, "stream": stream, "depth": depth}
        shares = analysis.variance_shares(torch.cat([fit, score]))
        rows.append({"kind": "variance", **about, "position": shares.position, "text": shares.text})
        for target, values in (("index", index), ("log index", (index + 1).log2())):

            def r_squared(at: Tensor, ask: Tensor, fit=fit, score=score, values=values) -> float:
                probe = analysis.fit_probe(fit[:, at].flatten(0, 1), values[at].repeat(len(fit))[:, None])
                said = probe(score[:, ask])[..., 0]
                return analysis.r_squared(said, values[ask].expand_as(said))

            every = torch.ones_like(kept)
            scores = {"r_squared": r_squared(every, every), "unseen": r_squared(kept, ~kept)}
            rows.append({"kind": "position probe", **about, "target": target, **scores})
    return rows


def beyond_rows(model: LanguageModel, read: Sample, inspection: Inspection) -> Rows:
    """The index read at positions L to 2L-1 by probes fitted below L: R squared, mean error in positions."""
    length = read.fit.shape[1]
    fitted = analysis.residual_states(model, read.fit)
    index = torch.arange(2 * length, dtype=torch.float64)
    rows: Rows = []
    for rule, extended in rules(model, inspection).items():
        states = analysis.residual_states(extended, read.long)
        for stream, depth, (fit, far) in _each(model, fitted, states):
            if (
                rule not in (NATIVE, "clamp") and depth
            ):  # the other rules: at the input, what they claim to give
                continue
            probe = analysis.fit_probe(fit.flatten(0, 1), index[:length].repeat(len(fit))[:, None])
            said = probe(far[:, length:])[..., 0]
            wanted = index[length:].expand_as(said)
            rows.append(
                {
                    "kind": "position beyond",
                    "rule": rule,
                    "stream": stream,
                    "depth": depth,
                    "r_squared": analysis.r_squared(said, wanted),
                    "error": float((said - wanted).abs().mean()),
                }
            )
    return rows


def byte_rows(model: LanguageModel, read: Sample) -> Rows:
    """How often the current and the previous byte are read; "pos less position" is what is left of the pos
    stream when its mean over texts at each position is taken away."""
    fitted, scored = (analysis.residual_states(model, tokens) for tokens in (read.fit, read.scored))
    targets = {"current": (read.fit[:, 1:], read.scored[:, 1:])}
    targets["previous"] = (read.fit[:, :-1], read.scored[:, :-1])
    rows: Rows = [
        {
            "kind": "byte probe",
            "stream": "majority",
            "depth": 0,
            "target": target,
            "accuracy": analysis.majority_rate(fit.flatten(), score.flatten()),
        }
        for target, (fit, score) in targets.items()
    ]
    for stream, depth, (fit, score) in _each(model, fitted, scored):
        if stream == "joint" and model.config.separated:
            continue
        features = {stream: (fit, score)}
        if stream == "pos":
            mean = analysis.position_mean(fit)
            features["pos less position"] = (fit.double() - mean, score.double() - mean)
        for name, (x, y) in features.items():
            for target, (known, asked) in targets.items():
                # The first token has no previous one: it is left out for both targets.
                probe = analysis.fit_classifier(x[:, 1:].flatten(0, 1), known.flatten(), 256)
                hits = analysis.accuracy(probe, y[:, 1:].flatten(0, 1), asked.flatten())
                about = {"stream": name, "depth": depth, "target": target}
                rows.append({"kind": "byte probe", **about, "accuracy": hits})
    return rows


def geometry_rows(model: LanguageModel, read: Sample, points: int) -> Rows:
    """The mean over texts at each position, of the pos stream or a dense state: its roughness, waves, path.

    In a dense state some of it is what the sample's texts happen to have in common, 1/B of their variance.
    """
    states = analysis.residual_states(model, torch.cat([read.fit, read.scored]))
    stream = "pos" if model.config.separated else "joint"
    rows: Rows = []
    for depth, state in enumerate(states):
        found = analysis.stream_state(model, state, stream)
        if found is None:
            continue
        table = analysis.position_mean(found)
        about = {"stream": stream, "depth": depth}
        described = describe(table - table.mean(0))
        rows.append(
            {
                "kind": "geometry",
                **about,
                "median_step": described.median_step,
                "mean_row_norm": described.mean_row_norm,
                "frequencies_8": described.frequency_energy[8],
                "components_2": described.component_energy[2],
                "components_8": described.component_energy[8],
            }
        )
        shares = analysis.frequency_shares(table)
        rows.append({"kind": "spectrum", **about, "shares": [round(float(share), 5) for share in shares]})
        paths, along = analysis.principal_trajectory(table, 2)
        at = torch.linspace(0, len(table) - 1, points).round().long()
        for component in range(2):
            values = [float(f"{value:.4g}") for value in paths[at, component]]
            rows.append(
                {
                    "kind": "path",
                    **about,
                    "component": component + 1,
                    "share": float(along[component]),
                    "positions": at.tolist() if not depth and not component else [],
                    "values": values,
                }
            )
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
        for frozen in (True, False):
            found = [analysis.leakage(model, one[None], depth, frozen=frozen) for one in texts]
            for direction in zip(*found, strict=True):
                rows.append(
                    {
                        "kind": "leak",
                        "state": state,
                        "weights": "frozen" if frozen else "live",
                        "depth": depth,
                        "source": direction[0].source,
                        "target": direction[0].target,
                        "largest": max(one.largest for one in direction),
                        "relative": float(np.mean([one.relative for one in direction])),
                    }
                )
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
        other = analysis.drift(state["sem"].roll(1, 0), state["sem"])
        rows.append({"kind": "drift", "rule": "another text", "start": 0, "depth": depth, "drift": other})
    rows += _routing_rows(maps, maps, "trained", 0)
    moves = [("trained", model, start) for start in inspection.starts]
    moves += [
        (rule, one, start)
        for rule, one in rules(model, inspection).items()
        for start in inspection.far_starts
    ]
    for rule, extended, start in moves:
        there = here + start
        states = analysis.residual_states(extended, tokens, there)
        final = analysis.drift(states[-1]["sem"], reference[-1]["sem"])
        rows.append(_start_row(extended, read, rule, start, final, how))
        if start not in inspection.shown_starts:
            continue
        held = analysis.held_attention_states(extended, tokens, there)
        for depth, state in enumerate(states):
            rows.append(
                {
                    "kind": "drift",
                    "rule": rule,
                    "start": start,
                    "depth": depth,
                    "drift": analysis.drift(state["sem"], reference[depth]["sem"]),
                    "held": analysis.drift(held[depth]["sem"], held_here[depth]["sem"]),
                }
            )
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
            "kind": "routing",
            "rule": rule,
            "start": start,
            "depth": depth,
            "heads": owner,
            "distance": analysis.attention_distance(weights, reference[depth][owner]),
            "entropy": analysis.attention_entropy(weights),
        }
        for depth, layer in enumerate(maps)
        for owner, weights in layer.items()
    ]
