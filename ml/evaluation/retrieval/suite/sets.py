"""Sets of a suite: items to embed, and tasks of queries with their galleries and relevant items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ml.errors import BadInputError
from ml.evaluation.retrieval.manifest import (
    RoiRecord,
    grouped,
    parse_groups,
    read_manifest,
    require_examples,
)
from ml.evaluation.retrieval.protocols import other_patients
from ml.evaluation.retrieval.regions import RegionImage, region_image
from ml.evaluation.retrieval.suite.config import SetConfig
from ml.training.roi.tiles import read_tiles
from ml.types import ArrayBool, ArrayI64


@dataclass(frozen=True, slots=True)
class Item:
    """One region.

    Attributes:
        key: cache key of its source.
        patient: unique over the suite.
        stained: stain batch: a patient, or a section.
        read: reads its pixels.
    """

    key: str
    patient: str
    stained: str
    read: Callable[[], RegionImage]


@dataclass(frozen=True, slots=True)
class SuiteQuery:
    """One query.

    Attributes:
        item: the query.
        gallery: (G,) items, none of its own patient if the set has patients.
        relevant: (G,) bool.
        label: class, over which scores are averaged first.
        group: unit of the bootstrap: the patient.
    """

    item: int
    gallery: ArrayI64
    relevant: ArrayBool
    label: str
    group: str


@dataclass(frozen=True, slots=True)
class Task:
    """Queries that are scored together.

    Attributes:
        unscored: number of queries without a right answer.
        labels, patients: of all items, if a metric may be learned from them; else empty.
    """

    name: str
    queries: tuple[SuiteQuery, ...]
    unscored: int
    labels: tuple[str, ...] = ()
    patients: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SuiteSet:
    """One set.

    Attributes:
        gallery: items of a gallery, which are recoloured.
        records: regions with labels and patients; none for sections.
    """

    config: SetConfig
    items: tuple[Item, ...]
    gallery: tuple[int, ...]
    tasks: tuple[Task, ...]
    records: tuple[RoiRecord, ...] = ()


def labelled_set(config: SetConfig, data: Path) -> SuiteSet:
    """A set of regions with labels: a folder with ``rois.csv``, or a table of images.

    Raises:
        BadInputError: missing files, unknown labels in a group, nothing that can be scored.
    """
    records = _records(config, data)
    items = tuple(
        Item(
            _key(record, data),
            f"{config.name}/{record.patient}",
            f"{config.name}/{record.patient}",
            lambda record=record: region_image(record),  # type: ignore[misc]
        )
        for record in records
    )
    tasks = []
    for name, groups in config.tasks.items():
        labelled = grouped(records, parse_groups(groups)) if groups else records
        require_examples(labelled)
        task = label_task(name, labelled)
        # Sets without part in the choice may have no patients, so no metric is learned on them.
        tasks.append(_with_labels(task, labelled) if config.choice else task)
    return SuiteSet(config, items, tuple(range(len(items))), tuple(tasks), records)


def _with_labels(task: Task, records: Sequence[RoiRecord]) -> Task:
    return replace(
        task,
        labels=tuple(record.label for record in records),
        patients=tuple(record.patient for record in records),
    )


def label_task(name: str, records: Sequence[RoiRecord]) -> Task:
    """Task of leave one out: regions of other patients with the query's label are relevant.

    Raises:
        BadInputError: no query has a right answer.
    """
    labels = np.array([record.label for record in records])
    queries = [
        SuiteQuery(item, gallery, labels[gallery] == labels[item], str(labels[item]), patient)
        for (item, gallery), patient in zip(
            other_patients(records), (record.patient for record in records), strict=True
        )
    ]
    return task_of(name, queries)


def task_of(name: str, queries: Sequence[SuiteQuery]) -> Task:
    """A task of the queries that have a right answer.

    Raises:
        BadInputError: none has.
    """
    scored = tuple(query for query in queries if query.relevant.any())
    if not scored:
        raise BadInputError(f"{name}: no query has a relevant region of another patient")
    return Task(name, scored, len(queries) - len(scored))


def same_label(records: Sequence[RoiRecord]) -> Mapping[int, ArrayI64]:
    """Other regions with the same label, of any patient, by region; no entry if there are none."""
    labels = np.array([record.label for record in records])
    everyone = np.arange(len(records))
    alike = {
        int(i): everyone[(labels == labels[i]) & (everyone != i)].astype(np.int64) for i in everyone
    }
    return {item: items for item, items in alike.items() if items.size}


def _records(config: SetConfig, data: Path) -> tuple[RoiRecord, ...]:
    if config.kind == "manifest":
        return read_manifest(data / config.path)
    tiles = read_tiles(data / config.path, config.where)
    unlabelled = [tile.path.name for tile in tiles if not tile.label]
    if unlabelled:
        raise BadInputError(f"{config.name}: {unlabelled[0]} has no label")
    return tuple(RoiRecord(tile.path, tile.patient, tile.label, None, None) for tile in tiles)


def _key(record: RoiRecord, data: Path) -> str:
    shape = record.geometry.wkt if record.geometry is not None else ""
    name = record.image.relative_to(data).as_posix()
    return f"{name} {record.image.stat().st_size} {record.mpp} {shape}"
