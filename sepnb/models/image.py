"""The image classifier: patches in, logits of the classes out (vision transformer; Dosovitskiy et al. 2021).

The same transformer as that of the language model, without a mask. An image is cut into square patches, each
of them is a token, and the class token, whose final state is read, is one more. It stands at the origin,
(0, ..., 0), where no patch ever is, because patches are counted from 1 along each axis: a rotation leaves it
as it is, and an embedding of positions or a learned grid gives it one that no patch has.

An image of another resolution has more patches, or fewer, and `extended` chooses between two rules for where
they are. Either the grid grows: a larger canvas, whose outer patches have coordinates that were never
trained. Or the trained grid keeps its corners, and the patches lie between the trained places: upscaling.

Shape letters: B images, C channels, N patches, n axes.
"""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from .. import validation
from ..encodings import grid_positions
from ..streams import StreamNorm
from .config import TransformerConfig
from .layout import readout
from .parts import parts
from .transformer import Transformer
from .weights import initialise_maps, parameter_counts, sharing_copy


class ImageClassifier(nn.Module):
    """Patch embedding, class token, transformer, norm, output layer. Dense and separated are the same class.

    Args:
        config: the transformer, not causal. With `axes` 2 the position of a patch is its row and column, with
            1 its number, row by row. `embedding_std` is that of the content of a patch whose pixels have a
            mean square of 1.
        n_classes, channels: logits, and channels of the images.
        patch: side of a patch, in pixels.
    """

    def __init__(self, config: TransformerConfig, n_classes: int, patch: int, *, channels: int = 1) -> None:
        super().__init__()
        for name, value in (("n_classes", n_classes), ("patch", patch), ("channels", channels)):
            validation.whole(name, value, 1, 2**24)
        if validation.instance("config", config, TransformerConfig).causal:
            raise ValueError("patches have no order in which one is before another; give causal=False")
        if config.axes > 2:
            raise ValueError(
                f"axes is {config.axes}; a patch has a row and a column, axes=2, or a number, axes=1"
            )
        if config.tie_embeddings:
            raise ValueError("tie_embeddings is for tokens; a patch embedding is no output layer")
        self.config, self.n_classes, self.patch, self.channels = config, n_classes, patch, channels
        self.fit: tuple[int, int] | None = None
        streams, read = config.streams, readout(config)
        width = streams.widths["sem"]
        self.embedding = nn.Linear(channels * patch * patch, width, bias=False)
        self.class_token = nn.Parameter(torch.empty(width))
        self.transformer = Transformer(config)
        self.norm = StreamNorm(
            streams, config.norm_kind, "norm" in config.splits, outputs=read, plain=config.plain
        )
        self.head = nn.Linear(sum(streams.widths[name] for name in read), n_classes, bias=False)
        nn.init.normal_(self.class_token, std=config.embedding_std)
        initialise_maps(self, config)
        with torch.no_grad():
            self.embedding.weight.mul_(config.embedding_std)

    def grid(self, images: Tensor) -> tuple[int, int]:
        """Rows and columns of patches of images `[B, C, H, W]`; images that have none are refused."""
        if validation.tensor("images", images).dim() != 4:
            raise ValueError(f"images have shape {list(images.shape)}; give [batch, channels, height, width]")
        if not images.is_floating_point():
            raise TypeError(f"images must be floating, got {images.dtype}; scale the pixels first")
        if images.shape[1] != self.channels:
            raise ValueError(
                f"images have {images.shape[1]} channels, the model was built for {self.channels}"
            )
        weight = self.embedding.weight
        validation.on_device("images", images, weight.device)
        if images.dtype != weight.dtype and not torch.is_autocast_enabled(weight.device.type):
            raise TypeError(f"images are {images.dtype}, the model is in {weight.dtype}; convert one of them")
        height, width = images.shape[2:]
        for name, side in (("height", height), ("width", width)):
            if side < 1 or side % self.patch:
                near = max(self.patch, round(side / self.patch) * self.patch)
                whole = f"patches have a side of {self.patch}; {near} would be whole patches"
                raise ValueError(f"{name} is {side}, and {whole}")
        return height // self.patch, width // self.patch

    def positions(self, rows: int, columns: int) -> Tensor:
        """The places of the patches of a grid, row by row: int `[N]` on one axis, `[N, 2]` on two, real where
        a grid is fitted into another."""
        if self.config.axes == 1:
            return torch.arange(1, rows * columns + 1)
        places = grid_positions(rows, columns, fit=self.fit) + 1
        return places if self.fit is not None else places.to(torch.int64)

    def patches(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B N pixels"]:
        """The pixels of every patch, channel by channel; patches row by row."""
        rows, columns = self.grid(images)
        cut = images.unflatten(3, (columns, self.patch)).unflatten(2, (rows, self.patch))
        return cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)

    def forward(
        self, images: Float[Tensor, "B C H W"], positions: Shaped[Tensor, "..."] | None = None
    ) -> Float[Tensor, "B classes"]:
        """Logits of the classes of floating images with sides that are whole patches. The positions of the
        patches, `[N]` or `[B, N]`, on two axes `[N, 2]` or `[B, N, 2]`, are by default those of the model's
        rule; 0 along every axis is the place of the class token."""
        content = self.embedding(self.patches(images))
        content = torch.cat([self.class_token.expand(len(images), 1, -1), content], dim=1)
        if positions is None:
            positions = self.positions(*self.grid(images)).to(content.device)
        state = self.transformer(content, with_origin(positions, self.config.axes))
        read = {name: x[:, 0] for name, x in state.items()}
        return self.head(self.config.streams.join(self.norm.parts(read)))

    def extended(self, *, fit: tuple[int, int] | None) -> "ImageClassifier":
        """The same weights under another rule for where patches are; never retrains, never changes the
        original. `fit`: rows and columns of the trained grid, whose corners any grid then has, for a model
        that takes places between two patches (upscaling); None: the grid grows (a larger canvas)."""
        if fit is not None:
            if not isinstance(fit, tuple | list) or any(type(side) is not int for side in fit):
                raise TypeError(f"fit must be two ints, rows and columns, got {fit!r}")
            if len(fit) != 2 or min(fit) < 1:
                raise ValueError(f"fit is {fit}; give rows and columns of the trained grid, each at least 1")
            if not self.config.real_positions:
                refusing = [e.name for e in self.config.encodings if not e.real_positions]
                why = f"{', '.join(refusing)} takes none" if self.config.axes > 1 else "on one axis are none"
                raise ValueError(f"fit needs places between two patches, and {why}; use e.g. axial-rope")
        clone = sharing_copy(self)
        clone.fit = fit
        return clone.eval()

    parameter_counts = parameter_counts
    parts = parts


def with_origin(positions: Tensor, axes: int) -> Tensor:
    """The positions of patches, and before them that of the class token: 0 along every axis."""
    if not validation.tensor("positions", positions).dim():
        raise ValueError("positions are a single number; give that of every patch")
    if axes > 1 and (positions.dim() < 2 or positions.shape[-1] != axes):
        raise ValueError(f"positions of shape {list(positions.shape)}; give [N, {axes}] or [B, N, {axes}]")
    first = positions[..., :1] if axes == 1 else positions[..., :1, :]
    return torch.cat([torch.zeros_like(first), positions], dim=-1 if axes == 1 else -2)
