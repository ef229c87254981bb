"""Colours of video frames: the matrix and range of their numbers, and the way to sRGB.

``tag_colours`` decides for every decoded frame, by its tags, else by the rule of browsers; every
conversion reads that decision. Browsers were measured with Chromium 156: see ``are_shown_alike``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import cv2
import numpy as np
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange, Colorspace, Interpolation

from ml.types import ArrayF32, ImageU8

# ITU-T H.273, as FFmpeg numbers them in AVColorSpace, AVColorPrimaries and
# AVColorTransferCharacteristic
BT709, UNSPECIFIED, BT470BG, BT601 = 1, 2, 5, 6
_SMPTE240M, _BT2020, _BT2020_CONSTANT, _P3_DCI, _P3 = 7, 9, 10, 11, 12
_SRGB, _BT2020_10_BIT, PQ, HLG = 13, 14, 16, 18
_MATRICES: Final = frozenset({BT709, 4, BT470BG, BT601, _SMPTE240M, _BT2020})
"""Matrices that swscale converts; a frame with another one is treated as untagged."""

_HD_LINES = 720
_UNTAGGED_BT601_CODECS = ("vp9", "av1")
_ACCURATE = Interpolation.BILINEAR | Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INT

_REFERENCE_WHITE = 203.0  # cd/m2, the white of graphics in HDR: ITU-R BT.2408-7, table 1
_PQ_PEAK, _HLG_PEAK = 10_000.0, 1_000.0  # cd/m2: BT.2100-2, table 4; nominal peak of table 5
_KNEE = 0.75  # of the white: what is brighter is compressed
_BT709_FROM: Final = {
    _BT2020: ((1.6605, -0.5876, -0.0728), (-0.1246, 1.1329, -0.0083), (-0.0182, -0.1006, 1.1187)),
    _P3: ((1.2249, -0.2247, 0.0), (-0.0420, 1.0419, 0.0), (-0.0197, -0.0786, 1.0979)),
}
"""Linear RGB to linear RGB of BT.709: BT.2407-0, section 2; Display P3 by the same calculation."""
_BT2020_LUMA: Final = (0.2627, 0.6780, 0.0593)


def tag_colours(frame: VideoFrame, codec: str) -> None:
    """Set the matrix and the range of a frame that does not state them, as browsers do.

    H.264, MPEG and Motion JPEG of less than 720 lines are BT.601, larger ones BT.709; full range
    without a matrix, VP9 and AV1 are BT.601. RGB has no matrix.

    Args:
        codec: FFmpeg's canonical name, such as "h264".
    """
    if frame.format.is_rgb:
        return
    if frame.color_range == ColorRange.UNSPECIFIED:
        is_full = frame.format.name.startswith("yuvj")
        frame.color_range = ColorRange.JPEG if is_full else ColorRange.MPEG
    if frame.colorspace == _BT2020_CONSTANT:
        frame.colorspace = _BT2020
    if frame.colorspace not in _MATRICES:
        is_small = frame.height < _HD_LINES or codec in _UNTAGGED_BT601_CODECS
        is_bt601 = is_small or frame.color_range == ColorRange.JPEG
        frame.colorspace = BT601 if is_bt601 else BT709


def are_shown_alike(context: VideoCodecContext, *, is_taller: bool) -> bool:
    """Return whether browsers show the colours of a video like ``rgb_pixels``.

    Chromium ignores tags that are incomplete, and converts primaries and transfer characteristics
    that differ from those of sRGB.

    Args:
        context: of the decoder, with the tags of the file.
        is_taller: square pixels need more lines than the file has; Chromium counts those lines.
    """
    codec = context.codec.canonical_name
    matrix, primaries, transfer = context.colorspace, context.color_primaries, context.color_trc
    if (primaries, transfer) == (UNSPECIFIED, UNSPECIFIED):
        if codec == "vp9":  # it has a matrix of its own; Chromium ignores the range
            is_full = context.color_range == ColorRange.JPEG
            return matrix in (UNSPECIFIED, BT709, BT470BG, BT601) and not is_full
        if codec == "vp8":  # BT.601 by its definition; Chromium goes by the lines
            return context.height < _HD_LINES and not is_taller
        return matrix == UNSPECIFIED and not is_taller
    has_srgb_primaries = primaries in (BT709, BT601, _SMPTE240M)
    is_srgb = has_srgb_primaries and transfer in (BT709, BT601, _SRGB, _BT2020_10_BIT)
    return matrix in (BT709, BT470BG, BT601) and is_srgb


def dynamic_range_name(frame: VideoFrame) -> str:
    """The name of a high dynamic range, "PQ" or "HLG"; empty for a frame of ordinary range."""
    return {PQ: "PQ", HLG: "HLG"}.get(int(frame.color_trc), "")


def rgb_pixels(frame: VideoFrame, size: tuple[int, int]) -> ImageU8:
    """(H, W, 3) uint8 sRGB of a tagged frame, scaled to ``size`` (width, height).

    Primaries of BT.2020 and P3 are converted, out-of-gamut colours are clipped; PQ and HLG are
    compressed to ordinary range. Primaries of standard definition are taken as those of sRGB.
    """
    width, height = size
    primaries = _wide_primaries(frame)
    if primaries is None:
        plain = frame.reformat(width=width, height=height, format="rgb24").to_ndarray()
        return np.asarray(plain, np.uint8)
    deep = frame.reformat(width=width, height=height, format="rgb48le").to_ndarray()
    transfer = int(frame.color_trc)
    linear = _to_linear(transfer if transfer in (PQ, HLG) else _SRGB)[deep]
    if transfer == HLG:  # the display's own gamma: BT.2100-2, table 5, at 1,000 cd/m2
        luma = linear @ np.asarray(_BT2020_LUMA, np.float32)
        linear *= np.power(luma, np.float32(0.2))[..., None] * (_HLG_PEAK / _REFERENCE_WHITE)
    linear = cv2.transform(linear, np.asarray(_BT709_FROM[primaries], np.float32))
    if transfer in (PQ, HLG):
        linear *= _compression(linear.max(axis=2))[..., None]
    steps = np.rint(np.clip(linear, 0, 1) * 65_535).astype(np.uint16)
    return np.ascontiguousarray(_srgb_from_linear()[steps])


def for_browsers(frame: VideoFrame, size: tuple[int, int]) -> VideoFrame:
    """A tagged frame scaled to ``size``, as 8-bit 4:2:0 for ``tag_rendition``.

    The matrix is BT.601 at any size: Chromium's conversion in software clips a coefficient of
    BT.709 and shows blue too dark by 6 of 255, while it is exact for BT.601.
    """
    if _wide_primaries(frame) is not None:
        frame = VideoFrame.from_ndarray(rgb_pixels(frame, size), format="rgb24")
    return frame.reformat(
        width=size[0],
        height=size[1],
        format="yuv420p",
        dst_colorspace=Colorspace.ITU601,
        dst_color_range=ColorRange.MPEG,
        interpolation=_ACCURATE,
    )


def tag_rendition(context: VideoCodecContext) -> None:
    """State the colours of ``for_browsers`` in a stream that is encoded."""
    context.colorspace, context.color_range = BT601, ColorRange.MPEG
    context.color_primaries = context.color_trc = BT709


def _wide_primaries(frame: VideoFrame) -> int | None:
    """BT.2020 or P3 if a frame has these primaries; None for others, shown as sRGB."""
    primaries = int(frame.color_primaries)
    if primaries == UNSPECIFIED and (frame.colorspace == _BT2020 or dynamic_range_name(frame)):
        primaries = _BT2020
    if primaries in (_P3_DCI, _P3):
        return _P3
    return _BT2020 if primaries == _BT2020 or dynamic_range_name(frame) else None


@lru_cache(maxsize=3)
def _to_linear(transfer: int) -> ArrayF32:
    """(65536,) float32: light for each value of 16 bits, 1 for the reference white.

    For HLG it is scene light, 1 at the peak.
    Source: BT.2100-2, tables 4 (PQ) and 5 (HLG); IEC 61966-2-1 (sRGB), which browsers use for all
    ordinary transfer characteristics.
    """
    value = np.linspace(0, 1, 65_536)
    if transfer == PQ:
        root = value ** (32 / 2_523)
        light = np.maximum(root - 107 / 128, 0) / (2_413 / 128 - 2_392 / 128 * root)
        light = light ** (8_192 / 1_305) * (_PQ_PEAK / _REFERENCE_WHITE)
    elif transfer == HLG:
        a, b, c = 0.17883277, 0.28466892, 0.55991073
        light = np.where(value <= 0.5, value**2 / 3, (np.exp((value - c) / a) + b) / 12)
    else:
        light = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    return light.astype(np.float32)


@lru_cache(maxsize=1)
def _srgb_from_linear() -> ImageU8:
    """(65536,) uint8: the inverse of ``_to_linear`` of sRGB."""
    light = np.linspace(0, 1, 65_536)
    value = np.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.rint(value * 255).astype(np.uint8)


def _compression(brightest: ArrayF32) -> ArrayF32:
    """Factors that bring the brightest of three channels below 1, the same for all three."""
    above = np.maximum(brightest - _KNEE, 0) / (1 - _KNEE)
    compressed = np.minimum(brightest, _KNEE) + (1 - _KNEE) * (1 - np.exp(-above))
    return np.asarray(compressed / np.maximum(brightest, 1e-6), np.float32)
