"""What is there for speed, and what one chapter alone needs. A model computes the same without it.

`kernels` has formulas compiled, `flex` gives biases to FlexAttention, `pieces` cuts attention that is too
large to be held at once. `packed` writes a small model for the pages of chapters 13 and 21.
"""
