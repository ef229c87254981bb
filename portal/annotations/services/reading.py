"""A document on its way in: surveyed, then read part by part into what is to be written."""

from __future__ import annotations

import gc
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeGuard, TypeVar

import numpy as np
import shapely
from django.db import transaction
from shapely.geometry import Polygon

from portal.annotations.documents import DocumentError, FeatureStream, features_read
from portal.annotations.formats.images import name_is_of
from portal.annotations.formats.registry import AUTO, GEOJSON
from portal.annotations.formats.types import FormatError, Plane, plane_of
from portal.annotations.formats.unpacking import Document, documents_open
from portal.annotations.geometry import RoiShape
from portal.annotations.import_progress import ImportProgress, SeenIds
from portal.annotations.marks import mark_kind
from portal.annotations.models import Label, RoiImport, VideoEvent
from portal.annotations.qupath import (
    EventFeature,
    Feature,
    FeatureError,
    Problem,
    class_of,
    describe_feature,
    feature_read,
    features_of,
)
from portal.annotations.selectors.frames import FrameRef, frame_resolve
from portal.annotations.services.classes import Classes, ClassesFound
from portal.annotations.services.fields import require_area, roi_shape
from portal.annotations.services.reports import ImportItem, ImportTally
from portal.annotations.services.tracks import KeyFrame, track_clean
from portal.annotations.services.versions import Row
from portal.annotations.services.video_events import VideoEventChanges, video_event_prepare
from portal.archive.models import Canvas, CanvasKind
from portal.core.errors import InvalidInputError, PortalError
from portal.core.text import name_key
from portal.labs.models import User

CHUNK = 100
"""ROIs in a transaction: SQLite's only writer is kept for some tenths of a second at most."""
CHUNK_VERTICES = 200_000
"""Maximum number of vertices in a part: two of the largest outlines of an ROI, some 30 MB as
lists."""
COUNTED = 20  # features may have megabytes each; the count is still reported within seconds
MAX_OUTLINES, OUTLINES_PX = 1_000, 500  # outlines of a preview, and the width of its drawing
FILES_SHOWN, MAX_SENTENCES = 5, 20  # of an archive, in the result of an import
MIXED = "mixed"  # the format of an archive of documents of several formats
MAX_FEATURES = 1_000_000  # their ids are kept to find doubles: some 150 MB
Source = Callable[[], Iterator[Any]]
"""Gives the parsed features of a document, from its beginning each time."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """The documents of a file, and the canvas that they are read onto.

    Attributes:
        unread: names of the other files of an archive.
    """

    documents: Sequence[Document]
    plane: Plane
    unread: Sequence[str] = ()

    @property
    def format(self) -> str:
        """Format of the documents; ``MIXED`` where they differ."""
        names = {document.reader.name for document in self.documents}
        return names.pop() if len(names) == 1 else MIXED

    def __call__(self) -> Iterator[Any]:
        """The features of all documents, from the first one."""
        if len(self.documents) == 1:
            return self._features(self.documents[0])
        return (
            feature for document in self.documents for feature in self._features_of_many(document)
        )

    def behind(self, count: int, import_progress: ImportProgress) -> Iterator[Any]:
        """Features after the first ``count``; seeks to them if the position is known."""
        if import_progress.place is not None:
            return features_read(self.documents[0].stream, since=import_progress.place)
        return islice(self(), count, None)

    def decided(self) -> str:
        """Sentences on which documents and images were read; empty if that is clear.

        Raises ``FormatError`` as reading does.
        """
        sentences = [
            f"{document.name}: {text}" if document.name and len(self.documents) > 1 else text
            for document in self._document_of_plane()
            if (text := self._image_decided(document))
        ]
        other_names = [
            candidate.name
            for candidate in self.documents
            if candidate not in self._document_of_plane()
        ]
        if other_names:
            sentences.append(
                f"Of the archive, {self._document_of_plane()[0].name} was read, by its name."
            )
        if self.unread:
            unread_names = ", ".join(self.unread[:FILES_SHOWN])
            unlisted_count = len(self.unread) - FILES_SHOWN
            sentences.append(
                f"Not read: {unread_names}"
                f"{f' and {unlisted_count:,} more files' if unlisted_count > 0 else ''}."
            )
        return " ".join(sentences[:MAX_SENTENCES])

    def _document_of_plane(self) -> Sequence[Document]:
        """The documents with the canvas' name; all, where none has it."""
        matching = [
            document for document in self.documents if name_is_of(document.name, self.plane)
        ]
        return matching or self.documents

    def _features_of_many(self, document: Document) -> Iterator[Any]:
        is_own = document in self._document_of_plane()
        try:
            for feature in self._features(document):
                reason = f"it belongs to another image: {document.name}"
                yield feature if is_own else Problem(reason, describe_feature(feature))
        except DocumentError as error:
            raise FormatError(f"{document.name}: {error.message}", code=error.code) from None

    def _features(self, document: Document) -> Iterator[Any]:
        document.stream.seek(0)
        return document.reader.read(document.stream, self.plane)

    def _image_decided(self, document: Document) -> str:
        document.stream.seek(0)
        return document.reader.image_decided(document.stream, self.plane)


