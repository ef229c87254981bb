"""The small network that says where letters are, in NumPy: a file is looked at in a child process
that has no torch. ``ml.training.letters`` makes its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import ml
from ml.errors import WeightsError
from ml.types import ArrayF32, ImageU8

STRIDES = (2, 2, 1, 1, 1)
DILATIONS = (1, 1, 1, 2, 4)
"""Of the 3 x 3 convolutions; a 1 x 1 convolution to one channel follows."""
STRIDE = 4
"""Pixels of the image for one of the answer."""
MARGIN_PX = 32
"""More than the 31 that the network sees to each side of a place, a multiple of ``STRIDE``."""
BLOCK_PX = 512
"""Side of the blocks computed one by one: with margins 4 MiB in the widest layer."""
WEIGHTS = Path(ml.__file__).parent / "weights" / "letters.npz"


@dataclass(frozen=True, slots=True)
class LetterNetwork:
    """Weights as they are multiplied.

    Attributes:
        kernels: (9 * channels in, channels out) float32 each, the last (channels in, 1).
        biases: (channels out,) float32 each.
    """

    kernels: tuple[ArrayF32, ...]
    biases: tuple[ArrayF32, ...]

    @classmethod
    def of(cls, stored: Mapping[str, np.ndarray]) -> LetterNetwork:
        """From arrays kernel0, bias0 and so on.

        Raises:
            WeightsError: one is missing, or of another shape.
        """
        count = len(STRIDES) + 1
        try:
            kernels = tuple(stored[f"kernel{n}"].astype(np.float32) for n in range(count))
            biases = tuple(stored[f"bias{n}"].astype(np.float32) for n in range(count))
        except KeyError as error:
            raise WeightsError(
                f"letters: expected {2 * count} arrays; {error} is missing"
            ) from error
        before = 3
        for number, (kernel, bias) in enumerate(zip(kernels, biases, strict=True)):
            rows = before * (9 if number < len(STRIDES) else 1)
            if kernel.shape != (rows, len(bias)):
                raise WeightsError(
                    f"letters: expected kernel{number} of ({rows}, {len(bias)}), got {kernel.shape}"
                )
            before = len(bias)
        return cls(kernels, biases)

    def logits(self, rgb: ImageU8) -> ArrayF32:
        """How much each place looks like part of a line of text.

        Args:
            rgb: (H, W, 3) uint8.
        Returns:
            (ceil(H / 4), ceil(W / 4)) float32, log odds. Beyond the image its edge continues.
        """
        height, width = rgb.shape[:2]
        rows, columns = -(-height // STRIDE), -(-width // STRIDE)
        below = MARGIN_PX + rows * STRIDE - height
        right = MARGIN_PX + columns * STRIDE - width
        padded = np.pad(rgb, ((MARGIN_PX, below), (MARGIN_PX, right), (0, 0)), mode="edge")
        out = np.empty((rows, columns), np.float32)
        step, margin = BLOCK_PX // STRIDE, MARGIN_PX // STRIDE
        for top in range(0, rows, step):
            for left in range(0, columns, step):
                high, wide = min(step, rows - top), min(step, columns - left)
                y, x = top * STRIDE, left * STRIDE
                block = padded[
                    y : y + high * STRIDE + 2 * MARGIN_PX, x : x + wide * STRIDE + 2 * MARGIN_PX
                ]
                found = self._forward(block)
                out[top : top + high, left : left + wide] = found[
                    margin : margin + high, margin : margin + wide
                ]
        return out

    def _forward(self, rgb: ImageU8) -> ArrayF32:
        x = rgb.astype(np.float32) / 127.5 - 1.0
        for kernel, bias, stride, dilation in zip(
            self.kernels[:-1], self.biases[:-1], STRIDES, DILATIONS, strict=True
        ):
            x = np.maximum(_convolved(x, kernel, bias, stride, dilation), 0.0)
        return np.asarray((x @ self.kernels[-1] + self.biases[-1])[..., 0], np.float32)


def _convolved(
    x: ArrayF32, kernel: ArrayF32, bias: ArrayF32, stride: int, dilation: int
) -> ArrayF32:
    """(H', W', channels out): a 3 x 3 convolution zeros beyond the edge, one neighbour at a time.

    To gather all nine neighbours of each place first takes twice as long as to multiply them.
    """
    height, width, channels = x.shape
    padded = np.pad(x, ((dilation, dilation), (dilation, dilation), (0, 0)))
    out = np.empty((-(-height // stride), -(-width // stride), len(bias)), np.float32)
    out[:] = bias
    for number, weights in enumerate(kernel.reshape(9, channels, len(bias))):
        row, column = (dilation * at for at in divmod(number, 3))
        out += padded[row : row + height : stride, column : column + width : stride] @ weights
    return out


@cache
def letter_network() -> LetterNetwork:
    """The network that comes with Tessera."""
    with np.load(WEIGHTS) as stored:
        return LetterNetwork.of(stored)
