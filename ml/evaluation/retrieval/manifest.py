"""ROI data sets: a folder with ``rois.csv`` (image, patient, label, mpp, geometry)."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from ml.errors import BadInputError

MANIFEST = "rois.csv"
COLUMNS = ("image", "patient", "label", "mpp", "geometry")


@dataclass(frozen=True, slots=True)
class RoiRecord:
    """One region of a data set.

    Attributes:
        image: path of the slide or still.
        mpp: microns per pixel, None if the manifest leaves it to the file.
        geometry: in level-0 pixels, None for the whole image.
    """

    image: Path
    patient: str
    label: str
    mpp: float | None
    geometry: BaseGeometry | None


def read_manifest(folder: str | Path) -> tuple[RoiRecord, ...]:
    """Read and check ``rois.csv``; nothing is opened, but every image must be there.

    Raises:
        BadInputError: no manifest, a column or an image is missing, a number or a geometry cannot
            be read; the line is named.
    """
    folder = Path(folder)
    path = folder / MANIFEST
    if not path.is_file():
        raise BadInputError(f"{folder.name}: no {MANIFEST} in it")
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
        if missing:
            raise BadInputError(f"{MANIFEST}: column {missing[0]!r} is missing")
        records = tuple(_record(folder, number, row) for number, row in enumerate(reader, 2))
    if not records:
        raise BadInputError(f"{MANIFEST}: no regions in it")
    return records


def require_examples(records: Iterable[RoiRecord]) -> None:
    """Refuse labels with one example, which has no right answer.

    Raises:
        BadInputError: naming the label; or there are fewer than two labels.
    """
    counts = Counter(record.label for record in records)
    for label, count in sorted(counts.items()):
        if count < 2:
            raise BadInputError(
                f"label {label!r} has one example: retrieval needs two (or --ignore {label})"
            )
    if len(counts) < 2:
        raise BadInputError(f"expected at least two labels, got only {next(iter(counts), '')!r}")


def grouped(
    records: Iterable[RoiRecord], groups: Mapping[str, tuple[str, ...]]
) -> tuple[RoiRecord, ...]:
    """Regions under coarser labels.

    Args:
        groups: labels by the coarser label.
    Raises:
        BadInputError: a label is in no group, or a group names one that does not occur.
    """
    records = tuple(records)
    coarse = {label: name for name, labels in groups.items() for label in labels}
    known_labels = {record.label for record in records}
    for label in sorted(known_labels - set(coarse)):
        raise BadInputError(f"groups: label {label!r} is in no group")
    for label in sorted(set(coarse) - known_labels):
        raise BadInputError(
            f"groups: no region has label {label!r}; there are: {sorted(known_labels)}"
        )
    return tuple(replace(record, label=coarse[record.label]) for record in records)


def parse_groups(words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Parse ``["benign=healthy,adenomatous", ...]``.

    Raises:
        BadInputError: a word is not of that form.
    """
    groups = {}
    for word in words:
        name, equals, labels = word.partition("=")
        members = tuple(label for label in labels.split(",") if label)
        if not (name and equals and members):
            raise BadInputError(f"groups: expected NAME=LABEL,LABEL..., got {word!r}")
        groups[name] = members
    return groups


def _record(folder: Path, line: int, row: Mapping[str, str | None]) -> RoiRecord:
    def text(column: str) -> str:
        return (row.get(column) or "").strip()

    where = f"{MANIFEST} line {line}"
    for column in ("image", "patient", "label"):
        if not text(column):
            raise BadInputError(f"{where}: {column} is empty")
    image = folder / text("image")
    if not image.is_file():
        raise BadInputError(f"{where}: image {text('image')!r} is not there")
    return RoiRecord(
        image,
        text("patient"),
        text("label"),
        _mpp(text("mpp"), where),
        _geometry(text("geometry"), where),
    )


def _mpp(text: str, where: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1000:
        raise BadInputError(f"{where}: mpp: expected microns per pixel, got {text!r}")
    return value


def _geometry(text: str, where: str) -> BaseGeometry | None:
    if not text:
        return None
    try:
        with np.errstate(invalid="ignore"):  # NaN is refused below
            geometry = shapely.from_wkt(text)
    except shapely.GEOSException as error:
        raise BadInputError(f"{where}: geometry is not WKT: {text[:40]!r}") from error
    if geometry.geom_type not in {"Polygon", "MultiPolygon"} or geometry.is_empty:
        raise BadInputError(f"{where}: geometry: expected a polygon with area, got {text[:40]!r}")
    if not np.isfinite(shapely.get_coordinates(geometry)).all():
        raise BadInputError(f"{where}: geometry has a coordinate that is not a finite number")
    return geometry