def file_source(stream: IO[bytes], canvas: Canvas, *, format_name: str = AUTO) -> FileSource:
    """The documents in a file, of formats that are read; ``FormatError`` where there are none."""
    documents, unread = documents_open(
        stream, format_name=AUTO if format_name == MIXED else format_name
    )
    return FileSource(documents, plane_of(canvas), unread)


def format_of(source: Source) -> str:
    """The name of the format a source is read as."""
    return source.format if isinstance(source, FileSource) else GEOJSON


@dataclass(slots=True)
class Plan:
    """A feature to import."""

    index: int
    feature: Feature
    shape: RoiShape
    frame: FrameRef | None
    row_id: uuid.UUID
    label: Label | None = None
    track: Sequence[KeyFrame] = ()


@dataclass(slots=True)
class EventPlan:
    """An event to import, as the row that it becomes if it is new."""

    index: int
    feature: EventFeature
    event: VideoEvent
    row_id: uuid.UUID

    @property
    def changes(self) -> VideoEventChanges:
        """Fields of the document, as they are stored."""
        return {
            "name": self.event.name,
            "note": self.event.note,
            "first_index": self.event.first_index,
            "last_index": self.event.last_index,
        }


AnyPlan = TypeVar("AnyPlan", Plan, EventPlan)


@dataclass(frozen=True, slots=True)
class ImportWork:
    """Execution options and callbacks of an import.

    Attributes:
        part: Transaction of a part.
        on_stored: Called within the transaction after all of the part was written.
        progress: Called outside of the transaction, and between previewed parts.
        counted: Called with the number of features counted, before the total is known.
        done: Number of features processed by earlier runs.
        import_progress: Resume data of these features.
        survey: File that caches the result of the first pass.
        on_item: Called for every feature, in the order of the document.
    """

    part: Callable[[], AbstractContextManager[None]] = transaction.atomic
    on_stored: Callable[[ImportRun], None] | None = None
    progress: Callable[[ImportRun], None] | None = None
    counted: Callable[[int], None] | None = None
    done: int = 0
    on_item: Callable[[ImportItem], None] | None = None
    import_progress: ImportProgress | None = None
    survey: Path | None = None


AT_ONCE = ImportWork()


