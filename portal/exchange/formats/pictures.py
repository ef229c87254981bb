"""From pixels of a region to the bytes of a IIIF answer."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from ml.imaging.slides.jpeg import TILE_QUALITY
from portal.archive.tiles.regions import ReadRegion
from portal.exchange.formats.image_requests import ImageRequest


def picture(region: ReadRegion, asked: ImageRequest) -> bytes:
    """Mirror, turn, take colour out, encode; a stored tile goes out as it is where it can."""
    plain = not asked.mirrored and not asked.turns and asked.quality in {"default", "color"}
    if plain and asked.extension == "jpg" and region.jpeg is not None:
        return region.jpeg
    pixels = region.pixels()
    if asked.mirrored:
        pixels = pixels[:, ::-1]
    image = Image.fromarray(np.ascontiguousarray(np.rot90(pixels, -asked.turns)))
    profile = region.icc_profile
    if asked.quality in {"gray", "bitonal"}:
        image, profile = image.convert("L"), None
    if asked.quality == "bitonal":
        image = image.convert("1")
    out = io.BytesIO()
    if asked.extension == "png":
        image.save(out, "PNG", compress_level=1, icc_profile=profile)
    else:
        image = image.convert("L") if image.mode == "1" else image
        image.save(out, "JPEG", quality=TILE_QUALITY, icc_profile=profile)
    return out.getvalue()
