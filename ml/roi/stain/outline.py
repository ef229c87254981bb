"""Where a slide holds tissue, as an outline that can be embedded."""

from __future__ import annotations

import numpy as np
import shapely
from shapely.geometry import MultiPolygon, box

from ml.errors import EmptyRegionError
from ml.imaging.slides import SlideImage
from ml.roi.stain.fields import glass_colour, tissue_mask

THUMBNAIL_PX = 512  # a cell of it is 0.2 mm of a scan of 100,000 px at 1 um: the scale of a patch
LEAST_SHARE = 0.002  # of the thumbnail's cells: less is dust or a hair


def tissue_outline(slide: SlideImage) -> MultiPolygon:
    """The tissue of a slide in level-0 pixels, in steps of its thumbnail.

    Raises:
        EmptyRegionError: there is none.
    """
    thumbnail = slide.thumbnail(THUMBNAIL_PX)
    mask = tissue_mask(thumbnail, glass_colour(thumbnail))
    if mask.mean() < LEAST_SHARE:
        raise EmptyRegionError("the slide shows no tissue")
    scale_x = slide.info.width_px / mask.shape[1]
    scale_y = slide.info.height_px / mask.shape[0]
    cells = []
    for row, line in enumerate(mask):
        edges = np.flatnonzero(np.diff(np.pad(line.astype(np.int8), 1)))
        for start, end in edges.reshape(-1, 2):  # of each run of tissue in the row
            left, right = start * scale_x, end * scale_x
            cells.append(box(left, row * scale_y, right, (row + 1) * scale_y))
    found = shapely.union_all(cells)
    return MultiPolygon(shapely.get_parts(found).tolist())
