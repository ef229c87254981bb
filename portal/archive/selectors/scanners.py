"""Names of scanners' makers, as people read them."""

from __future__ import annotations

SCANNER_NAMES = {
    "aperio": "Aperio",
    "dicom": "DICOM",
    "generic-tiff": "TIFF",
    "hamamatsu": "Hamamatsu",
    "leica": "Leica",
    "mirax": "3DHISTECH (MIRAX)",
    "ome-zarr": "OME-Zarr",
    "philips": "Philips",
    "sakura": "Sakura",
    "still": "Still image",
    "trestle": "Trestle",
    "ventana": "Ventana",
    "zeiss": "Zeiss",
}
"""Maker, or the format where a file names no maker, by ``Slide.vendor`` (most are OpenSlide's)."""


def scanner_name(vendor: str) -> str:
    """Name of a maker or format; ``vendor`` itself if it is not known, "" if it is empty."""
    return SCANNER_NAMES.get(vendor.lower(), vendor)
