"""A whole case from a crate, with the ids it had: all of it in one transaction, or nothing.

Killed at any point, the next run goes on: files that were taken out of the crate lie where they
were, and rows come at the very end. Run again after that, it compares and changes nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import IntegrityError, connection, models
from django.db.models.sql import InsertQuery

from portal.annotations.marks import rings_of
from portal.annotations.models import Roi, RoiRevision
from portal.archive import storage
from portal.archive.models import Asset, Case, Slide, Video
from portal.archive.services import (
    assets_placing,
    item_submit,
    require_quota,
    upload_keep,
)
from portal.core.errors import ConflictError
from portal.core.events import event_emit
from portal.exchange.formats.crate_reading import CrateReader, WentOn
from portal.exchange.formats.crate_rows import columns_of
from portal.exchange.rules import require_import
from portal.exchange.services.import_files import (
    PlacedFile,
    mosaics_stage,
    originals_stage,
    staging_folder,
)
from portal.exchange.services.import_rows import TABLES, CaseRows, rows_read
from portal.exchange.services.import_vocabulary import encoders_match, labels_match
from portal.labs.models import Lab, User
from portal.mosaics.models import Mosaic
from portal.retrieval.indexes import Scope
from portal.retrieval.models import Embedding, Encoder
from portal.retrieval.services import canvases_restored, index_build_if_due

_BATCH = 500  # rows asked for or written at once: SQLite takes a thousand parameters
_BATCH_VERTICES = 200_000  # fewer rows where outlines are long: 500 of the longest fill the memory
_SAME = {"canvases": ("case_id", "kind", "name"), "slides": ("case_id", "name")}
"""Of these only so much is compared: the rest is made of the file here, and may have changed."""
_SAME |= {"videos": _SAME["slides"], "mosaics": ("case_id", "name", "video_id", "config_hash")}
_BY_ID = ("case", "canvases", "slides", "videos", "mosaics", "mosaic_components")
_DERIVED: tuple[type[models.Model], ...] = (Slide, Video, Mosaic)
"""What is made of each lies in a folder of its id, so no two of them may have the same."""
_STREAMED = ("mosaic_frames", "rois", "roi_revisions")


@dataclass(frozen=True, slots=True)
class CaseImported:
    """What was done.

    Attributes:
        is_new: False where all of it was here already.
        rows: written. originals: of the files placed; others the lab had.
        left_out: embeddings of encoders that this portal does not have.
    """

    case: Case
    is_new: bool
    rows: int = 0
    originals: int = 0
    left_out: int = 0


def case_import(
    *, source: Path, lab: Lab, user: User, went_on: WentOn = lambda _: None
) -> CaseImported:
    """Bring in a case from a crate: a zip or a folder.

    Emits ``case.imported``; its images are prepared by the jobs of an upload.

    Args:
        went_on: told of the bytes read; what it raises ends the import.
    Raises:
        ForbiddenError: no manager of the lab.
        CrateError: the crate is damaged, of another version, or made to do harm.
        ConflictError: an id or the accession number is taken by something else.
        StorageFullError, TooLargeInputError: no room, on the disk or within the lab's quota.
        OSError: the crate cannot be read.
    """
    require_import(user, lab.pk)
    with CrateReader(source) as crate:
        crate.verify(went_on)
        rows = rows_read(crate, lab=lab, user=user)
        encoders_match(rows)
        if Case.everything.filter(pk=rows.case.pk).exists():
            labels_match(rows)
            _require_same(rows)
            storage.folder_drop(staging_folder(rows))
            return CaseImported(rows.case, is_new=False)
        _require_free(rows)
        originals = originals_stage(rows, went_on)
        mosaics = mosaics_stage(rows, went_on)
        done = _write(rows, originals, mosaics)
    storage.folder_drop(staging_folder(rows))
    return done


def _write(rows: CaseRows, originals: list[PlacedFile], mosaics: dict[str, Path]) -> CaseImported:
    published: list[Path] = []
    received = {one.sha256: one.path for one in originals}
    try:
        with assets_placing(rows.lab.pk, received):
            new = [one for one in originals if one.ours is None]
            require_quota(rows.lab.pk, sum(one.asset.size_bytes for one in new))
            labels = labels_match(rows)
            _insert([rows.case])
            _keep_originals(rows, originals)
            count = 1 + _insert(labels)
            for table in _BY_ID[1:]:
                count += _insert(_held(rows, table))
            for table in _STREAMED:
                count += _insert(rows.stream(table))
            vectors, left_out = _insert_vectors(rows)
            for pk, folder in mosaics.items():
                derived = storage.derived_folder(uuid.UUID(pk))
                published.append(derived)
                storage.folder_publish(folder, derived)
            _queue(rows)
            event_emit(
                "case.imported",
                lab_id=rows.lab.pk,
                payload={
                    "case_id": str(rows.case.pk),
                    "user_id": str(rows.user.pk),
                    "rows": count + vectors,
                    "originals": len(new),
                },
            )
    except BaseException as error:
        for derived in published:
            storage.folder_drop(derived)
        if not isinstance(error, IntegrityError):
            raise
        raise ConflictError(
            "Something of the crate is here already under another id, or twice in the crate:"
            f" {str(error).splitlines()[0][:200]}.",
            code="import-conflict",
        ) from error
    return CaseImported(rows.case, True, count + vectors, len(new), left_out)


def _keep_originals(rows: CaseRows, originals: list[PlacedFile]) -> None:
    """As files that were uploaded by the person; an asset has its id unless the lab had one."""
    names = {item.asset_id: item.name for item in rows.items.values()}
    for one in originals:
        if one.asset.pk not in rows.assets:
            _insert([one.asset])
        upload_keep(
            case=rows.case,
            received=one.path,
            known=one.ours,
            sha256=one.asset.sha256,
            size_bytes=one.asset.size_bytes,
            kind=one.kind,
            filename=names[one.asset.pk],
            user=rows.user,
        )


def _held(rows: CaseRows, table: str) -> list[Any]:
    """The rows of a small table, with what the lab has in place of what the crate has."""
    if table in ("slides", "videos"):
        items = [one for one in rows.items.values() if isinstance(one, TABLES[table])]
        for item in items:
            item.asset_id = rows.assets.get(item.asset_id, item.asset_id)
        return items
    held: dict[str, Iterable[Any]] = {
        "case": [rows.case],
        "canvases": rows.canvases.values(),
        "mosaics": rows.mosaics.values(),
        "mosaic_components": rows.components.values(),
    }
    return list(held[table])


def _insert(rows: Iterable[models.Model]) -> int:
    """As they are, with their times: ``bulk_create`` would write the present one. How many."""
    count = 0
    for batch in _batches(rows):
        model, count = type(batch[0]), count + len(batch)
        is_numbered = batch[0].pk is None  # by the database
        fields = [
            one for one in model._meta.concrete_fields if not (is_numbered and one.primary_key)
        ]
        step = max(connection.ops.bulk_batch_size(fields, batch), 1)
        for start in range(0, len(batch), step):
            query = InsertQuery(model)
            query.insert_values(fields, batch[start : start + step], raw=True)
            query.get_compiler(connection=connection).execute_sql()
    return count


def _insert_vectors(rows: CaseRows) -> tuple[int, int]:
    """Vectors of encoders that are here, under new numbers; how many, and how many were left."""
    left_out = 0

    def known() -> Iterator[Embedding]:
        nonlocal left_out
        for row in rows.stream("embeddings"):
            encoder = rows.encoders.get(row.encoder_id)
            if encoder is None:
                left_out += 1
                continue
            row.pk, row.encoder_id = None, encoder.pk
            yield row

    for encoder in sorted(rows.encoders.values(), key=lambda one: one.pk):
        Encoder.objects.select_for_update().get(pk=encoder.pk)  # so that numbers show in order
    written = _insert(known())
    for encoder in rows.encoders.values():
        index_build_if_due(scope=Scope(encoder, rows.lab.pk))
    return written, left_out


def _queue(rows: CaseRows) -> None:
    """Images are prepared, and then their regions embedded; a mosaic's are embedded at once."""
    for item in rows.items.values():
        item_submit(item, user=rows.user)
    built = {one.canvas_id for one in rows.components.values()}
    canvases_restored(lab_id=rows.lab.pk, canvas_ids=built)


