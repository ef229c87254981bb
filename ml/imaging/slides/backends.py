"""Readers of pixels: OpenSlide's levels, or one decoded still.

Handles are safe under threads, and after a fork: OpenSlide would share file offsets between
processes, so a process that did not open the handle opens another.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
import openslide
from PIL import Image

from ml.errors import CorruptFileError, UnsupportedFormatError
from ml.imaging.formats.multi_file import is_index
from ml.imaging.formats.sniff import is_one_file_slide
from ml.imaging.formats.tiff import TiffDirectory
from ml.imaging.formats.tiff_coding import compression_name
from ml.imaging.formats.tiff_layout import read_layout
from ml.imaging.limits import require_slide_size
from ml.imaging.slides.display_range import shown
from ml.imaging.slides.grid import GENERIC, NATIVE_VENDORS, StoredLevel, match_directories
from ml.imaging.slides.metadata import layout_mpp, rgb_profile
from ml.imaging.slides.stills import (
    is_deep_image,
    open_still,
    still_icc_profile,
    still_mpp,
    still_range,
    still_values,
)
from ml.types import DisplayRange, ImageU8

_UNSUPPORTED = re.compile(r"(?i)\bunsupported\b|\bcan ?not handle\b|\bnot supported\b")
_COMPRESSION = re.compile(r"compression: (\d+)$")
"""Messages of OpenSlide and libtiff for an unknown coding."""
_OPENSLIDE_BYTES = 64 * 1024 * 1024
"""OpenSlide's cache of decoded tiles, shared by all slides of a process."""


class Reader(Protocol):
    """Pixels of the stored levels; ``read`` takes level pixels and answers white outside."""

    vendor: str
    stored: tuple[StoredLevel, ...]
    properties: Mapping[str, str]
    icc_profile: bytes | None
    mpp: tuple[float | None, float | None]
    display_range: DisplayRange | None

    def read(self, level: int, x: int, y: int, width: int, height: int) -> ImageU8:
        """(height, width, 3) uint8 RGB at level pixels (x, y)."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


def slide_vendor(path: str | Path) -> str | None:
    """OpenSlide's name of the format ("aperio", "generic-tiff", ...), None if it is not a slide.

    OpenSlide also accepts text files as index files, and opens any file that they name. It is
    therefore given only single-file formats with a known signature, and index files that
    ``check_index`` accepts.

    Raises:
        UnsupportedFormatError, CorruptFileError: an index that ``check_index`` refuses.
    """
    if not is_index(Path(path)) and not is_one_file_slide(path):
        return None
    try:
        return openslide.OpenSlide.detect_format(os.fspath(path))
    except openslide.OpenSlideError:
        return None


class OpenSlideReader:
    """Reader of OpenSlide's formats; associated images (label, macro) are never read."""

    display_range: DisplayRange | None = None

    def __init__(self, path: Path, vendor: str) -> None:
        self._path = path
        self._handles: dict[int, openslide.OpenSlide] = {}
        slide = self._handle()
        self.vendor = vendor
        self.properties: Mapping[str, str] = _properties(slide)
        self.mpp = (
            _float(self.properties.get("openslide.mpp-x")),
            _float(self.properties.get("openslide.mpp-y")),
        )
        sizes = slide.level_dimensions
        require_slide_size(*sizes[0])
        levels: list[tuple[int, TiffDirectory | None]] = [(at, None) for at in range(len(sizes))]
        if vendor in NATIVE_VENDORS:
            layout = read_layout(path)
            levels = match_directories(layout, sizes)
            if vendor == GENERIC:
                self.mpp = layout_mpp(layout)
        self._numbers = [number for number, _ in levels]
        self.stored = tuple(
            StoredLevel(*sizes[at], downsample=slide.level_downsamples[at], directory=directory)
            for at, directory in levels
        )
        self.icc_profile = rgb_profile(self._profile(slide))

    def _handle(self) -> openslide.OpenSlide:
        # a handle of another process stays in the dict: closing it could wait for a lock whose
        # owner was not copied by the fork
        pid = os.getpid()
        handle = self._handles.get(pid)
        if handle is None:
            try:
                handle = openslide.OpenSlide(os.fspath(self._path))
            except (openslide.OpenSlideError, OSError) as error:
                raise _refusal("the slide cannot be opened", error) from error
            handle.set_cache(_cache(pid))
            handle = self._handles.setdefault(pid, handle)
        return handle

    def _profile(self, slide: openslide.OpenSlide) -> bytes | None:
        tagged = self.stored[0].directory
        if tagged is not None:
            return tagged.icc_profile
        try:
            profile = slide.color_profile
        except (openslide.OpenSlideError, OSError):
            return None
        return None if profile is None else bytes(profile.tobytes())

    def read(self, level: int, x: int, y: int, width: int, height: int) -> ImageU8:
        """(height, width, 3) uint8 RGB at level pixels (x, y), white where nothing is stored."""
        downsample = self.stored[level].downsample
        location = (round(x * downsample), round(y * downsample))
        slide = self._handle()
        try:
            image = slide.read_region(location, self._numbers[level], (width, height))
        except openslide.OpenSlideError as error:
            # OpenSlide refuses every later read of a handle that failed once
            self._handles.pop(os.getpid(), None)
            raise _refusal(f"level {level} at ({x}, {y}) cannot be decoded", error) from error
        return _flatten_on_white(image)

    def close(self) -> None:
        """Close this process' handle."""
        handle = self._handles.pop(os.getpid(), None)
        if handle is not None:
            handle.close()


