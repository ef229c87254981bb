"""Images of evaluations: folders of stills or of consecutive frames."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from ml.errors import BadInputError
from ml.keypoints.pixels import to_u8
from ml.mosaic.frames.sources import IMAGE_SUFFIXES, MASK_NAMES
from ml.natural_order import natural_sort
from ml.training.common.sequence import folder_name
from ml.types import ArrayBool, ImageU8


@dataclass(frozen=True, slots=True)
class EvaluationImage:
    """An image, its mask and its scene.

    Attributes:
        name: folder and file name.
        rgb: (H, W, 3) uint8.
        mask: (H, W) bool, the camera's field of view, or None if the folder holds no mask.
        scene: operation or sequence; images of two scenes are unrelated.
    """

    name: str
    rgb: ImageU8
    mask: ArrayBool | None
    scene: str


def read_images(
    folders: Sequence[Path], *, count: int, long_side_px: int
) -> tuple[EvaluationImage, ...]:
    """Read images of several folders, evenly spaced in each, about as many of each.

    Args:
        count: at most this many over all folders.
        long_side_px: larger images are shrunk.
    Returns:
        Interleaved: the first of each folder, then the second of each.
    Raises:
        BadInputError: ``count`` below 1, a folder without an image, or one that cannot be read.
    """
    if count < 1:
        raise BadInputError(f"images: expected at least 1, got {count}")
    # The published pairs were drawn from the plain order of names.
    names = [sorted(image_paths(folder)) for folder in folders]
    shares = _fair_shares([len(paths) for paths in names], count)
    chosen = [
        [paths[i] for i in np.linspace(0, len(paths) - 1, share).round().astype(int)]
        for paths, share in zip(names, shares, strict=True)
    ]
    turns = [paths[turn] for turn in range(max(shares)) for paths in chosen if turn < len(paths)]
    return tuple(read_image(path, long_side_px=long_side_px) for path in turns)


def image_paths(folder: Path) -> list[Path]:
    """The images of a folder in natural order, without its masks.

    Raises:
        BadInputError: it is not a folder, or holds no image.
    """
    if not folder.is_dir():
        raise BadInputError(f"{folder.name}: expected a folder of images, found none")
    paths = natural_sort(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in IMAGE_SUFFIXES and path.name not in MASK_NAMES
    )
    if not paths:
        raise BadInputError(f"{folder.name}: expected a folder of images, found no image")
    return paths


def read_image(path: Path, *, long_side_px: int) -> EvaluationImage:
    """Read an image as RGB, with a long side of at most ``long_side_px``.

    Raises:
        BadInputError: it cannot be read.
    """
    rgb = _read_rgb(path)
    scale = min(1.0, long_side_px / max(rgb.shape[:2]))
    size = (max(1, round(rgb.shape[1] * scale)), max(1, round(rgb.shape[0] * scale)))
    mask = _read_mask(path.parent)
    if mask is not None and mask.shape == rgb.shape[:2]:
        small = cv2.resize(mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST)
        mask = small.astype(np.bool_)
    else:
        mask = None
    if scale < 1.0:
        rgb = np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), np.uint8)
    return EvaluationImage(f"{folder_name(path.parent)}/{path.name}", rgb, mask, scene_of(path))


def scene_of(path: Path) -> str:
    """Scene of an image: its folder if a numbered frame, else folder and first part of its name.

    ``laparoscopy-stills/00001-21711-frame-12190.jpg`` is scene ``laparoscopy-stills/00001``,
    ``sinus-4584/00004584.jpg`` is scene ``sinus-4584``.
    """
    folder = folder_name(path.parent)
    if path.stem.isdigit():
        return folder
    return f"{folder}/{re.split(r'[-_]', path.stem)[0]}"


def unrelated_pairs(
    images: Sequence[EvaluationImage], *, count: int, seed: int
) -> list[tuple[EvaluationImage, EvaluationImage]]:
    """Draw pairs of images of different scenes, without repetition; all if there are fewer."""
    pairs = [(a, b) for i, a in enumerate(images) for b in images[i + 1 :] if a.scene != b.scene]
    order = np.random.default_rng(seed).permutation(len(pairs))[:count]
    return [pairs[i] for i in order]


def consecutive_pairs(
    folders: Sequence[Path], *, gaps: Sequence[int], count: int, long_side_px: int
) -> list[tuple[EvaluationImage, EvaluationImage]]:
    """Pairs of frames of sequences, evenly spaced, at most ``count`` over all folders and gaps.

    Raises:
        BadInputError: a folder holds no image.
    """
    slots = [(folder, gap) for folder in folders for gap in gaps]
    pairs = []
    for (folder, gap), share in zip(slots, _fair_shares([count] * len(slots), count), strict=True):
        paths = image_paths(folder)
        last = len(paths) - 1 - gap
        if last < 0 or share == 0:
            continue
        middles = (np.arange(share) + 0.5) * (last + 1) / share - 0.5
        for start in np.unique(middles.round().astype(int)):
            a, b = (read_image(paths[i], long_side_px=long_side_px) for i in (start, start + gap))
            pairs.append((a, b))
    return pairs


def _fair_shares(available: Sequence[int], count: int) -> list[int]:
    """Number to take of each; their sum is at most ``count``."""
    shares = [0] * len(available)
    while sum(shares) < min(count, sum(available)):
        for i, max_share in enumerate(available):
            if shares[i] < max_share and sum(shares) < count:
                shares[i] += 1
    return shares


def _read_rgb(path: Path) -> ImageU8:
    data = np.frombuffer(path.read_bytes(), np.uint8)
    pixels = cv2.imdecode(data, cv2.IMREAD_COLOR) if len(data) else None
    if pixels is None:
        raise BadInputError(f"{path.name}: expected an image, found nothing to read")
    return to_u8(np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)))


def mask_file(folder: Path) -> Path | None:
    """Mask image in a folder or the one above it, None if there is none."""
    around = [near / name for name in MASK_NAMES for near in (folder, folder.resolve().parent)]
    return next((path for path in around if path.is_file()), None)


def _read_mask(folder: Path) -> ArrayBool | None:
    path = mask_file(folder)
    plane = None if path is None else cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
    return None if plane is None else np.asarray(plane > 127)