def _require_free(rows: CaseRows) -> None:
    """The case is not here, so nothing of it may be."""
    taken = Case.objects.filter(lab=rows.lab, accession=rows.case.accession)
    if taken.exists():
        raise ConflictError(
            f"The lab has another case {rows.case.accession} already.", code="accession-taken"
        )
    for table in (*_BY_ID, *_STREAMED):
        for batch in _batches(_of(rows, table)):
            ids = [row.pk for row in batch]
            for model in _DERIVED if TABLES[table] in _DERIVED else (TABLES[table],):
                found = model._base_manager.filter(pk__in=ids)
                first = found.values_list("pk", flat=True).first()
                if first is not None:
                    raise _taken(table, first)
    mine = Asset.objects.filter(pk__in=rows.originals)
    for asset in mine:
        if (asset.lab_id, asset.sha256) != (rows.lab.pk, rows.originals[asset.pk].sha256):
            raise _taken("assets", asset.pk)


def _require_same(rows: CaseRows) -> None:
    """The case is here, so all of it has to be, as the crate has it."""
    for table in (*_BY_ID, *_STREAMED):
        columns = _SAME.get(table) or tuple(_kept_columns(TABLES[table]))
        for batch in _batches(_of(rows, table)):
            found = TABLES[table]._base_manager.in_bulk([row.pk for row in batch])
            for row in batch:
                mine = found.get(row.pk)
                if mine is None or getattr(mine, "lab_id", rows.lab.pk) != rows.lab.pk:
                    raise _taken(table, row.pk)
                if getattr(mine, "bin_entry_id", None) is not None:
                    raise ConflictError(f"{table}: {row.pk} lies in the bin.", code="in-bin")
                for name in columns:
                    if getattr(mine, name) != getattr(row, name):
                        raise _taken(table, row.pk, name)


