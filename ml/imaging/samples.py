"""A demo slide and a demo video made from images that scikit-image ships in its wheel.

Real pixels, known truth: the slide has microns per pixel and regions that differ; the video has the
exact transform of every frame. The same seed gives the same files' content.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import UnsupportedFormatError
from ml.imaging.pyramids import write_pyramid
from ml.imaging.scope import SampleVideo, make_sample_video
from ml.types import ImageU8, Progress, no_progress

__all__ = ["SampleVideo", "make_sample_slide", "make_sample_video", "packaged_image"]

SLIDE_MPP = 0.5
_H_DAB_RESIDUAL = np.array([[0.65, 0.70, 0.29], [0.27, 0.57, 0.78]])
"""Optical densities of haematoxylin and DAB: Ruifrok and Johnston 2001, as in skimage.color."""
_BLOCK_PX = 1_024


def packaged_image(name: str) -> ImageU8:
    """An image file that lies inside the installed scikit-image package: (H, W, 3) uint8 RGB.

    Raises:
        UnsupportedFormatError: this scikit-image does not ship it.
    """
    spec = importlib.util.find_spec("skimage")
    folder = Path(spec.origin).parent / "data" if spec and spec.origin else Path("skimage/data")
    bgr = cv2.imread(str(folder / name), cv2.IMREAD_COLOR)
    if bgr is None:
        raise UnsupportedFormatError(
            f"scikit-image ships no readable {name}; expected 0.25 or later"
        )
    return np.ascontiguousarray(bgr[..., ::-1]).astype(np.uint8, copy=False)


def make_sample_slide(
    out_path: str | Path,
    *,
    size_px: tuple[int, int] = (6_144, 5_120),
    seed: int = 7,
    progress: Progress = no_progress,
) -> Path:
    """Write a tiled JPEG pyramid of real immunostained tissue, 0.5 um per pixel.

    The 512 px field of ``ihc.png`` is continued by mirroring, bent by a smooth random warp, its two
    stains varied smoothly over the slide, and cut out as sections on white glass.

    Args:
        size_px: (width, height).
    Returns:
        ``out_path``.
    """
    tissue = packaged_image("ihc.png").astype(np.float32)
    width, height = size_px
    rng = np.random.default_rng(seed)
    fields = _fields(rng, width, height)
    out: ImageU8 = np.empty((height, width, 3), np.uint8)
    for top in range(0, height, _BLOCK_PX):
        progress(top * 60 // height, 100, "painting tissue")
        rows = slice(top, min(top + _BLOCK_PX, height))
        out[rows] = _paint(tissue, fields, rows, width, height)

    def written(done: int, total: int, phase: str) -> None:
        progress(60 + done * 40 // total, 100, phase)

    return write_pyramid(out, out_path, mpp=SLIDE_MPP, quality=85, progress=written)


_Field = npt.NDArray[np.float32]


def _fields(rng: np.random.Generator, width: int, height: int) -> dict[str, _Field]:
    """Coarse smooth random fields; each is enlarged to the rows that are painted."""
    cells = (max(3, height // 700), max(3, width // 700))

    def noise(low: float, high: float) -> _Field:
        return rng.uniform(low, high, cells).astype(np.float32)

    return {
        "shift_x": noise(-230, 230),
        "shift_y": noise(-230, 230),
        "haematoxylin": noise(0.6, 1.35),
        "dab": noise(0.15, 1.7),
        "edge": noise(-0.16, 0.16),
    }


def _rows_of(field: _Field, rows: slice, width: int, height: int) -> _Field:
    ys = (np.arange(rows.start, rows.stop, dtype=np.float32) + 0.5) * field.shape[0] / height - 0.5
    xs = (np.arange(width, dtype=np.float32) + 0.5) * field.shape[1] / width - 0.5
    grid_x, grid_y = np.meshgrid(xs, ys)
    border = cv2.BORDER_REPLICATE
    smooth = cv2.GaussianBlur(cv2.resize(field, None, fx=8, fy=8, interpolation=cv2.INTER_CUBIC),
                              (0, 0), 3)  # fmt: skip
    sampled = cv2.remap(smooth, grid_x * 8 + 3.5, grid_y * 8 + 3.5, cv2.INTER_LINEAR,
                        borderMode=border)  # fmt: skip
    return np.asarray(sampled, np.float32)


def _paint(
    tissue: _Field, fields: dict[str, _Field], rows: slice, width: int, height: int
) -> ImageU8:
    at = {name: _rows_of(field, rows, width, height) for name, field in fields.items()}
    x, y = np.meshgrid(
        np.arange(width, dtype=np.float32), np.arange(rows.start, rows.stop, dtype=np.float32)
    )
    period_x, period_y = 2 * tissue.shape[1], 2 * tissue.shape[0]
    map_x = _mirrored(x + at["shift_x"], period_x)
    map_y = _mirrored(y + at["shift_y"], period_y)
    rgb = cv2.remap(tissue, map_x, map_y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT_101)
    density = -np.log(np.clip(np.asarray(rgb, np.float32), 1, 255) / 255)
    density = _restained(density, at["haematoxylin"], at["dab"])
    cover = _sections(x / np.float32(width), y / np.float32(height), at["edge"])
    glass = 0.035  # slightly less than white, as glass is
    painted = 255 * np.exp(-(density * cover[..., None] + glass))
    return np.clip(painted + 0.5, 0, 255).astype(np.uint8)


def _mirrored(position: _Field, period: int) -> _Field:
    """Fold positions into one mirrored copy: 0..n-1 and back."""
    folded = np.mod(position, np.float32(period))
    return np.minimum(folded, np.float32(period - 1) - folded).clip(0).astype(np.float32)


def _restained(density: _Field, haematoxylin: _Field, dab: _Field) -> _Field:
    stains = _H_DAB_RESIDUAL / np.linalg.norm(_H_DAB_RESIDUAL, axis=1, keepdims=True)
    amounts = density @ np.linalg.pinv(stains).astype(np.float32)
    amounts = np.clip(amounts, 0, None)
    rest = density - amounts @ stains.astype(np.float32)
    scaled = amounts * np.stack([haematoxylin, dab], axis=-1)
    return np.clip(scaled @ stains.astype(np.float32) + rest, 0, None).astype(np.float32)


def _sections(u: _Field, v: _Field, edge: _Field) -> _Field:
    """Two uneven sections lying side by side: 1 on tissue, 0 on glass, soft between."""
    left = np.hypot((u - 0.34) / 0.30, (v - 0.50) / 0.43) + edge
    right = np.hypot((u - 0.79) / 0.16, (v - 0.47) / 0.33) - edge
    inside = np.minimum(left, right)
    return np.clip((1.0 - inside) * 90, 0, 1).astype(np.float32)
