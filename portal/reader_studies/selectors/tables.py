"""Agreement of a study as a table, with a line for each image, pair of readers and label."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from portal.annotations.formats.tables import cell
from portal.annotations.formats.types import NO_LABEL
from portal.reader_studies.agreement import LabelTally, PairAgreement
from portal.reader_studies.selectors.results import ImageResult, agreement_of

COLUMNS = (
    *("case", "image", "reader_a", "reader_b", "label", "regions_a", "regions_b", "matched"),
    *("mean_iou", "f1", "dice", "kappa_of_areas", "area_a_px", "area_b_px", "area_both_px"),
    "kappa_of_labels",
)
ALL = "all"
"""Image name in rows over all images."""


def agreement_csv(
    results: Iterable[ImageResult], *, people: Mapping[UUID, str], labels: Mapping[str, str]
) -> Iterator[str]:
    """Table, line by line, with lines over all images at the end."""
    results = list(results)
    yield _line(COLUMNS)
    for result in results:
        places = (cell(result.canvas.case.accession), cell(result.canvas.name))
        yield from _lines(places, result.pairs, people, labels)
    yield from _lines((ALL, ALL), agreement_of(results), people, labels)


def _lines(
    places: tuple[str, str],
    pairs: Mapping[tuple[UUID, UUID], PairAgreement],
    people: Mapping[UUID, str],
    labels: Mapping[str, str],
) -> Iterator[str]:
    for (a, b), agreement in pairs.items():
        names = (cell(people.get(a, "")), cell(people.get(b, "")))
        for label, tally in agreement.labels.items():
            figures = _figures(tally)
            last = _number(agreement.kappa_of_labels)
            yield _line((*places, *names, cell(labels.get(label, NO_LABEL)), *figures, last))


def _figures(tally: LabelTally) -> tuple[str, ...]:
    areas = (f"{area:.1f}" for area in (tally.area_a, tally.area_b, tally.area_both))
    rates = (_number(rate) for rate in (tally.iou, tally.f1, tally.dice, tally.kappa))
    return (str(tally.n_a), str(tally.n_b), str(tally.matched), *rates, *areas)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _line(values: Iterable[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(values)
    return out.getvalue()
