"""Pictures with letters and other marks drawn over them, for the network to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from ml.imaging.revealing.network import STRIDE
from ml.training.letters.fonts import Use, drawn, line_of_text
from ml.types import ArrayF32, ImageU8

UNSURE = 255
"""In a target: around a line, where no answer is wrong."""


@dataclass(frozen=True, slots=True)
class SceneConfig:
    """What is drawn."""

    side_px: int = 112  # of a picture; the network sees 31 px to each side
    text_share: float = 0.6  # of the pictures
    shapes_share: float = 0.5  # with lines, frames, scales and dots, which are not text
    plain_share: float = 0.15  # on made grounds: one colour, ramps, noise, stripes
    turned_share: float = 0.15  # by quarter turns, as on labels
    least_height_px: int = 7  # of capitals
    most_height_px: int = 28  # larger ones are found in a reduced picture
    least_contrast: float = 30.0  # between ink and ground, grey levels


def scene(
    grounds: Sequence[ImageU8], config: SceneConfig, *, rng: np.random.Generator, use: Use
) -> tuple[ImageU8, ImageU8]:
    """A picture (S, S, 3) and where text is (S / 4, S / 4): 0, 1 or ``UNSURE``."""
    side = config.side_px
    image = _ground(grounds, config, rng)
    if rng.random() < config.shapes_share:
        for _ in range(int(rng.integers(1, 5))):
            _shape(image, rng)
    target = np.zeros((side, side), np.uint8)
    if rng.random() < config.text_share:
        for _ in range(int(rng.integers(1, 4))):
            _write(image, target, config, rng, use)
    if rng.random() < config.turned_share:
        turns = int(rng.integers(1, 4))
        image, target = np.rot90(image, turns).copy(), np.rot90(target, turns).copy()
    small = target.reshape(side // STRIDE, STRIDE, side // STRIDE, STRIDE)
    is_text, is_unsure = (small == 1).mean((1, 3)), (small > 0).any((1, 3))
    answer = np.where(is_text > 0.5, 1, np.where(is_unsure, UNSURE, 0)).astype(np.uint8)
    return _worn(image, rng), answer


def write_line(
    image: ImageU8,
    ink: ArrayF32,
    xy: tuple[int, int],
    color: ArrayF32,
    *,
    opacity: float = 1.0,
) -> None:
    """Blend a line's ink into an image, its top left corner at ``xy``, cut at the edges."""
    x, y = xy
    part = image[max(y, 0) : y + ink.shape[0], max(x, 0) : x + ink.shape[1]]
    cut = ink[max(-y, 0) :, max(-x, 0) :][: part.shape[0], : part.shape[1], None] * opacity
    part[:] = np.clip(part * (1 - cut) + color * cut + 0.5, 0, 255).astype(np.uint8)


def _ground(grounds: Sequence[ImageU8], config: SceneConfig, rng: np.random.Generator) -> ImageU8:
    side = config.side_px
    if rng.random() < config.plain_share:
        return made_ground(side, rng)
    source = grounds[int(rng.integers(len(grounds)))]
    cut = int(side * 2 ** rng.uniform(-0.7, 1.3))
    cut = min(cut, *source.shape[:2])
    top, left = (int(rng.integers(source.shape[axis] - cut + 1)) for axis in (0, 1))
    crop = source[top : top + cut, left : left + cut]
    method = cv2.INTER_AREA if cut > side else cv2.INTER_LINEAR
    out = np.asarray(cv2.resize(crop, (side, side), interpolation=method), np.uint8)
    if rng.random() < 0.5:
        out = out[:, ::-1]
    gain, shift = rng.uniform(0.7, 1.2), rng.uniform(-20, 20)
    return np.clip(out * gain + shift, 0, 255).astype(np.uint8)


def made_ground(side: int, rng: np.random.Generator) -> ImageU8:
    """(side, side, 3) uint8: one colour, a ramp, stripes, checks or blobs, perhaps with noise."""
    rows, columns = np.mgrid[:side, :side].astype(np.float32)
    angle, wave = rng.uniform(0, np.pi), rng.uniform(3, 40)
    along = rows * np.sin(angle) + columns * np.cos(angle)
    across = rows * np.cos(angle) - columns * np.sin(angle)
    kind = int(rng.integers(6))
    if kind == 0:
        mix = np.zeros((side, side), np.float32)
    elif kind == 1:
        mix = along / side
    elif kind == 2:
        mix = np.sin(along * 2 * np.pi / wave) > 0
    elif kind == 3:
        mix = (np.sin(along * np.pi / wave) > 0) ^ (np.sin(across * np.pi / wave) > 0)
    else:
        blobs = cv2.GaussianBlur(rng.random((side, side), np.float32), (0, 0), wave / 4)
        mix = (blobs - blobs.min()) / (np.ptp(blobs) + 1e-6) if kind == 4 else blobs > blobs.mean()
    mix = np.asarray(mix, np.float32)[..., None]
    one, other = _color(rng), _color(rng)
    noise = rng.normal(0, rng.choice([0, 3, 15, 40]), (side, side, 3 if rng.random() < 0.5 else 1))
    return np.clip(one + (other - one) * mix + noise, 0, 255).astype(np.uint8)


def _color(rng: np.random.Generator) -> ArrayF32:
    kind = rng.random()
    if kind < 0.35:
        return np.full(3, rng.choice([0.0, 255.0, rng.uniform(0, 255)]), np.float32)
    return np.asarray(rng.uniform(0, 255, 3), np.float32)


