"""Looking inside a model: what each layer's state holds, depends on, and does when a text starts elsewhere.

One file per idea: `states` records the residual state at every depth and how far it moves, `probes` reads
positions and bytes from it, `geometry` says how much of it is position and of what shape, and `isolation`
differentiates it. `scores` splits what a head computes into content and position, and `score_table` follows
these terms over the distance.
"""

from ..validation import brought_by
from .geometry import VarianceShares, frequency_shares, position_mean, principal_trajectory, variance_shares
from .isolation import Leakage, first_blocks, leakage
from .probes import LinearProbe, accuracy, fit_classifier, fit_probe, majority_rate, r_squared
from .scores import TERMS, Scores, exchanged, split_scores
from .states import (
    attention_distance,
    attention_entropy,
    attention_maps,
    drift,
    held_attention_states,
    residual_states,
    stream_state,
)

with brought_by("run"):
    from .score_table import score_table

__all__ = [
    "TERMS",
    "Leakage",
    "LinearProbe",
    "Scores",
    "VarianceShares",
    "accuracy",
    "attention_distance",
    "attention_entropy",
    "attention_maps",
    "drift",
    "exchanged",
    "first_blocks",
    "fit_classifier",
    "fit_probe",
    "frequency_shares",
    "held_attention_states",
    "leakage",
    "majority_rate",
    "position_mean",
    "principal_trajectory",
    "r_squared",
    "residual_states",
    "score_table",
    "split_scores",
    "stream_state",
    "variance_shares",
]
