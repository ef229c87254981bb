"""Rows of a crate as they will be stored: in the importing lab, of its people, with its labels.

Small tables are held in memory: the case's items and its vocabulary. Regions, revisions, frames and
vectors are read again on each request, row by row.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.db import models

from ml.config import config_from_dict
from ml.errors import BadInputError
from ml.types import DisplayRange
from portal.annotations.models import Label, Roi, RoiRevision
from portal.archive.models import Asset, Canvas, CanvasKind, Case, ItemState, Slide, Video
from portal.archive.services.cases import search_text, tags_clean
from portal.archive.services.display import check_display_range
from portal.archive.services.items import canvas_id_of
from portal.archive.services.scale import MAX_MPP, MIN_MPP
from portal.archive.services.uploads import filename_clean
from portal.core.errors import InvalidInputError
from portal.core.text import name_clean, text_clean
from portal.embeddings.models import Embedding, Encoder
from portal.interop.rocrate.formats.reader import CrateError, CrateReader, is_sha256, shown
from portal.interop.rocrate.formats.rows import row_read
from portal.interop.rocrate.services.imports.checks import (
    component_check,
    frame_check,
    mosaic_check,
    mosaic_file,
    roi_check,
    vector_check,
)
from portal.labs.models import Lab, Membership, User
from portal.mosaics.models import Mosaic, MosaicComponent, MosaicFrame
from portal.mosaics.services.mosaics import component_ids, frame_id

TABLES: Mapping[str, type[models.Model]] = {
    "case": Case,
    "assets": Asset,
    "canvases": Canvas,
    "slides": Slide,
    "videos": Video,
    "mosaics": Mosaic,
    "mosaic_components": MosaicComponent,
    "mosaic_frames": MosaicFrame,
    "labels": Label,
    "rois": Roi,
    "roi_revisions": RoiRevision,
    "encoders": Encoder,
    "embeddings": Embedding,
}
"""Models in the order of writing: each follows those that it refers to."""
MAX_TABLE_ROWS = 20_000  # rows of a small table; as many as files in a crate
MAX_ROI_ROWS = 2_000_000  # of which ids are held: a tenth of a GiB
NOT_BUILT = "It had not been built when its case was exported."

_Row = TypeVar("_Row", bound=models.Model)
_Value = TypeVar("_Value")
Item = Slide | Video


@dataclass(frozen=True, slots=True)
class RoiPlace:
    """Properties of a region that rows referring to it have to agree with."""

    canvas_id: uuid.UUID
    frame_index: int | None
    version: int


@dataclass(slots=True)
class CaseRows:
    """Result of ``rows_read``, by the ids of the crate.

    Attributes:
        frames: Number of frames of each canvas' video, as the crate says.
        rois: Position of each region.
        indexes: Components of each mosaic.
        used: Labels of regions and of their history.
        labels, encoders, assets: The lab's records that replace those of the crate, filled in by
            the functions that match them. An encoder that is missing is unknown here.
        is_checked: Rows that are read again need no check; hashes prove that the files are still
            the same.
    """

    crate: CrateReader
    lab: Lab
    user: User
    case: Case
    originals: dict[uuid.UUID, Asset]
    canvases: dict[uuid.UUID, Canvas]
    items: dict[uuid.UUID, Item]
    mosaics: dict[uuid.UUID, Mosaic]
    components: dict[uuid.UUID, MosaicComponent]
    frames: dict[uuid.UUID, int]
    vocabulary: dict[uuid.UUID, Label]
    described: dict[uuid.UUID, Encoder]
    rois: dict[uuid.UUID, RoiPlace] = field(default_factory=dict)
    indexes: dict[uuid.UUID, set[int]] = field(default_factory=dict)
    is_checked: bool = False
    used: set[uuid.UUID] = field(default_factory=set)
    labels: dict[uuid.UUID, uuid.UUID] = field(default_factory=dict)
    encoders: dict[uuid.UUID, Encoder] = field(default_factory=dict)
    assets: dict[uuid.UUID, uuid.UUID] = field(default_factory=dict)
    _members: dict[uuid.UUID, bool] = field(default_factory=dict)

    def stream(self, table: str) -> Iterator[Any]:
        """The rows of a large table as they will be here, checked against what they refer to."""
        for where, row in _rows(self.crate, table):
            self.adopt(row)
            if not self.is_checked:
                self._check(row, where)
            if isinstance(row, Roi | RoiRevision):
                row.label_id = self._label(row.label_id, where)
            yield row

    def _check(self, row: models.Model, where: str) -> None:
        if isinstance(row, Roi):
            canvas = _referenced(self.canvases, row.canvas_id, where)
            roi_check(row, canvas, row.frame_index, self.frames.get(canvas.pk, 0), where)
        elif isinstance(row, RoiRevision):
            place = _referenced(self.rois, row.roi_id, where)
            canvas = self.canvases[place.canvas_id]
            roi_check(row, canvas, place.frame_index, self.frames.get(canvas.pk, 0), where)
            if row.version > place.version:
                raise CrateError(f"{where}: version: its region has fewer versions.")
        elif isinstance(row, MosaicFrame):
            mosaic = _referenced(self.mosaics, row.mosaic_id, where)
            if row.pk != frame_id(row.mosaic_id, row.index):
                raise CrateError(f"{where}: its id does not match the id of its mosaic.")
            frames = self.frames[canvas_id_of(mosaic.video_id)]
            frame_check(row, self.indexes[row.mosaic_id], frames, where)
        elif isinstance(row, Embedding):
            vector_check(row, _referenced(self.described, row.encoder_id, where), where)
            if row.canvas_id != _referenced(self.rois, row.roi_id, where).canvas_id:
                raise CrateError(f"{where}: its canvas is not the canvas of its region.")

    def adopt(self, row: models.Model) -> None:
        """Make the row the lab's; its author stays where they are a member here, else nobody."""
        if hasattr(row, "lab_id"):
            row.lab_id = self.lab.pk
        for name in ("created_by_id", "author_id"):
            person = getattr(row, name, None)
            if person is not None and not self._is_member(person):
                setattr(row, name, None)

    def _is_member(self, person: uuid.UUID) -> bool:
        if person not in self._members:
            members = Membership.objects.filter(lab=self.lab, user_id=person)
            self._members[person] = members.exists()
        return self._members[person]

    def _label(self, label_id: uuid.UUID | None, where: str) -> uuid.UUID | None:
        if label_id is None:
            return None
        _referenced(self.vocabulary, label_id, where)
        self.used.add(label_id)
        return self.labels.get(label_id)


