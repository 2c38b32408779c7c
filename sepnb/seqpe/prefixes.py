"""Which beginnings digit strings share: under a causal mask, what a digit's state depends on.

Strings 1230 and 1239 have the same states at their first three places. A tree of the distinct prefixes holds
each of them once; for neighbouring positions it has little more nodes than the last place has strings.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class PrefixTree:
    """The distinct prefixes of P strings of S digits, by their length.

    Attributes:
        digit: per place s the last digits of its prefixes, int64 `[T_s]`.
        above: per place s, for each of its T_s prefixes, where its own prefixes of the places 0 to s - 1
            stand: s tensors `[T_s]`.
        leaf: per place s, which prefix each string begins with: `[P]`.
    """

    digit: tuple[Tensor, ...]
    above: tuple[tuple[Tensor, ...], ...]
    leaf: tuple[Tensor, ...]

    @classmethod
    def of(cls, strings: Tensor) -> "PrefixTree":
        """The tree of int64 strings `[P, S]`, by place from the first."""
        digit, above, leaf = [], [], []
        base = int(strings.max()) + 1 if strings.numel() else 1
        prefix = torch.zeros(len(strings), dtype=torch.int64, device=strings.device)
        for place in strings.unbind(dim=1):
            # The number of a prefix among those of its place, and the next digit, name the next prefix.
            named, found = (prefix * base + place).unique(return_inverse=True)
            one = found.new_empty(len(named)).scatter_(
                0, found, torch.arange(len(found), device=found.device)
            )
            above.append(tuple(before[one] for before in leaf))
            digit.append(named % base)
            leaf.append(found)
            prefix = found
        return cls(tuple(digit), tuple(above), tuple(leaf))

    @property
    def sizes(self) -> list[int]:
        """T_s of each place."""
        return [len(digit) for digit in self.digit]
