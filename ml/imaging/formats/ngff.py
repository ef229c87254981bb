"""OME-NGFF (0.2 to 0.5): the displayed image of a Zarr hierarchy, its scale, plane and colours.

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
"""Axes of versions that do not name them."""
_MAX_LEVELS, _MAX_CHANNELS, _MAX_IMAGES = 32, 64, 256
OME_XML = "OME/METADATA.ome.xml"
MAX_XML_BYTES = 2**23
_COLOR = re.compile(r"[0-9A-Fa-f]{6}")
_RGB = ((255, 0, 0), (0, 255, 0), (0, 0, 255))


@dataclass(frozen=True, slots=True)
class NgffChannel:
    """Display of a channel: black at ``low``, its colour at ``high``.

    Attributes:
        is_stated: The file states the window; otherwise it is the type's range of values.
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
        path: Path of its group.
        levels: Paths of its arrays relative to the group, finest first.
        array: The finest array.
        axes: One letter per axis, "y" and "x" last.
        plane: Index on the leading axes other than the channel's.
        channels: Displayed channels.
        multiscale: Metadata as in the file, for writing it again.
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
    """Find the displayed image.

    Raises:
        UnsupportedFormatError: no OME-NGFF, a plate of many images, or axes in another order.
        CorruptFileError: its metadata is invalid.
        TooLargeError: beyond the limits.
    """
    try:
        return _find_image(store)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise CorruptFileError("the metadata of the OME-Zarr image is damaged") from error


def _find_image(store: ZarrStore) -> NgffImage:
    path, attributes = "", attributes_of(store, "")
    if "plate" in attributes or "well" in attributes:
        raise UnsupportedFormatError(
            "the OME-Zarr holds a plate of many images; send the images one by one"
        )
    if "multiscales" not in attributes:
        path = _largest(store)
        attributes = attributes_of(store, path)
    if "multiscales" not in attributes:
        raise UnsupportedFormatError(
            "the Zarr hierarchy holds no OME-NGFF image (it has no multiscales)"
        )
    multiscale = dict(attributes["multiscales"][0])
    levels = tuple(str(dataset["path"]) for dataset in multiscale["datasets"])
    if not 1 <= len(levels) <= _MAX_LEVELS or len(set(levels)) < len(levels):
        raise CorruptFileError("the metadata of the levels of the OME-Zarr image is damaged")
    array = read_array(store, _join(path, levels[0]))
    axes = _axes(multiscale, len(array.shape))
    require_slide_size(array.shape[-1], array.shape[-2])
    scale = _scale(multiscale, axes)
    omero = attributes.get("omero") or {}
    return NgffImage(
        path=path,
        levels=levels,
        array=array,
        axes=axes,
        plane=_plane(omero, axes, array.shape),
        channels=_channels(omero, axes, array),
        mpp_x=scale.get("x"),
        mpp_y=scale.get("y"),
        version=_version(attributes.get("version") or multiscale.get("version")),
        multiscale=multiscale,
    )


def _largest(store: ZarrStore) -> str:
    """Name of the group with the largest image that is no label or macro: "0", "1" and so on."""
    described = store.read(OME_XML, max_bytes=MAX_XML_BYTES) or b""
    images = ome_images(described.decode("utf-8", "replace"))
    best, largest = "0", -1
    for number in range(_MAX_IMAGES):
        attributes = attributes_of(store, str(number))
        if "multiscales" not in attributes:
            break
        is_secondary = number < len(images) and secondary_name(images[number].name)
        first = str(attributes["multiscales"][0]["datasets"][0]["path"])
        shape = read_array(store, _join(str(number), first)).shape
        pixels = 0 if is_secondary else shape[-1] * shape[-2]
        if pixels > largest:
            best, largest = str(number), pixels
    return best


def attributes_of(store: ZarrStore, path: str) -> JsonObject:
    """OME-NGFF attributes of a group, in either version of Zarr; {} if there are none."""
    below = f"{path}/" if path else ""
    attributes = store.json(f"{below}.zattrs")
    if attributes is None:
        stored = (store.json(f"{below}zarr.json") or {}).get("attributes") or {}
        attributes = stored.get("ome") or {}
    return dict(attributes)