def rows_read(crate: CrateReader, *, lab: Lab, user: User) -> CaseRows:
    """Read and check all rows of a crate; nothing is written.

    Raises:
        CrateError: names the file and line.
    """
    _require_names(crate)
    cases = _rows_by_id(crate, "case", Case)
    case = next(iter(cases.values()), None)
    if case is None or len(cases) > 1 or crate.identifier != f"urn:uuid:{case.pk}":
        raise CrateError("records/case.jsonl: expected the one case that the crate holds.")
    slides, videos = _rows_by_id(crate, "slides", Slide), _rows_by_id(crate, "videos", Video)
    mosaics = _rows_by_id(crate, "mosaics", Mosaic)
    for pk in slides.keys() & videos.keys() | (slides.keys() | videos.keys()) & mosaics.keys():
        raise CrateError(f"{pk} is the id of two items (slides, videos or mosaics).")
    rows = CaseRows(
        crate=crate,
        lab=lab,
        user=user,
        case=case,
        originals=_rows_by_id(crate, "assets", Asset),
        canvases=_rows_by_id(crate, "canvases", Canvas),
        items={**slides, **videos},
        mosaics=mosaics,
        frames={canvas_id_of(video.pk): video.frame_count for video in videos.values()},
        components=_rows_by_id(crate, "mosaic_components", MosaicComponent),
        vocabulary=_rows_by_id(crate, "labels", Label),
        described=_rows_by_id(crate, "encoders", Encoder),
    )
    _case(rows)
    _assets(rows)
    _items(rows)
    _mosaics(rows)
    _canvases(rows)
    for roi in rows.stream("rois"):
        if roi.pk in rows.rois or len(rows.rois) >= MAX_ROI_ROWS:
            raise CrateError(f"records/rois.jsonl: {roi.pk} twice, or over {MAX_ROI_ROWS:,} rows.")
        rows.rois[roi.pk] = RoiPlace(roi.canvas_id, roi.frame_index, roi.version)
    for table in ("roi_revisions", "mosaic_frames", "embeddings"):
        for _ in rows.stream(table):
            pass
    rows.is_checked = True
    return rows


