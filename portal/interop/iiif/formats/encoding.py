"""Encoding of the pixels of a region for a IIIF response."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from ml.imaging.slides.jpeg import TILE_QUALITY
from portal.archive.tiles.regions import ReadRegion
from portal.interop.iiif.formats.image_requests import ImageRequest


def picture(region: ReadRegion, wanted: ImageRequest) -> bytes:
    """Mirror, turn, take colour out, encode; a stored tile goes out as it is where it can."""
    plain = not wanted.mirrored and not wanted.turns and wanted.quality in {"default", "color"}
    if plain and wanted.extension == "jpg" and region.jpeg is not None:
        return region.jpeg
    pixels = region.pixels()
    if wanted.mirrored:
        pixels = pixels[:, ::-1]
    image = Image.fromarray(np.ascontiguousarray(np.rot90(pixels, -wanted.turns)))
    profile = region.icc_profile
    if wanted.quality in {"gray", "bitonal"}:
        image, profile = image.convert("L"), None
    if wanted.quality == "bitonal":
        image = image.convert("1")
    out = io.BytesIO()
    if wanted.extension == "png":
        image.save(out, "PNG", compress_level=1, icc_profile=profile)
    else:
        image = image.convert("L") if image.mode == "1" else image
        image.save(out, "JPEG", quality=TILE_QUALITY, icc_profile=profile)
    return out.getvalue()