def _version(version: Any) -> str:
    """The stated version if it is valid, else "0.5"."""
    return version if isinstance(version, str) and re.fullmatch(r"\d\.\d", version) else "0.5"


def _join(path: str, level: str) -> str:
    return f"{path}/{level}" if path else level


def _axes(multiscale: JsonObject, count: int) -> str:
    axes_data = multiscale.get("axes")
    if axes_data is None:
        axes = _OLD_AXES[-count:] if count == len(_OLD_AXES) else ""
    else:
        axes = "".join(
            str(axis["name"] if isinstance(axis, dict) else axis).lower() for axis in axes_data
        )
    if len(axes) != count or not axes.endswith("yx") or not set(axes[:-2]) <= set("tcz"):
        raise UnsupportedFormatError(
            f"the OME-Zarr image has the axes {ascii(axes)[:30]}; expected t, c, z, y, x in this "
            "order, of which y and x are needed"
        )
    return axes


def _scale(multiscale: JsonObject, axes: str) -> dict[str, float]:
    """Microns per pixel along x and y, for axes whose unit is stated."""
    axes_data = multiscale.get("axes") or []
    units = {
        str(stated_axis["name"]).lower(): _UM_PER_UNIT.get(str(stated_axis.get("unit")))
        for stated_axis in axes_data
        if isinstance(stated_axis, dict)
    }
    factors = [1.0] * len(axes)
    steps = multiscale["datasets"][0].get("coordinateTransformations") or []
    for step in (*steps, *(multiscale.get("coordinateTransformations") or [])):
        if step.get("type") == "scale":
            factors = [a * float(b) for a, b in zip(factors, step["scale"], strict=True)]
    um_per_axis = {
        axis: factor * (units.get(axis) or 0.0) for axis, factor in zip(axes, factors, strict=True)
    }
    return {axis: um for axis, um in um_per_axis.items() if 0 < um < math.inf}


def _plane(omero: JsonObject, axes: str, shape: Sequence[int]) -> dict[str, int]:
    """The plane that is shown by default; the first where none is stated."""
    rendering = omero.get("rdefs") or {}
    defaults = {"t": rendering.get("defaultT"), "z": rendering.get("defaultZ")}
    sizes = dict(zip(axes, shape, strict=True))
    return {
        axis: min(max(0, int(defaults[axis] or 0)), sizes[axis] - 1)
        for axis in axes
        if axis in "tz"
    }


def _channels(omero: JsonObject, axes: str, array: ZarrArray) -> tuple[NgffChannel, ...]:
    """Channels with stated colours and windows; else three of 8 bits as RGB, else the first."""
    count = array.shape[axes.index("c")] if "c" in axes else 1
    full = float(2 ** (8 * array.dtype.itemsize) - 1)
    channels_data = omero.get("channels") or []
    if channels_data and len(channels_data) == count <= _MAX_CHANNELS:
        channels = [
            NgffChannel(number, _color(channel), *_window(channel, full))
            for number, channel in enumerate(channels_data)
            if channel.get("active", True)
        ]
        if channels:
            return tuple(channels)
    if count == len(_RGB) and array.dtype.itemsize == 1:
        return tuple(NgffChannel(number, color, 0.0, full) for number, color in enumerate(_RGB))
    return (NgffChannel(0, (255, 255, 255), 0.0, full),)


def _color(channel: JsonObject) -> tuple[int, int, int]:
    color = str(channel.get("color", ""))
    if not _COLOR.fullmatch(color):
        return (255, 255, 255)
    red, green, blue = bytes.fromhex(color)
    return red, green, blue


def _window(channel: JsonObject, full: float) -> tuple[float, float, bool]:
    """(low, high, is_stated): stated if it differs from the range of the type."""
    window = channel.get("window") or {}
    low, high = float(window.get("start", 0.0)), float(window.get("end", full))
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return 0.0, full, False
    return low, high, (low, high) != (0.0, full)
