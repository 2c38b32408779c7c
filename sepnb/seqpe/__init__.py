"""SeqPE (Li, Liu, Sun, Cai, Cui, Bi, Zhao and Watanabe 2025): positions as digit strings, read by a small
sequential encoder, with a loss that orders the embeddings by distance and one that repeats the geometry of
the trained window elsewhere.

Of the paper the abstract and the released code were read, not the body; where the code is odd, the
docstrings say what is done instead, and which setting is the released one.
"""

from .digits import as_grid, digits
from .encoder import SequentialPositionEncoder
from .encoding import SeqPE
from .losses import contrastive_loss, distillation_loss

__all__ = ["SeqPE", "SequentialPositionEncoder", "as_grid", "contrastive_loss", "digits", "distillation_loss"]
