"""OME-NGFF (0.2 to 0.5): which image of a Zarr hierarchy is shown, its scale, plane and colours.

Of a hierarchy of several images, as bioformats2raw writes them, the largest that its OME-XML does
not call a label or macro is the slide.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ml.errors import CorruptFileError, UnsupportedFormatError
from ml.imaging.formats.ome import ome_images, secondary_name
from ml.imaging.formats.zarr_arrays import ZarrArray, read_array
from ml.imaging.formats.zarr_store import ZarrStore
from ml.imaging.limits import require_slide_size
from ml.types import JsonObject

_UM_PER_UNIT = {"micrometer": 1.0, "nanometer": 1e-3, "millimeter": 1e3, "meter": 1e6}
_OLD_AXES = "tczyx"
"""Of versions that do not name them."""
_MOST_LEVELS, _MOST_CHANNELS, _MOST_IMAGES = 32, 64, 256
_OME_XML = "OME/METADATA.ome.xml"
_MOST_XML_BYTES = 2**23
_COLOR = re.compile(r"[0-9A-Fa-f]{6}")
_RGB = ((255, 0, 0), (0, 255, 0), (0, 0, 255))


@dataclass(frozen=True, slots=True)
class NgffChannel:
    """How a channel is shown: from black at ``low`` to its colour at ``high``.

    Attributes:
        is_stated: The file states the window; otherwise it is that of all numbers the type holds.
    """

    index: int
    color: tuple[int, int, int]
    low: float
    high: float
    is_stated: bool = False


@dataclass(frozen=True, slots=True)
class NgffImage:
    """An image of a hierarchy.

    Attributes:
        path: of its group. levels: paths of its arrays below that, the finest first.
        array: the finest. axes: a letter for each of its axes, "y" and "x" last.
        plane: index on the axes before these, without the channel's.
        channels: those that are shown.
        multiscale: as the file states it, for whoever writes it again.
    """

    path: str
    levels: tuple[str, ...]
    array: ZarrArray
    axes: str
    plane: dict[str, int]
    channels: tuple[NgffChannel, ...]
    mpp_x: float | None
    mpp_y: float | None
    version: str
    multiscale: JsonObject

    @property
    def size_px(self) -> tuple[int, int]:
        """(width, height)."""
        return self.array.shape[-1], self.array.shape[-2]


def find_image(store: ZarrStore) -> NgffImage:
    """The image that is shown.

    Raises:
        UnsupportedFormatError: no OME-NGFF, a plate of many images, or axes in another order.
        CorruptFileError: its metadata is invalid. TooLargeError: beyond the limits.
    """
    try:
        return _found(store)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise CorruptFileError("the metadata of the OME-Zarr image is damaged") from error


def _found(store: ZarrStore) -> NgffImage:
    path, told = "", attributes_of(store, "")
    if "plate" in told or "well" in told:
        raise UnsupportedFormatError(
            "the OME-Zarr holds a plate of many images; send the images one by one"
        )
    if "multiscales" not in told:
        path = _largest(store)
        told = attributes_of(store, path)
    if "multiscales" not in told:
        raise UnsupportedFormatError(
            "the Zarr hierarchy holds no OME-NGFF image (it has no multiscales)"
        )
    multiscale = dict(told["multiscales"][0])
    levels = tuple(str(one["path"]) for one in multiscale["datasets"])
    if not 1 <= len(levels) <= _MOST_LEVELS or len(set(levels)) < len(levels):
        raise CorruptFileError("the metadata of the levels of the OME-Zarr image is damaged")
    array = read_array(store, _joined(path, levels[0]))
    axes = _axes(multiscale, len(array.shape))
    require_slide_size(array.shape[-1], array.shape[-2])
    scale = _scale(multiscale, axes)
    omero = told.get("omero") or {}
    return NgffImage(
        path=path,
        levels=levels,
        array=array,
        axes=axes,
        plane=_plane(omero, axes, array.shape),
        channels=_channels(omero, axes, array),
        mpp_x=scale.get("x"),
        mpp_y=scale.get("y"),
        version=_version(told.get("version") or multiscale.get("version")),
        multiscale=multiscale,
    )


def _largest(store: ZarrStore) -> str:
    """The group of the slide among several images: "0", "1" and so on."""
    described = store.read(_OME_XML, most_bytes=_MOST_XML_BYTES) or b""
    images = ome_images(described.decode("utf-8", "replace"))
    best, most = "0", -1
    for number in range(_MOST_IMAGES):
        told = attributes_of(store, str(number))
        if "multiscales" not in told:
            break
        is_secondary = number < len(images) and secondary_name(images[number].name)
        first = str(told["multiscales"][0]["datasets"][0]["path"])
        shape = read_array(store, _joined(str(number), first)).shape
        pixels = 0 if is_secondary else shape[-1] * shape[-2]
        if pixels > most:
            best, most = str(number), pixels
    return best


def attributes_of(store: ZarrStore, path: str) -> JsonObject:
    """What a group states by the rules of OME-NGFF, in either version of Zarr; {} if nothing."""
    below = f"{path}/" if path else ""
    told = store.json(f"{below}.zattrs")
    if told is None:
        found = (store.json(f"{below}zarr.json") or {}).get("attributes") or {}
        told = found.get("ome") or {}
    return dict(told)


def _version(told: Any) -> str:
    """As it is stated where that is a version, else "0.5"."""
    return told if isinstance(told, str) and re.fullmatch(r"\d\.\d", told) else "0.5"


def _joined(path: str, level: str) -> str:
    return f"{path}/{level}" if path else level


def _axes(multiscale: JsonObject, count: int) -> str:
    told = multiscale.get("axes")
    if told is None:
        axes = _OLD_AXES[-count:] if count == len(_OLD_AXES) else ""
    else:
        axes = "".join(str(one["name"] if isinstance(one, dict) else one).lower() for one in told)
    if len(axes) != count or not axes.endswith("yx") or not set(axes[:-2]) <= set("tcz"):
        raise UnsupportedFormatError(
            f"the OME-Zarr image has the axes {ascii(axes)[:30]}; expected t, c, z, y, x in this "
            "order, of which y and x are needed"
        )
    return axes


def _scale(multiscale: JsonObject, axes: str) -> dict[str, float]:
    """Microns per pixel along x and y, for axes whose unit is stated."""
    told = multiscale.get("axes") or []
    units = {
        str(one["name"]).lower(): _UM_PER_UNIT.get(str(one.get("unit")))
        for one in told
        if isinstance(one, dict)
    }
    factors = [1.0] * len(axes)
    steps = multiscale["datasets"][0].get("coordinateTransformations") or []
    for step in (*steps, *(multiscale.get("coordinateTransformations") or [])):
        if step.get("type") == "scale":
            factors = [a * float(b) for a, b in zip(factors, step["scale"], strict=True)]
    found = {
        axis: factor * (units.get(axis) or 0.0) for axis, factor in zip(axes, factors, strict=True)
    }
    return {axis: um for axis, um in found.items() if 0 < um < math.inf}


def _plane(omero: JsonObject, axes: str, shape: Sequence[int]) -> dict[str, int]:
    """The plane that is shown by default; the first where none is stated."""
    told = omero.get("rdefs") or {}
    wanted = {"t": told.get("defaultT"), "z": told.get("defaultZ")}
    sizes = dict(zip(axes, shape, strict=True))
    return {
        axis: min(max(0, int(wanted[axis] or 0)), sizes[axis] - 1) for axis in axes if axis in "tz"
    }


def _channels(omero: JsonObject, axes: str, array: ZarrArray) -> tuple[NgffChannel, ...]:
    """By the colours and windows stated; else three of 8 bits as RGB, else the first."""
    count = array.shape[axes.index("c")] if "c" in axes else 1
    full = float(2 ** (8 * array.dtype.itemsize) - 1)
    told = omero.get("channels") or []
    if told and len(told) == count <= _MOST_CHANNELS:
        shown = [
            NgffChannel(number, _color(one), *_window(one, full))
            for number, one in enumerate(told)
            if one.get("active", True)
        ]
        if shown:
            return tuple(shown)
    if count == len(_RGB) and array.dtype.itemsize == 1:
        return tuple(NgffChannel(number, color, 0.0, full) for number, color in enumerate(_RGB))
    return (NgffChannel(0, (255, 255, 255), 0.0, full),)


def _color(channel: JsonObject) -> tuple[int, int, int]:
    told = str(channel.get("color", ""))
    if not _COLOR.fullmatch(told):
        return (255, 255, 255)
    red, green, blue = bytes.fromhex(told)
    return red, green, blue


def _window(channel: JsonObject, full: float) -> tuple[float, float, bool]:
    """Low, high, and whether they say more than the type of the numbers does."""
    told = channel.get("window") or {}
    low, high = float(told.get("start", 0.0)), float(told.get("end", full))
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return 0.0, full, False
    return low, high, (low, high) != (0.0, full)
