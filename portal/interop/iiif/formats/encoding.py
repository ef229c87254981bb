"""Encoding of the pixels of a region for a IIIF response."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from ml.imaging.slides.jpeg import TILE_QUALITY
from portal.archive.tiles.regions import ReadRegion
from portal.interop.iiif.formats.image_requests import ImageRequest


def picture(region: ReadRegion, parameters: ImageRequest) -> bytes:
    """Mirror, rotate, reduce colours and encode a region; a stored JPEG tile is passed on."""
    is_turned = parameters.mirrored or parameters.turns
    plain = not is_turned and parameters.quality in {"default", "color"}
    if plain and parameters.extension == "jpg" and region.jpeg is not None:
        return region.jpeg
    pixels = region.pixels()
    if parameters.mirrored:
        pixels = pixels[:, ::-1]
    image = Image.fromarray(np.ascontiguousarray(np.rot90(pixels, -parameters.turns)))
    profile = region.icc_profile
    if parameters.quality in {"gray", "bitonal"}:
        image, profile = image.convert("L"), None
    if parameters.quality == "bitonal":
        image = image.convert("1")
    out = io.BytesIO()
    if parameters.extension == "png":
        image.save(out, "PNG", compress_level=1, icc_profile=profile)
    else:
        image = image.convert("L") if image.mode == "1" else image
        image.save(out, "JPEG", quality=TILE_QUALITY, icc_profile=profile)
    return out.getvalue()
