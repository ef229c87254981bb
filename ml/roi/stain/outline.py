"""Outline of the tissue of a slide."""

from __future__ import annotations

import numpy as np
import shapely
from shapely.geometry import MultiPolygon, box

from ml.errors import EmptyRegionError
from ml.imaging.slides.slide import SlideImage
from ml.imaging.tissue.glass import glass_colour, tissue_mask

THUMBNAIL_PX = 512  # a pixel is 0.2 mm of a scan of 100,000 px at 1 um: the scale of a patch
MIN_SHARE = 0.002  # of the thumbnail; less is dust or a hair


def tissue_outline(slide: SlideImage) -> MultiPolygon:
    """Outline of the tissue of a slide in level-0 pixels, with the resolution of its thumbnail.

    Raises:
        EmptyRegionError: The slide has no tissue.
    """
    thumbnail = slide.thumbnail(THUMBNAIL_PX)
    mask = tissue_mask(thumbnail, glass_colour(thumbnail))
    if mask.mean() < MIN_SHARE:
        raise EmptyRegionError("the slide shows no tissue")
    scale_x = slide.info.width_px / mask.shape[1]
    scale_y = slide.info.height_px / mask.shape[0]
    cells = []
    for row, line in enumerate(mask):
        edges = np.flatnonzero(np.diff(np.pad(line.astype(np.int8), 1)))
        for start, end in edges.reshape(-1, 2):  # of each run of tissue in the row
            left, right = start * scale_x, end * scale_x
            cells.append(box(left, row * scale_y, right, (row + 1) * scale_y))
    tissue = shapely.union_all(cells)
    return MultiPolygon(shapely.get_parts(tissue).tolist())
