"""OME-XML in a TIFF: pages, name and pixel size of each image.

Schema: OME 2016-06, https://docs.openmicroscopy.org/ome-model/. Other files that it names
are never opened.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException, ElementTree

_UM_PER_UNIT = {
    "ym": 1e-18, "zm": 1e-15, "am": 1e-12, "fm": 1e-9, "pm": 1e-6, "Å": 1e-4, "nm": 1e-3,
    "µm": 1.0, "μm": 1.0, "um": 1.0, "mm": 1e3, "cm": 1e4, "dm": 1e5, "m": 1e6, "dam": 1e7,
    "hm": 1e8, "km": 1e9, "thou": 25.4, "li": 25_400 / 12, "in": 25_400.0, "ft": 304_800.0,
    "yd": 914_400.0, "mi": 1_609_344_000.0, "pt": 25_400 / 72,
}  # fmt: skip
"""UnitsLength of the schema, the micro sign also as the Greek letter and as "u"."""
_DEFAULT_UNIT = "µm"  # PhysicalSizeXUnit where it is absent, by the schema
_NAMES = re.compile(r"(?im)^\s*(label|macro|overview|barcode|thumbnail)(?:[ _-]?image)?\b")


@dataclass(frozen=True, slots=True)
class OmeImage:
    """One image of an OME-TIFF.

    Attributes:
        name: as the file states it; it may name somebody.
        pages: numbers of its planes in the main chain of directories.
        size_px: (width, height).
        mpp: microns per pixel along x and y, None where not stated.
    """

    name: str
    pages: frozenset[int]
    size_px: tuple[int, int]
    mpp: tuple[float | None, float | None]


def ome_images(description: str) -> tuple[OmeImage, ...]:
    """The images that OME-XML describes; none if the text is no valid OME-XML."""
    root = _root(description)
    if root is None:
        return ()
    images = [element for element in root if _local(element) == "Image"]
    return tuple(
        _image(image, pixels, is_only=len(images) == 1)
        for image in images
        for pixels in image
        if _local(pixels) == "Pixels"
    )


def ome_microscope(text: str) -> list[str]:
    """Maker and model of the microscope that OME-XML names; none if it is no valid OME-XML."""
    root = _root(text)
    elements = () if root is None else root.iter()
    microscopes = (element for element in elements if _local(element) == "Microscope")
    return [
        microscope.get(name, "") for microscope in microscopes for name in ("Manufacturer", "Model")
    ]


def _root(description: str) -> Element | None:
    text = description.strip("\ufeff\0 \r\n\t")
    if not text.startswith("<") or "OME" not in text:
        return None
    try:
        root = ElementTree.fromstring(text.encode(), forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError):
        return None
    return root if _local(root) == "OME" else None


def secondary_name(text: str) -> str:
    """Name of an image that is not the slide ("label", "macro", ...) at the start of a line."""
    match = _NAMES.search(text)
    return match[1].lower() if match else ""


def _image(image: Element, pixels: Element, *, is_only: bool) -> OmeImage:
    planes = math.prod(_number(pixels, f"Size{axis}", 1) for axis in "ZCT")
    pages: set[int] = set()
    for data in pixels:
        if _local(data) != "TiffData":
            continue
        is_first = "IFD" not in data.attrib
        if is_first and not is_only:
            continue
        start = _number(data, "IFD", 0)
        count = _number(data, "PlaneCount", planes if is_first else 1)
        pages.update(range(start, start + min(count, planes)))
    return OmeImage(
        name=image.get("Name", ""),
        pages=frozenset(pages),
        size_px=(_number(pixels, "SizeX", 0), _number(pixels, "SizeY", 0)),
        mpp=(_um(pixels, "X"), _um(pixels, "Y")),
    )


def _um(pixels: Element, axis: str) -> float | None:
    unit = _UM_PER_UNIT.get(pixels.get(f"PhysicalSize{axis}Unit", _DEFAULT_UNIT).strip())
    try:
        size = float(pixels.get(f"PhysicalSize{axis}", ""))
    except ValueError:
        return None
    return size * unit if unit is not None and 0 < size < math.inf else None


def _number(element: Element, name: str, default: int) -> int:
    text = element.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else default


def _local(element: Element) -> str:
    """The name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]
