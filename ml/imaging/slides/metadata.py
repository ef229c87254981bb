"""Vendor metadata that may leave the file: an allow-list, numbers only.

A slide's properties hold scan dates, operator and barcode texts, sometimes patient names. Only the
names below pass, and only where the value is a plain number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ml.imaging.formats.tiff_layout import TiffLayout

ALLOWED = (
    "openslide.objective-power",
    "openslide.mpp-x",
    "openslide.mpp-y",
    "openslide.bounds-x",
    "openslide.bounds-y",
    "openslide.bounds-width",
    "openslide.bounds-height",
    "aperio.AppMag",
    "aperio.MPP",
    "hamamatsu.SourceLens",
)
MIN_MPP, MAX_MPP = 0.02, 20.0
"""Plausible microns per pixel: 0.02 is finer than an optical scan, 20 coarser than a macro image.

Everyday images carry 72 to 1,200 dots per inch (353 to 21 um per pixel), a layout hint that is
unrelated to the specimen.
"""
MAX_ANISOTROPY = 1.25  # beyond, the two axes cannot both be right
_SCALE_TOLERANCE = 0.02  # of rounded numbers
_NUMBER = re.compile(r"-?\d{1,12}(\.\d{1,18})?([eE][-+]?\d{1,3})?")
_UM_PER_UNIT = {2: 25_400.0, 3: 10_000.0}  # TIFF 6.0, ResolutionUnit: inch, centimetre


def allowed_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The allow-listed properties whose value is a plain number."""
    values = {name: properties.get(name, "").strip() for name in ALLOWED}
    return {name: value for name, value in values.items() if _NUMBER.fullmatch(value)}


def number_or_none(text: str | None) -> float | None:
    """A property as a positive number, None if it is not one."""
    if text is None or not _NUMBER.fullmatch(text.strip()):
        return None
    value = float(text)
    return value if 0 < value < float("inf") else None


def plausible_mpp(x: float | None, y: float | None) -> tuple[float | None, float | None]:
    """Microns per pixel where both are plausible and nearly equal, else (None, None)."""
    if x is None or y is None:
        return None, None
    if not (MIN_MPP <= x <= MAX_MPP and MIN_MPP <= y <= MAX_MPP):
        return None, None
    if max(x, y) > MAX_ANISOTROPY * min(x, y):
        return None, None
    return x, y


def rgb_profile(profile: bytes | None) -> bytes | None:
    """Return an ICC profile if it is one for RGB, in which all pixels are given."""
    return profile if profile is not None and profile[16:20] == b"RGB " else None


def mpp_from_resolution(
    x_resolution: float | None, y_resolution: float | None, unit: int
) -> tuple[float | None, float | None]:
    """Microns per pixel from a TIFF resolution (pixels per inch, unit 2, or per cm, unit 3)."""
    scale = _UM_PER_UNIT.get(unit)
    if scale is None or not x_resolution or not y_resolution:
        return None, None
    return plausible_mpp(scale / x_resolution, scale / y_resolution)


def layout_mpp(layout: TiffLayout) -> tuple[float | None, float | None]:
    """Microns per pixel of a TIFF: by OME-XML, where it states any, else by the resolution tags."""
    first = layout.levels[0]
    ome_mpp = plausible_mpp(*layout.ome.mpp) if layout.ome else (None, None)
    if None not in ome_mpp:
        return ome_mpp
    return mpp_from_resolution(first.x_resolution, first.y_resolution, first.resolution_unit)


def scale_warning(layout: TiffLayout) -> str | None:
    """A sentence where OME-XML and the resolution tags of a TIFF state different scales."""
    first = layout.levels[0]
    ome_mpp = plausible_mpp(*layout.ome.mpp) if layout.ome else (None, None)
    tagged = mpp_from_resolution(first.x_resolution, first.y_resolution, first.resolution_unit)
    if (
        ome_mpp[0] is None
        or tagged[0] is None
        or abs(ome_mpp[0] / tagged[0] - 1) < _SCALE_TOLERANCE
    ):
        return None
    return (
        f"The file states two scales: {ome_mpp[0]:.4g} um per pixel in its OME metadata, which is"
        f" used, and {tagged[0]:.4g} in its TIFF tags."
    )
