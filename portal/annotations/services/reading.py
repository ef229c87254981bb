"""A document on its way in: surveyed, then read part by part into what is to be written."""

from __future__ import annotations

import gc
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeGuard

import numpy as np
import shapely
from django.db import transaction
from shapely.geometry import Polygon

from portal.annotations.documents import FeatureStream, features_read
from portal.annotations.formats import AUTO, GEOJSON, FormatReader, Plane, plane_of, reader_of
from portal.annotations.geometry import RoiShape
from portal.annotations.marks import mark_kind
from portal.annotations.models import Label, Roi, RoiImport
from portal.annotations.qupath import Feature, FeatureError, class_of, feature_read, features_of
from portal.annotations.selectors import FrameRef, frame_resolve
from portal.annotations.services.classes import Classes, ClassesFound
from portal.annotations.services.fields import require_area, roi_shape
from portal.annotations.services.reports import ImportItem, ImportTally
from portal.annotations.services.tracks import KeyFrame, track_clean
from portal.annotations.trail import Trail
from portal.archive.models import Canvas, CanvasKind
from portal.core.errors import InvalidInputError, PortalError
from portal.labs.models import User

CHUNK = 100
"""ROIs in a transaction: SQLite's only writer is kept for some tenths of a second at most."""
CHUNK_VERTICES = 200_000
"""Of a part: two of the largest outlines that an ROI may have; as Python's lists some 30 MB."""
COUNTED = 20  # features may have megabytes each; even then a count is told within seconds
OUTLINES_MOST, OUTLINES_PX = 1_000, 500  # of a preview, on a drawing so many pixels wide
FEATURES_MOST = 1_000_000  # their ids are kept to find doubles: some 150 MB
Source = Callable[[], Iterator[Any]]
"""Gives the parsed features of a document, from its beginning each time."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """A document in a file, and the format that it was found to be."""

    stream: IO[bytes]
    plane: Plane
    reader: FormatReader

    def __call__(self) -> Iterator[Any]:
        """Its features, from the first one."""
        self.stream.seek(0)
        return self.reader.read(self.stream, self.plane)

    def behind(self, count: int, trail: Trail) -> Iterator[Any]:
        """Its features after this many: from their place on, where the trail knows it."""
        if trail.place is not None:
            return features_read(self.stream, since=trail.place)
        return islice(self(), count, None)


def file_source(stream: IO[bytes], canvas: Canvas, *, named: str = AUTO) -> FileSource:
    """A document of a format that is read; ``FormatError`` where it is of none."""
    return FileSource(stream, plane_of(canvas), reader_of(stream, named=named))


def format_of(source: Source) -> str:
    """The name of the format a source is read as."""
    return source.reader.name if isinstance(source, FileSource) else GEOJSON


@dataclass(slots=True)
class Plan:
    """One feature on its way in."""

    index: int
    feature: Feature
    shape: RoiShape
    frame: FrameRef | None
    roi_id: uuid.UUID
    label: Label | None = None
    track: Sequence[KeyFrame] = ()


@dataclass(frozen=True, slots=True)
class ImportWork:
    """How an import is carried out, and who hears of it.

    Attributes:
        part: the transaction of a part. kept: called in it, when all of the part was written.
        progress: called outside of it, and between previewed parts.
        counted: features counted so far, before it is known how many there are.
        done: this many features were dealt with before. trail: what is known of them.
        survey: the file in which what the first pass found is kept, for the next time.
        told: hears of every feature, in the order of the document.
    """

    part: Callable[[], AbstractContextManager[None]] = transaction.atomic
    kept: Callable[[ImportRun], None] | None = None
    progress: Callable[[ImportRun], None] | None = None
    counted: Callable[[int], None] | None = None
    done: int = 0
    told: Callable[[ImportItem], None] | None = None
    trail: Trail | None = None
    survey: Path | None = None


AT_ONCE = ImportWork()


@dataclass(slots=True)
class ImportRun:
    """One import, or the preview of one.

    Attributes:
        read: features that were read so far.
    """

    canvas: Canvas
    user: User
    row: RoiImport
    classes: Classes
    tally: ImportTally
    work: ImportWork = AT_ONCE
    read: int = 0
    frames: dict[int, FrameRef | None] = field(default_factory=dict)
    seen: dict[int, int] = field(default_factory=dict)
    part: list[ImportItem] = field(default_factory=list)
    outlines: list[dict[str, Any]] = field(default_factory=list)

    def refuse(self, index: int, reason: str) -> None:
        """Note that a feature is not imported."""
        self.part.append(ImportItem(index, "refused", reason=reason))

    def add(self, plan: Plan, status: str) -> None:
        """Note what became of a feature."""
        notes = (*plan.feature.notes, *plan.shape.notes)
        self.part.append(ImportItem(plan.index, status, plan.roi_id, notes))

    def part_ends(self) -> None:
        """Report a part in the order of the document."""
        for item in sorted(self.part, key=lambda item: item.index):
            if item.index >= self.work.done:
                self.tally.add(item)
        self.part.clear()

    def draw(self, plan: Plan, status: str) -> None:
        """Keep a rough outline of one feature in every few."""
        every = -(-self.tally.total // OUTLINES_MOST)
        if plan.index % every == 0 and len(self.outlines) < OUTLINES_MOST:
            label = plan.feature.label
            self.outlines.append(
                {"class": label, "status": status, "rings": rough_rings(self, plan)}
            )


def source_of(document: object) -> Source:
    """Of a parsed document, or of one that is a source already."""
    if callable(document):
        return document
    features = features_of(document)
    return lambda: iter(features)


def document_survey(source: Source, work: ImportWork = AT_ONCE) -> tuple[int, ClassesFound]:
    """How many features there are, and of which classes. Raises what the document as a whole is
    refused for. Where that is known already, the document is not read."""
    if work.survey and work.survey.exists():
        kept = json.loads(work.survey.read_text())
        return kept["total"], {key: tuple(one) for key, one in kept["classes"].items()}
    total, classes = _surveyed(source, work.counted)
    if work.survey:
        beside = work.survey.with_suffix(".new")
        beside.write_text(json.dumps({"total": total, "classes": classes}))
        beside.rename(work.survey)
    return total, classes


def _surveyed(source: Source, counted: Callable[[int], None] | None) -> tuple[int, ClassesFound]:
    classes: dict[str, tuple[str, str | None, int]] = {}
    total = 0
    for raw in source():
        total += 1
        if total > FEATURES_MOST:
            raise InvalidInputError(
                f"more than {FEATURES_MOST:,} features. Send it in parts; what has already been "
                "imported is recognised.",
                details={"limit": FEATURES_MOST},
            )
        if counted and total % COUNTED == 0:
            counted(total)
        name, color = class_of(raw)
        if name:
            first, known_color, count = classes.get(name.lower(), (name, color, 0))
            classes[name.lower()] = (first, known_color or color, count + 1)
    return total, classes


def plans_read(run: ImportRun, source: Source) -> Iterator[list[Plan]]:
    """What is to be written, in parts; the rest is refused."""
    trail, done = run.work.trail, run.work.done
    if trail and trail.goes_on and isinstance(source, FileSource):
        given, first = source.behind(done, trail), done
        run.seen = trail.seen
    else:
        given, first = source(), 0
    features = enumerate(given, first)
    while part := list(_part(features)):
        plans = [plan for index, raw in part if (plan := _planned(run, index, raw))]
        run.read = part[-1][0] + 1
        if trail:
            trail.write(run.read, given.place() if isinstance(given, FeatureStream) else None)
        if run.read > done and (new := [p for p in plans if p.index >= done]):
            yield new
        run.part_ends()
        gc.collect(1)
        if run.work.progress:
            run.work.progress(run)


@contextmanager
def few_collections() -> Iterator[None]:
    """Collect reference cycles after each part, not while one is read: documents have none, and
    looking through 100,000 vertices again and again takes half of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _part(features: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """The next features, limited in number and size: a hundred of the largest fill the memory."""
    vertices = 0
    for one in islice(features, CHUNK):
        yield one
        vertices += _vertices(one[1])
        if vertices >= CHUNK_VERTICES:
            return


def _vertices(raw: object) -> int:
    """Roughly how many vertices an unchecked feature has; few where it has no outline."""
    geometry = raw.geometry if isinstance(raw, Feature) else None
    if isinstance(raw, dict):
        geometry = raw.get("geometry")
    found = geometry.get("coordinates") if isinstance(geometry, dict) else None
    while _is_nested(found):
        found = [inner for outer in found if isinstance(outer, list) for inner in outer]
    return len(found) if isinstance(found, list) else 0


def _is_nested(found: Any) -> TypeGuard[list[Any]]:
    """Whether it holds lists of lists: polygons or rings, not points."""
    first = found[0] if isinstance(found, list) and found else None
    return isinstance(first, list) and bool(first) and isinstance(first[0], list)


def rough_rings(run: ImportRun, plan: Plan) -> list[list[float]]:
    """Outer rings as x, y in turns, whole pixels, to be drawn a few hundred pixels wide."""
    tolerance = max(run.canvas.width_px, run.canvas.height_px) / OUTLINES_PX
    shape = shapely.simplify(shapely.geometry.shape(plan.shape.geometry), tolerance)
    if mark_kind(plan.shape.geometry):  # as wide as a line is drawn
        shape = shapely.buffer(shape, 2 * tolerance, quad_segs=1)
    parts = [part for part in shapely.get_parts(shape) if isinstance(part, Polygon)]
    return [
        np.round(shapely.get_coordinates(part.exterior)).ravel().astype(int).tolist()
        for part in parts
    ]


def _planned(run: ImportRun, index: int, raw: object) -> Plan | None:
    """Everything that needs no lock: parsing, repairing, frames, labels."""
    try:
        feature = feature_read(raw)
        frame = _frame(run, feature.t)
        shape = roi_shape(run.canvas, feature.geometry)
        own = frame.index if frame else None
        track = track_clean(run.canvas, own_index=own, track=feature.track)
        require_area(mark_kind(shape.geometry) or feature.kind, track)
    except FeatureError as error:
        run.refuse(index, str(error))
        return None
    except PortalError as error:
        run.refuse(index, error.message)
        return None
    roi_id = feature.id or _id_by_content(run.canvas, feature, shape)
    if run.work.trail:
        run.work.trail.note(index, roi_id)
    first = run.seen.setdefault(roi_id.int, index)
    key = feature.label.lower()
    if first != index:
        run.refuse(index, f"the same object as feature {first + 1}")
    elif key in run.classes.problems:
        run.refuse(index, run.classes.problems[key])
    else:
        label = run.classes.labels[key] if key else None
        return Plan(index, feature, shape, frame, roi_id, label, track)
    return None


def _frame(run: ImportRun, t: int) -> FrameRef | None:
    if t not in run.frames:
        is_video = run.canvas.kind == CanvasKind.VIDEO
        index = t if is_video or t else None
        run.frames[t] = frame_resolve(run.canvas, index=index, pts=None)
    return run.frames[t]


def _id_by_content(canvas: Canvas, feature: Feature, shape: RoiShape) -> uuid.UUID:
    """Objects without an id get one that follows from what they are: importing twice adds none."""
    words = repr((feature.t, feature.name, feature.label))
    return uuid.uuid5(canvas.pk, words + shape.geometry.text)


def plans_known(
    run: ImportRun, plans: list[Plan], *, lock: bool = True
) -> list[tuple[Plan, Roi | None]]:
    """Each plan with the ROI of this canvas that it names, if there is one."""
    ids = {one for plan in plans for one in (plan.roi_id, _derived(run, plan))}
    rows = Roi.everything.select_for_update() if lock else Roi.everything.all()
    found = {roi.pk: roi for roi in rows.filter(pk__in=ids).order_by("pk")}
    hidden = Roi.everything.filter(canvas=run.canvas).hidden_from(run.user)
    kept_from = set(hidden.filter(pk__in=ids).values_list("pk", flat=True))
    pairs: list[tuple[Plan, Roi | None]] = []
    for plan in plans:
        roi = found.get(plan.roi_id)
        if roi is not None and (roi.canvas_id != run.canvas.pk or roi.pk in kept_from):
            # The same file brought onto a second canvas: its own objects, by a derived id.
            plan.roi_id = _derived(run, plan)
            roi = found.get(plan.roi_id)
        if roi is not None:
            roi.canvas = run.canvas
        pairs.append((plan, roi))
    return pairs


def _derived(run: ImportRun, plan: Plan) -> uuid.UUID:
    return uuid.uuid5(run.canvas.pk, str(plan.roi_id))
