"""Requests of the IIIF Image API 3.0: region, size, rotation, quality and format of a picture.

Source: IIIF Image API 3.0.0, section 4. What is not supported (other angles, enlarging, other
formats) is refused like what is written wrongly.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from portal.core.errors import InvalidInputError

MAX_SIDE_PX = 2048  # an answer is 12 MiB in memory and some tenths of a second of one processor
QUALITIES = ("default", "color", "gray", "bitonal")
FORMATS = {"jpg": "image/jpeg", "png": "image/png"}
_PX = r"[0-9]{1,9}"
_SHARE = r"[0-9]{1,9}(?:\.[0-9]{1,12})?"
_REGION = re.compile(rf"({_PX}),({_PX}),({_PX}),({_PX})")
_REGION_PCT = re.compile(rf"pct:({_SHARE}),({_SHARE}),({_SHARE}),({_SHARE})")
_SIZE = re.compile(rf"(!?)({_PX})?,({_PX})?")
_SIZE_PCT = re.compile(rf"pct:({_SHARE})")
_ROTATION = re.compile(rf"(!?)({_SHARE})")


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """Region, size, rotation, quality and format of one image request.

    Attributes:
        left, top, width, height: Level-0 pixels, inside the canvas.
        out: (width, height) before rotation.
        turns: Clockwise, in units of 90 degrees; after mirroring.
    """

    left: int
    top: int
    width: int
    height: int
    out: tuple[int, int]
    mirrored: bool
    turns: int
    quality: str
    extension: str

    def canonical(self, size: tuple[int, int]) -> str:
        """The one address of these pixels, below the service's (section 4.7).

        Args:
            size: of the canvas.
        """
        box = (self.left, self.top, self.width, self.height)
        region = "full" if box == (0, 0, *size) else ",".join(map(str, box))
        out = (
            "max"
            if self.out == largest(self.width, self.height)
            else f"{self.out[0]},{self.out[1]}"
        )
        rotation = f"{'!' if self.mirrored else ''}{90 * self.turns}"
        return f"{region}/{out}/{rotation}/{self.quality}.{self.extension}"


def image_request(
    region: str, size: str, rotation: str, quality: str, extension: str, *, canvas: tuple[int, int]
) -> ImageRequest:
    """Read the parts of an address.

    Args:
        canvas: (width, height) in level-0 pixels.
    Raises:
        InvalidInputError: a part is malformed, outside the image, enlarges, or is not supported.
    """
    if extension not in FORMATS:
        raise _wrong("format", extension, "jpg or png")
    if quality not in QUALITIES:
        raise _wrong("quality", quality, ", ".join(QUALITIES))
    left, top, width, height = _region(region, *canvas)
    mirrored, turns = _parse_rotation(rotation)
    out = _size(size, width, height)
    return ImageRequest(left, top, width, height, out, mirrored, turns, quality, extension)


def largest(width: int, height: int) -> tuple[int, int]:
    """The largest size in which a whole region is given out."""
    return _fit_size(width, height, MAX_SIDE_PX, MAX_SIDE_PX)


def _region(text: str, width: int, height: int) -> tuple[int, int, int, int]:
    """Cut at the edges of the canvas."""
    if text == "full":
        return 0, 0, width, height
    if text == "square":
        side = min(width, height)
        return (width - side) // 2, (height - side) // 2, side, side
    if match := _REGION.fullmatch(text):
        left, top, across, down = (int(part) for part in match.groups())
    elif match := _REGION_PCT.fullmatch(text):
        shares = [float(part) / 100 for part in match.groups()]
        left, top = round(shares[0] * width), round(shares[1] * height)
        across, down = round(shares[2] * width), round(shares[3] * height)
    else:
        raise _wrong("region", text, "full, square, x,y,w,h or pct:x,y,w,h")
    if not across or not down or left >= width or top >= height:
        raise _wrong("region", text, f"a part of the {width} x {height} pixels")
    return left, top, min(across, width - left), min(down, height - top)


def _size(text: str, width: int, height: int) -> tuple[int, int]:
    if text == "max":
        return largest(width, height)
    if match := _SIZE_PCT.fullmatch(text):
        share = float(match[1]) / 100
        size = (max(1, round(width * share)), max(1, round(height * share)))
        if not share:
            raise _wrong("size", text, "more than pct:0")
        return _parse_size(text, size, width, height)
    match = _SIZE.fullmatch(text)
    if match is None or not (match[2] or match[3]) or (match[1] and not (match[2] and match[3])):
        raise _wrong("size", text, "max, w, or ,h or pct:n or w,h or !w,h without ^")
    across, down = int(match[2] or 0), int(match[3] or 0)
    if (match[2] and not across) or (match[3] and not down):
        raise _wrong("size", text, "at least one pixel")
    if match[1]:
        return _fit_size(width, height, min(across, MAX_SIDE_PX), min(down, MAX_SIDE_PX))
    across = across or max(1, round(width * down / height))
    down = down or max(1, round(height * across / width))
    return _parse_size(text, (across, down), width, height)


def _fit_size(width: int, height: int, across: int, down: int) -> tuple[int, int]:
    """Largest size that fits, never enlarged."""
    scale = min(1.0, across / width, down / height)
    return max(1, math.floor(width * scale + 1e-9)), max(1, math.floor(height * scale + 1e-9))


def _parse_size(text: str, size: tuple[int, int], width: int, height: int) -> tuple[int, int]:
    if size[0] > width or size[1] > height:
        raise _wrong("size", text, f"at most the {width} x {height} pixels of the region")
    if max(size) > MAX_SIDE_PX:
        raise _wrong("size", text, f"at most {MAX_SIDE_PX} pixels a side; read the rest in parts")
    return size


def _parse_rotation(text: str) -> tuple[bool, int]:
    match = _ROTATION.fullmatch(text)
    degrees = float(match[2]) if match else -1.0
    if match is None or degrees > 360 or degrees % 90:
        raise _wrong("rotation", text, "0, 90, 180 or 270, with ! before it to mirror")
    return bool(match[1]), int(degrees // 90) % 4


def _wrong(part: str, text: str, right: str) -> InvalidInputError:
    return InvalidInputError(f"{part}: {text[:60]} is not available here; expected {right}.")