@dataclass(slots=True)
class ImportRun:
    """An import, or the preview of one.

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
    seen: SeenIds = field(default_factory=SeenIds)
    part: list[ImportItem] = field(default_factory=list)
    outlines: list[dict[str, Any]] = field(default_factory=list)

    def refuse(self, index: int, reason: str, shape: str) -> None:
        """Note that a feature is not imported."""
        self.part.append(ImportItem(index, "refused", reason=reason, shape=shape))

    def add(self, plan: Plan | EventPlan, status: str) -> None:
        """Note what became of a feature."""
        shape = describe_feature(plan.feature)
        item = ImportItem(plan.index, status, shape=shape, is_event=True)
        if isinstance(plan, Plan):
            notes = (*plan.feature.notes, *plan.shape.notes)
            item = ImportItem(plan.index, status, plan.row_id, notes, shape=shape)
        self.part.append(item)

    def part_ends(self) -> None:
        """Report a part in the order of the document."""
        for item in sorted(self.part, key=lambda item: item.index):
            if item.index >= self.work.done:
                self.tally.add(item)
        self.part.clear()

    def draw(self, plan: Plan, status: str) -> None:
        """Keep a rough outline of one feature in every few."""
        every = -(-self.tally.total // MAX_OUTLINES)
        if plan.index % every == 0 and len(self.outlines) < MAX_OUTLINES:
            label = plan.feature.label
            self.outlines.append(
                {"class": label, "status": status, "rings": rough_rings(self, plan)}
            )


def source_of(document: object) -> Source:
    """Source of a parsed document; a source is returned unchanged."""
    if callable(document):
        return document
    features = features_of(document)
    return lambda: iter(features)


@dataclass(frozen=True, slots=True)
class Survey:
    """Number of features of a document and their classes, read before anything is written.

    Attributes:
        total: features.
        classes: of these.
        decided: see ``FileSource.decided``.
    """

    total: int
    classes: ClassesFound
    decided: str = ""


def document_survey(source: Source, work: ImportWork = AT_ONCE) -> Survey:
    """Count the features and classes of a document, before anything is written.

    The result is cached in the file ``work.survey``; with it, the document is not read again.

    Raises:
        InvalidInputError: The document has more than ``MAX_FEATURES`` features.
    """
    if work.survey and work.survey.exists():
        stored = json.loads(work.survey.read_text())
        classes = {key: tuple(entry) for key, entry in stored["classes"].items()}
        return Survey(stored["total"], classes, stored["decided"])
    total, classes_found = _survey_features(source, work.counted)
    survey = Survey(
        total, classes_found, source.decided() if isinstance(source, FileSource) else ""
    )
    if work.survey:
        unfinished = work.survey.with_suffix(".new")
        unfinished.write_text(json.dumps(asdict(survey)))
        unfinished.rename(work.survey)
    return survey


def _survey_features(
    source: Source, counted: Callable[[int], None] | None
) -> tuple[int, ClassesFound]:
    classes: dict[str, tuple[str, str | None, int]] = {}
    total = 0
    for raw in source():
        total += 1
        if total > MAX_FEATURES:
            raise InvalidInputError(
                f"more than {MAX_FEATURES:,} features. Send it in parts; what has already been "
                "imported is recognised.",
                details={"limit": MAX_FEATURES},
            )
        if counted and total % COUNTED == 0:
            counted(total)
        name, color = class_of(raw)
        if name:
            key = name_key(name)
            first, known_color, count = classes.get(key, (name, color, 0))
            classes[key] = (first, known_color or color, count + 1)
    return total, classes


def plans_read(run: ImportRun, source: Source) -> Iterator[list[Plan | EventPlan]]:
    """Yield the features to write, in parts; refuse the others."""
    import_progress, start = run.work.import_progress, run.work.done
    if import_progress and import_progress.can_resume and isinstance(source, FileSource):
        stream, first = source.behind(start, import_progress), start
        run.seen = import_progress.seen
    else:
        stream, first = source(), 0
    features = enumerate(stream, first)
    while part := list(_part(features)):
        plans = [plan for index, raw in part if (plan := _plan_feature(run, index, raw))]
        run.read = part[-1][0] + 1
        if import_progress:
            import_progress.write(
                run.read, stream.place() if isinstance(stream, FeatureStream) else None
            )
        if run.read > start and (new := [p for p in plans if p.index >= start]):
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
    for numbered in islice(features, CHUNK):
        yield numbered
        vertices += _vertices(numbered[1])
        if vertices >= CHUNK_VERTICES:
            return


def _vertices(raw: object) -> int:
    """Roughly how many vertices an unchecked feature has; few where it has no outline."""
    geometry = raw.geometry if isinstance(raw, Feature) else None
    if isinstance(raw, dict):
        geometry = raw.get("geometry")
    coordinates = geometry.get("coordinates") if isinstance(geometry, dict) else None
    while _is_nested(coordinates):
        coordinates = [inner for outer in coordinates if isinstance(outer, list) for inner in outer]
    return len(coordinates) if isinstance(coordinates, list) else 0


def _is_nested(coordinates: Any) -> TypeGuard[list[Any]]:
    """Return whether it holds lists of lists: polygons or rings, not points."""
    first = coordinates[0] if isinstance(coordinates, list) and coordinates else None
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


def _plan_feature(run: ImportRun, index: int, raw: object) -> Plan | EventPlan | None:
    """Everything that needs no lock: parsing, repairing, frames, labels."""
    if isinstance(raw, EventFeature):
        return _planned_event(run, index, raw)
    try:
        feature = feature_read(raw)
        frame = _frame(run, feature.t)
        shape = roi_shape(run.canvas, feature.geometry)
        own_index = frame.index if frame else None
        track = track_clean(run.canvas, own_index=own_index, track=feature.track)
        require_area(mark_kind(shape.geometry) or feature.kind, track)
    except FeatureError as error:
        run.refuse(index, str(error), describe_feature(raw))
        return None
    except PortalError as error:
        run.refuse(index, error.message, describe_feature(raw))
        return None
    content = _id_by_content(run.canvas, feature, shape)
    first, is_same = _note_id(run, index, feature.id or content, content)
    if first != index and not is_same and feature.id:
        note = f"its id is that of feature {first + 1} too, so it got a new one"
        content = uuid.uuid5(feature.id, str(content))
        feature = replace(feature, id=None, notes=(*feature.notes, note))
        first, _ = _note_id(run, index, content, content)
    key = name_key(feature.label)
    if first != index:
        run.refuse(index, f"the same object as feature {first + 1}", describe_feature(feature))
    elif key in run.classes.problems:
        run.refuse(index, run.classes.problems[key], describe_feature(feature))
    else:
        label = run.classes.labels[key] if key else None
        return Plan(index, feature, shape, frame, feature.id or content, label, track)
    return None


def _planned_event(run: ImportRun, index: int, feature: EventFeature) -> EventPlan | None:
    changes: VideoEventChanges = {
        "name": feature.name,
        "note": feature.note,
        "first_index": feature.first_index,
        "last_index": feature.last_index,
    }
    try:
        event = video_event_prepare(canvas=run.canvas, user=run.user, changes=changes)
    except PortalError as error:
        run.refuse(index, error.message, describe_feature(feature))
        return None
    plan = EventPlan(index, feature, event, feature.id or event.pk)
    content = uuid.uuid5(run.canvas.pk, repr(("event", *plan.changes.values())))
    plan.row_id = feature.id or content
    first, _ = _note_id(run, index, plan.row_id, content)
    if first != index:
        run.refuse(index, f"the same event as feature {first + 1}", describe_feature(feature))
        return None
    return plan


def _note_id(run: ImportRun, index: int, roi_id: uuid.UUID, content: uuid.UUID) -> tuple[int, bool]:
    """The first feature of the document with this id, and whether it is the same object."""
    if run.work.import_progress:
        run.work.import_progress.note(index, roi_id, content)
    return run.seen.first(roi_id, content, index)


def _frame(run: ImportRun, t: int) -> FrameRef | None:
    if t not in run.frames:
        is_video = run.canvas.kind == CanvasKind.VIDEO
        index = t if is_video or t else None
        run.frames[t] = frame_resolve(run.canvas, index=index, pts=None)
    return run.frames[t]


def _id_by_content(canvas: Canvas, feature: Feature, shape: RoiShape) -> uuid.UUID:
    """Objects without an id get one derived from their content: a second import adds none."""
    words = repr((feature.t, feature.name, feature.label))
    return uuid.uuid5(canvas.pk, words + shape.geometry.text)


def plans_known(
    run: ImportRun, plans: list[AnyPlan], model: type[Row], *, lock: bool = True
) -> list[tuple[AnyPlan, Row | None]]:
    """Pair each plan with the ROI or event of this canvas that it names, or None."""
    if not plans:
        return []
    ids = {row_id for plan in plans for row_id in (plan.row_id, _derived_id(run, plan))}
    rows = model.all_objects.select_for_update() if lock else model.all_objects.all()
    rows_by_id: dict[uuid.UUID, Row] = {
        row.pk: row for row in rows.filter(pk__in=ids).order_by("pk")
    }
    hidden = model.all_objects.filter(canvas=run.canvas).hidden_from(run.user)
    hidden_ids = set(hidden.filter(pk__in=ids).values_list("pk", flat=True))
    pairs: list[tuple[AnyPlan, Row | None]] = []
    for plan in plans:
        row = rows_by_id.get(plan.row_id)
        if row is not None and (row.canvas_id != run.canvas.pk or row.pk in hidden_ids):
            # The same file brought onto a second canvas: its own objects, by a derived id.
            plan.row_id = _derived_id(run, plan)
            row = rows_by_id.get(plan.row_id)
        if row is not None:
            row.canvas = run.canvas
        pairs.append((plan, row))
    return pairs


def _derived_id(run: ImportRun, plan: Plan | EventPlan) -> uuid.UUID:
    return uuid.uuid5(run.canvas.pk, str(plan.row_id))
