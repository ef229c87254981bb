"""The sets of a suite: what is embedded, what is asked, and what would be a right answer.

Every kind of set becomes the same thing: items, and tasks that say for each query which items are
in its gallery and which of those are relevant.
"""

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
        key: what it is of, for the cache: another file, another key.
        patient: whose it is, told apart over the whole suite.
        stained: what was stained at once: a patient, or one section of one.
        read: its pixels.
    """

    key: str
    patient: str
    stained: str
    read: Callable[[], RegionImage]


@dataclass(frozen=True, slots=True)
class SuiteQuery:
    """One question.

    Attributes:
        item: the query. gallery: (G,) items it is searched in, none of its own patient where the
            set has patients. relevant: (G,) bool.
        label: class that scores are averaged over first.
        group: what is drawn as a whole for the intervals: the patient.
    """

    item: int
    gallery: ArrayI64
    relevant: ArrayBool
    label: str
    group: str


@dataclass(frozen=True, slots=True)
class Task:
    """Questions that are scored together; those without a right answer are counted only.

    Attributes:
        labels, patients: of all items, where a metric may be learned from them; else empty.
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
        gallery: items that a gallery holds: what is stained anew.
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
        # A set without part in the choice may have no patients: no metric is learned on it.
        tasks.append(_told(task, labelled) if config.choice else task)
    return SuiteSet(config, items, tuple(range(len(items))), tuple(tasks), records)


def _told(task: Task, records: Sequence[RoiRecord]) -> Task:
    return replace(
        task,
        labels=tuple(record.label for record in records),
        patients=tuple(record.patient for record in records),
    )


def label_task(name: str, records: Sequence[RoiRecord]) -> Task:
    """Leave one out: regions of other patients with the query's label are relevant.

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
    """For each region the other regions with its label, of any patient; no entry if none."""
    labels = np.array([record.label for record in records])
    everyone = np.arange(len(records))
    alike = {
        int(i): everyone[(labels == labels[i]) & (everyone != i)].astype(np.int64) for i in everyone
    }
    return {item: others for item, others in alike.items() if others.size}


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