class StillReader:
    """Reader of one level, decoded on opening, since libvips cannot decode after a fork."""

    vendor = "still"
    properties: Mapping[str, str] = {}

    def __init__(self, path: Path, display_range: DisplayRange | None = None) -> None:
        image = open_still(path)
        self._values = still_values(image)
        self._has_alpha = bool(image.hasalpha())
        self.display_range = display_range if is_deep_image(image) else None
        if self.display_range is None and is_deep_image(image):
            self.display_range = still_range(path)
        self.stored: tuple[StoredLevel, ...] = (StoredLevel(image.width, image.height, 1.0),)
        self.icc_profile = still_icc_profile(image)
        self.mpp = still_mpp(image)

    def read(self, level: int, x: int, y: int, width: int, height: int) -> ImageU8:
        """(height, width, 3) uint8 RGB, white outside the image."""
        source = self._values
        out: ImageU8 = np.full((height, width, 3), 255, np.uint8)
        left, top = max(x, 0), max(y, 0)
        right, bottom = min(x + width, source.shape[1]), min(y + height, source.shape[0])
        if right > left and bottom > top:
            inside = source[top:bottom, left:right]
            if self.display_range is not None:
                inside = shown(inside, self.display_range, has_alpha=self._has_alpha)
            out[top - y : bottom - y, left - x : right - x] = inside
        return out

    def close(self) -> None:
        """Release the decoded pixels."""
        self._values = self._values[:0, :0]


_caches: dict[int, openslide.OpenSlideCache] = {}


def _cache(pid: int) -> openslide.OpenSlideCache:
    cache = _caches.get(pid)
    if cache is None:
        cache = _caches.setdefault(pid, openslide.OpenSlideCache(_OPENSLIDE_BYTES))
    return cache


def _flatten_on_white(image: Image.Image) -> ImageU8:
    rgba = np.asarray(image)
    alpha = rgba[..., 3]
    if alpha.min() == 255:
        return np.ascontiguousarray(rgba[..., :3])
    white = Image.new("RGBA", image.size, (255, 255, 255, 255))
    white.alpha_composite(image)
    return np.ascontiguousarray(np.asarray(white)[..., :3])


def _properties(slide: openslide.OpenSlide) -> dict[str, str]:
    """Properties of the file, without values whose name is invalid.

    A name that is not UTF-8 is listed with its bad bytes replaced, and then not found by that name.
    """
    items = ((name, slide.properties.get(name)) for name in slide.properties)
    return {name: value for name, value in items if value is not None}


def _float(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None


def _refusal(subject: str, error: Exception) -> CorruptFileError | UnsupportedFormatError:
    """Error for damage, or for a coding that OpenSlide does not support."""
    text = _line(error)
    if not _UNSUPPORTED.search(text):
        return CorruptFileError(f"{subject}, it is truncated or damaged: {text}")
    number = _COMPRESSION.search(text)
    text = f"it is compressed with {compression_name(int(number[1]))}" if number else text
    return UnsupportedFormatError(f"{subject}, its coding cannot be read: {text}")


def _line(error: Exception) -> str:
    line = (str(error).splitlines() or ["unknown error"])[0]
    return " ".join(word for word in line.split() if "/" not in word)[:200]