def _shape(image: ImageU8, rng: np.random.Generator) -> None:
    """Draw what appears in pictures beside text: none of it is a letter."""
    side = image.shape[0]
    color = tuple(int(value) for value in _color(rng))
    at = [tuple(int(v) for v in rng.integers(-10, side + 10, 2)) for _ in range(2)]
    thick = int(rng.integers(1, 6))
    kind = int(rng.integers(7))
    if kind == 0:
        cv2.line(image, at[0], at[1], color, thick, cv2.LINE_AA)
    elif kind == 1:
        cv2.rectangle(image, at[0], at[1], color, -1 if rng.random() < 0.4 else thick)
    elif kind == 2:
        radius = int(rng.integers(3, side))
        cv2.circle(image, at[0], radius, color, -1 if rng.random() < 0.4 else thick, cv2.LINE_AA)
    elif kind == 3:
        cv2.arrowedLine(image, at[0], at[1], color, thick, cv2.LINE_AA, 0, 0.2)
    elif kind == 4:  # a scale with ticks
        x, y = at[0]
        long, step = int(rng.integers(20, side)), int(rng.integers(6, 30))
        cv2.line(image, (x, y), (x + long, y), color, thick)
        for tick in range(x, x + long + 1, step):
            cv2.line(image, (tick, y - 4), (tick, y + 4), color, max(1, thick // 2))
    elif kind == 5:  # a row or field of dots, as nuclei and glints are
        count = int(rng.integers(4, 60))
        spread = rng.integers(5, side, 2)
        places = rng.normal(at[0], spread / 3, (count, 2)).astype(int)
        for place in places:
            axes = tuple(int(v) for v in rng.integers(1, 9, 2))
            turn = float(rng.uniform(0, 180))
            cv2.ellipse(image, tuple(int(v) for v in place), axes, turn, 0, 360, color, -1)
    else:  # the rim of a scope: dark beyond a circle
        rows, columns = np.mgrid[:side, :side]
        beyond = np.hypot(rows - at[0][1], columns - at[0][0]) > rng.integers(side // 3, side)
        image[beyond] = int(rng.integers(0, 20))


def _write(
    image: ImageU8,
    target: ImageU8,
    config: SceneConfig,
    rng: np.random.Generator,
    use: Use,
) -> None:
    low, high = np.log(config.least_height_px), np.log(config.most_height_px)
    height = round(float(np.exp(rng.uniform(low, high))))
    ink = drawn(line_of_text(rng), height, rng=rng, use=use)
    tilt = float(rng.normal(0, 2)) if rng.random() < 0.3 else 0.0
    if tilt:
        ink = _tilted(ink, tilt)
    y = int(rng.integers(0, max(1, config.side_px - height)))
    x = int(rng.integers(min(-5, config.side_px - ink.shape[1]), config.side_px - 2 * height))
    high_px, wide = ink.shape
    part = image[max(y, 0) : y + high_px, max(x, 0) : x + wide]
    if part.size == 0:
        return
    color, opacity = _color(rng), float(rng.choice([1.0, 1.0, rng.uniform(0.5, 1)]))
    for _ in range(20):
        if abs(float((color - part.mean((0, 1))).mean())) * opacity >= config.least_contrast:
            break
        color = _color(rng)
    else:
        color = np.full(3, 255.0 if part.mean() < 128 else 0.0, np.float32)
    if rng.random() < 0.2:  # a ground of its own
        pad = int(rng.integers(1, height))
        box = image[max(y - pad, 0) : y + high_px + pad, max(x - pad, 0) : x + wide + pad]
        ours = np.s_[max(y - pad, 0) : y + high_px + pad, max(x - pad, 0) : x + wide + pad]
        target[ours] = np.where(target[ours] == 1, UNSURE, target[ours])  # covered
        box[:] = 255 - color.astype(np.uint8) if rng.random() < 0.6 else box // 3
    if rng.random() < 0.25:  # a shadow
        write_line(image, ink, (x + 1, y + 1), 255 - color, opacity=opacity)
    write_line(image, ink, (x, y), color, opacity=opacity)
    _mark(target, x, y, wide, high_px)


def _mark(target: ImageU8, x: int, y: int, wide: int, high: int) -> None:
    """A line's place, with a margin in which nothing counts."""
    margin = max(4, high // 3)
    around = target[
        max(y - margin, 0) : max(y + high + margin, 0), max(x - margin, 0) : x + wide + margin
    ]
    around[around == 0] = UNSURE
    inner = high // 6
    target[max(y + inner, 0) : max(y + high - inner, 0), max(x, 0) : max(x + wide, 0)] = 1


def _tilted(ink: ArrayF32, degrees: float) -> ArrayF32:
    high, wide = ink.shape
    extra = int(abs(np.sin(np.radians(degrees))) * wide) + 2
    about = cv2.getRotationMatrix2D((wide / 2, high / 2), degrees, 1.0)
    about[1, 2] += extra / 2
    return np.asarray(cv2.warpAffine(ink, about, (wide, high + extra)), np.float32)


def _worn(image: ImageU8, rng: np.random.Generator) -> ImageU8:
    """As cameras, scaling and JPEG leave a picture."""
    if rng.random() < 0.3:
        image = np.asarray(cv2.GaussianBlur(image, (0, 0), float(rng.uniform(0.3, 0.9))), np.uint8)
    if rng.random() < 0.2:
        noisy = image + rng.normal(0, rng.uniform(2, 12), image.shape)
        image = np.clip(noisy, 0, 255).astype(np.uint8)
    if rng.random() < 0.7:
        quality = [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(35, 97))]
        image = np.asarray(cv2.imdecode(cv2.imencode(".jpg", image, quality)[1], 1), np.uint8)
    return image
