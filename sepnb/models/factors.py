"""The factors of a model: what each may be, and what that means."""

from ..validation import WIDEST

MODES = {"separated": "joint", "strict": "strict"}
"""Each mode, and what its heads read: see `QUERY_KEY`."""

QUERY_KEY = ("joint", "strict", "content", "untied")
"""What makes queries and keys: `joint`, every stream for every head; `strict`, the position heads, whose
columns lie in a position stream, read that stream only; `content`, every head reads the sem stream only;
`untied`, as strict, but a sem head's score is one term of content with content and one of position with
position, without the two cross terms (Ke et al. 2021, TUPE)."""

SPLIT = ("norm", "value_output", "mlp")
"""What the separation makes block diagonal."""

POS_STREAM = ("evolving", "constant", "reinjected")
"""What becomes of the position embedding: it evolves through the layers as the sem stream does (`evolving`);
is handed to every layer as it is (`constant`); or is added again before every layer but the first
(`reinjected`; a model with one stream then adds its input encoding in every layer)."""

COUNTS = {"n_layers": 4096, "n_heads": WIDEST, "max_length": 2**40, "expansion": 1024, "axes": 16}
"""Every count and the largest that is taken; more is a slip, and would be built for hours."""