def _require_names(crate: CrateReader) -> None:
    expected = {f"records/{name}.jsonl" for name in TABLES}
    found = {name for name in crate.files if name.startswith("records/")}
    for name in sorted(expected ^ found):
        problem = "lacks" if name in expected else "holds an unknown file"
        raise CrateError(f"The crate {problem} {shown(name)}.")


def _rows(crate: CrateReader, table: str) -> Iterator[tuple[str, Any]]:
    name = f"records/{table}.jsonl"
    for number, values in enumerate(crate.rows(name), 1):
        where = f"{name}, line {number}"
        yield where, row_read(TABLES[table], values, where)


def _rows_by_id(crate: CrateReader, table: str, model: type[_Row]) -> dict[uuid.UUID, _Row]:
    by_key: dict[uuid.UUID, _Row] = {}
    for where, row in _rows(crate, table):
        if row.pk in by_key or len(by_key) >= MAX_TABLE_ROWS:
            raise CrateError(f"{where}: {row.pk} twice, or over {MAX_TABLE_ROWS:,} rows.")
        by_key[row.pk] = row
    return by_key


def _referenced(rows: Mapping[uuid.UUID, _Value], pk: uuid.UUID | None, where: str) -> _Value:
    """Record that a row refers to, which has to be in the crate."""
    if pk is None or pk not in rows:
        raise CrateError(f"{where}: it refers to {pk}, which is not in the crate.")
    return rows[pk]


def _case(rows: CaseRows) -> None:
    case = rows.case
    rows.adopt(case)
    try:
        is_clean = tags_clean(case.tags) == case.tags
    except InvalidInputError as error:
        raise CrateError(f"records/case.jsonl: {error.message}") from error
    if not is_clean:
        raise CrateError("records/case.jsonl: tags: expected a list of different words.")
    case.notes = text_clean(case.notes)
    case.search_text = search_text(case)


def _assets(rows: CaseRows) -> None:
    asset_ids = {item.asset_id for item in rows.items.values()}
    for asset in rows.originals.values():
        rows.adopt(asset)
        name = f"originals/{asset.sha256}"
        if not is_sha256(asset.sha256):
            raise CrateError(f"records/assets.jsonl: {asset.pk} has no SHA-256.")
        if asset.pk not in asset_ids:
            raise CrateError(f"records/assets.jsonl: {asset.pk} belongs to no slide and no video.")
        file = rows.crate.files.get(name)
        if file is None or (file.sha256, file.size_bytes) != (asset.sha256, asset.size_bytes):
            raise CrateError(f"{name} is missing, or is not the file that its record describes.")
        asset.removed = None  # checked again by this portal's gate
    names = {f"originals/{asset.sha256}" for asset in rows.originals.values()}
    found = {name for name in rows.crate.files if name.startswith("originals/")}
    if len(names) < len(rows.originals) or found - names:
        raise CrateError("originals/: expected one file for each record of an asset.")


