"""Does "next similar" say that nothing is close? ``python -m tests.bench.nothing_close``.

``--write`` puts it into the report. Squares of the tissue of each development slide
(``TESSERA_DATA``) are embedded as the portal does. An ellipse in each of the last ``QUERY_COUNT``
squares is searched for on its slide and on those of other patients. A search is as in the portal:
regions under the ellipse are left out, and nothing is close if the nearest region is not.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from shapely.affinity import scale
from shapely.geometry import Point, box

from ml.errors import BadInputError
from ml.imaging.slides.slide import open_slide
from ml.index.exact import exact_distances
from ml.index.ranking.calibration import calibration_of
from ml.index.ranking.conformal_bound import (
    FALSE_SHARE,
    MAX_QUERIES,
    conformal_bound,
    nearest_elsewhere,
)
from ml.roi.load import load_graph_encoder
from ml.roi.protocol import RegionEncoder
from ml.roi.stain.squares import tissue_squares
from ml.types import ArrayBool, ArrayF32, ArrayF64
from tests.bench import report
from tests.bench.measure import Row, Section

TITLE = "Nothing is close"
SLIDES = {
    "slides/cmu-1-small-region.svs": "CMU-1",
    "slides/tcga-cr-7395.svs": "TCGA-CR-7395",
    "slides/her2st-c2.tif": "HER2ST C",
    "slides/her2st-b-d2.tif": "HER2ST B",
}
"""And their patients: HER2ST's are both of the breast."""
SIDE_PX = 256
QUERY_COUNT = 60
"""Queries per slide. Nearly all of the time goes into their features."""
DRAWN_ON = 0.2  # as of the portal


@dataclass(frozen=True, slots=True)
class SearchedSlide:
    """A slide whose squares are searched, and its queries."""

    name: str
    boxes: ArrayF64
    vectors: ArrayF32
    asked_boxes: ArrayF64
    asked: ArrayF32


def searched_slide(path: Path, name: str, encoder: RegionEncoder) -> SearchedSlide:
    """Squares, and ellipses in others of them."""
    with open_slide(path) as slide:
        squares = tissue_squares(slide, SIDE_PX, max_count=MAX_QUERIES + QUERY_COUNT)
        count = min(QUERY_COUNT, len(squares) // 4)
        outlines = [box(*item) for item in squares[:-count]]
        for left, top, right, bottom in squares[-count:].tolist():
            middle = Point((left + right) / 2, (top + bottom) / 2).buffer(1)
            outlines.append(scale(middle, (right - left) / 2, (bottom - top) / 2))
        embeddings = encoder.embed_regions(slide, outlines, slide.info.mpp_x)
    embedded = [at for at, item in enumerate(embeddings) if not isinstance(item, BadInputError)]
    vectors = np.array([embeddings[at].vector for at in embedded], np.float32)
    is_asked = np.array(embedded) >= len(squares) - count
    boxes = squares[embedded]
    sys.stderr.write(f"{name}: {len(embedded)} of {len(squares)} squares embedded\n")
    return SearchedSlide(
        name, boxes[~is_asked], vectors[~is_asked], boxes[is_asked], vectors[is_asked]
    )


def is_elsewhere(query_boxes: ArrayF64, boxes: ArrayF64) -> ArrayBool:
    """(Q, N): squares that are elsewhere."""
    size = np.minimum(query_boxes[:, None, 2:], boxes[:, 2:])
    size = np.clip(size - np.maximum(query_boxes[:, None, :2], boxes[:, :2]), 0, None)
    return np.asarray(size.prod(axis=2) <= DRAWN_ON * SIDE_PX**2)


def nearest(queries: ArrayF32, looked: SearchedSlide, free: ArrayBool) -> ArrayF64:
    """(Q,): how far each is from the nearest free square."""
    distances = [
        exact_distances(item, looked.vectors)[f].min()
        for item, f in zip(queries, free, strict=True)
    ]
    return np.array(distances)


def measured(folder: Path) -> Section:
    """Shares of searches that say that nothing is close."""
    encoder = load_graph_encoder("default")
    calibration = calibration_of(encoder.config_hash)
    if calibration is None:
        raise SystemExit("the default encoder has no calibration")
    slides = [searched_slide(folder / path, name, encoder) for path, name in SLIDES.items()]
    section = Section(
        TITLE,
        "Shares of searches for the next similar place that say that nothing is close. Squares of "
        f"{SIDE_PX} px of the tissue of {len(SLIDES)} slides; {QUERY_COUNT} others of each (fewer "
        "where it holds less), outlined as ellipses, are searched for on their own slide, where "
        f"about {FALSE_SHARE:.0%} may have nothing close by the rule, and on the slides of other "
        "patients, where little may be close. By the calibration alone: the distance of unrelated "
        "organs, the earlier rule.",
    )
    for looked in slides:
        bound = conformal_bound(
            nearest_elsewhere(
                looked.vectors, is_elsewhere(looked.boxes[:MAX_QUERIES], looked.boxes)
            )
        )
        same_patient = nearest(looked.asked, looked, is_elsewhere(looked.asked_boxes, looked.boxes))
        others = [item.asked for item in slides if item is not looked]
        foreign = np.concatenate(
            [nearest(a, looked, np.ones((len(a), len(looked.boxes)), bool)) for a in others]
        )
        for what, result in (("its own tissue", same_patient), ("other patients' tissue", foreign)):
            before = np.array([calibration.is_nothing_close(d, len(looked.boxes)) for d in result])
            now = before | (result > (np.inf if bound is None else bound))
            name = f"{looked.name} ({len(looked.boxes)} squares), {what}, {len(result)} searches"
            against = f"by the calibration alone: {100 * before.mean():.1f} %"
            section.rows.append(Row(name, float(100 * now.mean()), "%", against=against))
    return section


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    options = parser.parse_args()
    data = os.environ.get("TESSERA_DATA")
    if not data:
        raise SystemExit("set TESSERA_DATA to the folder of the development data")
    section = measured(Path(data) / "histology")
    report.tell(section, after="Outlines from a click", write=options.write)


if __name__ == "__main__":
    main()