def _kept_columns(model: type[models.Model]) -> Iterator[str]:
    people = {"created_by_id", "author_id"}  # who may have left since
    return (name for name in columns_of(model) if name not in {"updated_at", *people})


def _of(rows: CaseRows, table: str) -> Iterable[Any]:
    return rows.stream(table) if table in _STREAMED else _held(rows, table)


def _batches(rows: Iterable[Any]) -> Iterator[list[Any]]:
    batch: list[Any] = []
    vertices = 0
    for row in rows:
        batch.append(row)
        vertices += _vertices(row)
        if len(batch) == _BATCH or vertices >= _BATCH_VERTICES:
            yield batch
            batch, vertices = [], 0
    if batch:
        yield batch


def _vertices(row: models.Model) -> int:
    """Of the outlines of a region, on its own frame and on others."""
    if not isinstance(row, Roi | RoiRevision):
        return 0
    outlines = [row.geometry, *(one["geometry"] for one in row.track)]
    return sum(len(ring) for one in outlines if one for ring in rings_of(one))


def _taken(table: str, pk: object, column: str = "") -> ConflictError:
    what = f" ({column})" if column else ""
    return ConflictError(
        f"{table}: {pk} is here already with other content{what}, or gone from its case."
        if column
        else f"{table}: {pk} is here already elsewhere, or gone from its case.",
        code="import-conflict",
        details={"table": table, "id": str(pk)},
    )