def _items(rows: CaseRows) -> None:
    """Read items as after an upload: their ingest determines what the files hold."""
    for item in rows.items.values():
        rows.adopt(item)
        where = f"{item._meta.model_name} {item.pk}"
        item.name = filename_clean(item.name)
        _require_case(rows, item, where)
        _referenced(rows.originals, item.asset_id, where)
        if item.canvas_id not in (None, canvas_id_of(item.pk)):
            raise CrateError(f"{where}: its canvas belongs to something else.")
        item.canvas_id, item.state, item.warnings = None, ItemState.PREPARING, []
        item.error_code = item.error_message = ""
        if isinstance(item, Slide):
            item.properties, item.stain = {}, name_clean(item.stain)
        else:
            item.frames_path = item.media_path = ""


def _mosaics(rows: CaseRows) -> None:
    for mosaic in rows.mosaics.values():
        rows.adopt(mosaic)
        where = f"mosaic {mosaic.pk}"
        mosaic_check(mosaic, where)
        rows.indexes[mosaic.pk] = set()
        _require_case(rows, mosaic, where)
        if not isinstance(_referenced(rows.items, mosaic.video_id, where), Video):
            raise CrateError(f"{where}: it belongs to no video.")
        shows = {
            shown_component.canvas_id
            for shown_component in rows.components.values()
            if shown_component.mosaic_id == mosaic.pk
        }
        if mosaic.canvas_id is not None and mosaic.canvas_id not in shows:
            raise CrateError(f"{where}: its canvas belongs to something else.")
        if mosaic.state != ItemState.READY or mosaic.canvas_id is None:
            mosaic.state = ItemState.FAILED
            mosaic.error_code = mosaic.error_code or "not-built"
            mosaic.error_message = mosaic.error_message or NOT_BUILT
    for component in rows.components.values():
        where = f"component {component.pk}"
        _referenced(rows.mosaics, component.mosaic_id, where)
        rows.indexes[component.mosaic_id].add(component.index)
        _referenced(rows.canvases, component.canvas_id, where)
        if (component.canvas_id, component.pk) != component_ids(
            component.mosaic_id, component.index
        ):
            raise CrateError(f"{where}: its ids do not match the id of its mosaic.")
        component_check(component, rows.crate.files, where)


def _check_ranges(canvas: Canvas, where: str) -> None:
    for display_range in (canvas.display_range, canvas.file_display_range):
        if display_range is None:
            continue
        try:
            check_display_range(config_from_dict(DisplayRange, display_range, where=where))
        except (BadInputError, InvalidInputError, TypeError, ValueError) as error:
            raise CrateError(f"{where}: expected a display range of low and high.") from error


def _canvases(rows: CaseRows) -> None:
    """Check canvases, and reset paths and levels that the ingest of the images computes."""
    items = {canvas_id_of(item.pk): item for item in rows.items.values()}
    components = {row.canvas_id: row for row in rows.components.values()}
    for canvas in rows.canvases.values():
        rows.adopt(canvas)
        canvas.name = filename_clean(canvas.name)
        where = f"canvas {canvas.pk}"
        _require_case(rows, canvas, where)
        if canvas.is_scaled_by_hand and not (
            MIN_MPP <= (canvas.mpp_x or 0) <= MAX_MPP and MIN_MPP <= (canvas.mpp_y or 0) <= MAX_MPP
        ):
            raise CrateError(f"{where}: expected {MIN_MPP:g} to {MAX_MPP:g} um per pixel.")
        _check_ranges(canvas, where)
        item, component = items.get(canvas.pk), components.get(canvas.pk)
        if component is not None and canvas.kind == CanvasKind.MOSAIC:
            mosaic_file(component, canvas.pixels_path, rows.crate, ".tif")
            mosaic_file(component, canvas.thumbnail_path, rows.crate, ".jpg")
        elif item is not None and (canvas.kind == CanvasKind.VIDEO) == isinstance(item, Video):
            canvas.levels, canvas.content_hash = [], ""
            canvas.pixels_path, canvas.thumbnail_path = f"derived/{item.pk}/preparing", ""
        else:
            raise CrateError(f"{where}: no image, video or mosaic of the crate uses it.")


def _require_case(rows: CaseRows, row: Item | Mosaic | Canvas, where: str) -> None:
    if row.case_id != rows.case.pk:
        raise CrateError(f"{where}: it belongs to another case than the crate.")
