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
from typing import IO, Any, TypeGuard

import numpy as np
import shapely
from django.db import transaction
from shapely.geometry import Polygon

from portal.annotations.documents import DocumentError, FeatureStream, features_read
from portal.annotations.formats import (
    AUTO,
    GEOJSON,
    Document,
    FormatError,
    Plane,
    documents_open,
    name_is_of,
    plane_of,
)
from portal.annotations.geometry import RoiShape
from portal.annotations.marks import mark_kind
from portal.annotations.models import Label, Roi, RoiImport
from portal.annotations.qupath import (
    Feature,
    FeatureError,
    Problem,
    class_of,
    feature_read,
    features_of,
    shape_named,
)
from portal.annotations.selectors import FrameRef, frame_resolve
from portal.annotations.services.classes import Classes, ClassesFound
from portal.annotations.services.fields import require_area, roi_shape
from portal.annotations.services.reports import ImportItem, ImportTally
from portal.annotations.services.tracks import KeyFrame, track_clean
from portal.annotations.trail import SeenIds, Trail
from portal.archive.models import Canvas, CanvasKind
from portal.core.errors import InvalidInputError, PortalError
from portal.core.text import name_key
from portal.labs.models import User

CHUNK = 100
"""ROIs in a transaction: SQLite's only writer is kept for some tenths of a second at most."""
CHUNK_VERTICES = 200_000
"""Of a part: two of the largest outlines that an ROI may have; as Python's lists some 30 MB."""
COUNTED = 20  # features may have megabytes each; even then a count is told within seconds
OUTLINES_MOST, OUTLINES_PX = 1_000, 500  # of a preview, on a drawing so many pixels wide
FILES_SHOWN, SENTENCES_MOST = 5, 20  # of an archive, in the result of an import
MIXED = "mixed"  # the format of an archive of documents of several formats
FEATURES_MOST = 1_000_000  # their ids are kept to find doubles: some 150 MB
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
        return (one for document in self.documents for one in self._of_many(document))

    def behind(self, count: int, trail: Trail) -> Iterator[Any]:
        """The features after this many: from their place on, where the trail knows it."""
        if trail.place is not None:
            return features_read(self.documents[0].stream, since=trail.place)
        return islice(self(), count, None)

    def decided(self) -> str:
        """Sentences on which documents and images were read; empty if that is clear.

        Raises ``FormatError`` as reading does.
        """
        said = [
            f"{document.name}: {text}" if document.name and len(self.documents) > 1 else text
            for document in self._own()
            if (text := self._image_decided(document))
        ]
        others = [one.name for one in self.documents if one not in self._own()]
        if others:
            said.append(f"Of the archive, {self._own()[0].name} was read, by its name.")
        if self.unread:
            shown = ", ".join(self.unread[:FILES_SHOWN])
            more = len(self.unread) - FILES_SHOWN
            said.append(f"Not read: {shown}{f' and {more:,} more files' if more > 0 else ''}.")
        return " ".join(said[:SENTENCES_MOST])

    def _own(self) -> Sequence[Document]:
        """The documents with the canvas' name; all, where none has it."""
        named = [one for one in self.documents if name_is_of(one.name, self.plane)]
        return named or self.documents

    def _of_many(self, document: Document) -> Iterator[Any]:
        is_own = document in self._own()
        try:
            for one in self._features(document):
                reason = f"it belongs to another image: {document.name}"
                yield one if is_own else Problem(reason, shape_named(one))
        except DocumentError as error:
            raise FormatError(f"{document.name}: {error.message}", code=error.code) from None

    def _features(self, document: Document) -> Iterator[Any]:
        document.stream.seek(0)
        return document.reader.read(document.stream, self.plane)

    def _image_decided(self, document: Document) -> str:
        document.stream.seek(0)
        return document.reader.image_decided(document.stream, self.plane)


def file_source(stream: IO[bytes], canvas: Canvas, *, named: str = AUTO) -> FileSource:
    """The documents in a file, of formats that are read; ``FormatError`` where there are none."""
    documents, unread = documents_open(stream, named=AUTO if named == MIXED else named)
    return FileSource(documents, plane_of(canvas), unread)


def format_of(source: Source) -> str:
    """The name of the format a source is read as."""
    return source.format if isinstance(source, FileSource) else GEOJSON


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
    seen: SeenIds = field(default_factory=SeenIds)
    part: list[ImportItem] = field(default_factory=list)
    outlines: list[dict[str, Any]] = field(default_factory=list)

    def refuse(self, index: int, reason: str, shape: str) -> None:
        """Note that a feature is not imported."""
        self.part.append(ImportItem(index, "refused", reason=reason, shape=shape))

    def add(self, plan: Plan, status: str) -> None:
        """Note what became of a feature."""
        notes = (*plan.feature.notes, *plan.shape.notes)
        shape = shape_named(plan.feature)
        self.part.append(ImportItem(plan.index, status, plan.roi_id, notes, shape=shape))

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


@dataclass(frozen=True, slots=True)
class Survey:
    """Facts about a document, read before anything is written.

    Attributes:
        total: features. classes: of these. decided: see ``FileSource.decided``.
    """

    total: int
    classes: ClassesFound
    decided: str = ""


def document_survey(source: Source, work: ImportWork = AT_ONCE) -> Survey:
    """Look through a document. Raises what the document as a whole is refused for.

    Where that was done before (``work.survey``), the document is not read.
    """
    if work.survey and work.survey.exists():
        kept = json.loads(work.survey.read_text())
        classes = {key: tuple(one) for key, one in kept["classes"].items()}
        return Survey(kept["total"], classes, kept["decided"])
    total, found = _surveyed(source, work.counted)
    survey = Survey(total, found, source.decided() if isinstance(source, FileSource) else "")
    if work.survey:
        unfinished = work.survey.with_suffix(".new")
        unfinished.write_text(json.dumps(asdict(survey)))
        unfinished.rename(work.survey)
    return survey


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
            key = name_key(name)
            first, known_color, count = classes.get(key, (name, color, 0))
            classes[key] = (first, known_color or color, count + 1)
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
        run.refuse(index, str(error), shape_named(raw))
        return None
    except PortalError as error:
        run.refuse(index, error.message, shape_named(raw))
        return None
    content = _id_by_content(run.canvas, feature, shape)
    first, is_same = _noted(run, index, feature.id or content, content)
    if first != index and not is_same and feature.id:
        note = f"its id is that of feature {first + 1} too, so it got a new one"
        content = uuid.uuid5(feature.id, str(content))
        feature = replace(feature, id=None, notes=(*feature.notes, note))
        first, _ = _noted(run, index, content, content)
    key = name_key(feature.label)
    if first != index:
        run.refuse(index, f"the same object as feature {first + 1}", shape_named(feature))
    elif key in run.classes.problems:
        run.refuse(index, run.classes.problems[key], shape_named(feature))
    else:
        label = run.classes.labels[key] if key else None
        return Plan(index, feature, shape, frame, feature.id or content, label, track)
    return None


def _noted(run: ImportRun, index: int, roi_id: uuid.UUID, content: uuid.UUID) -> tuple[int, bool]:
    """The first feature of the document with this id, and whether it is the same object."""
    if run.work.trail:
        run.work.trail.note(index, roi_id, content)
    return run.seen.first(roi_id, content, index)


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
