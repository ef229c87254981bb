"""A whole case from a crate, with the ids it had: all of it in one transaction, or nothing.

Killed at any point, the next run goes on: files that were taken out of the crate lie where they
were, and rows come at the very end. Run again after that, it compares and changes nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path

from django.db import IntegrityError, models, transaction

from ml.types import Progress, no_progress
from portal.archive.models import Asset, Case
from portal.archive.services.assets import assets_placing
from portal.archive.services.items import item_submit
from portal.archive.services.quotas import require_quota
from portal.archive.services.uploads import upload_keep
from portal.archive.storage import files as storage
from portal.core.database.rows import rows_insert
from portal.core.errors import ConflictError
from portal.core.events import event_emit
from portal.embeddings.indexes import Scope
from portal.embeddings.models import Embedding, Encoder
from portal.embeddings.services.indexes import index_build_if_due
from portal.embeddings.services.submissions import canvases_restored
from portal.interop.rocrate.formats.reader import RECORDS, CrateReader
from portal.interop.rocrate.rules import require_import
from portal.interop.rocrate.selectors.exports import import_folder
from portal.interop.rocrate.services.imports.conflicts import require_free, require_same
from portal.interop.rocrate.services.imports.files import (
    PlacedFile,
    crate_look,
    mosaics_stage,
    originals_stage,
    staging_held,
    staging_keep,
)
from portal.interop.rocrate.services.imports.rows import CaseRows, rows_read
from portal.interop.rocrate.services.imports.tables import BY_ID, STREAMED, batches, held
from portal.interop.rocrate.services.imports.vocabulary import encoders_match, labels_match
from portal.labs.models import Lab, User


@dataclass(frozen=True, slots=True)
class CaseImported:
    """Result of ``case_import``.

    Attributes:
        is_new: False if all of it was here already.
        counts: Rows written, by table.
        originals: Number of files placed; the lab had the others.
        left_out: Embeddings of encoders that this portal does not have.
    """

    case: Case
    is_new: bool
    counts: Mapping[str, int] = field(default_factory=dict)
    originals: int = 0
    left_out: int = 0

    @property
    def rows(self) -> int:
        """Written in all."""
        return sum(self.counts.values())


Effect = Callable[[Case], AbstractContextManager[None]]


def _without_effect(_: Case) -> AbstractContextManager[None]:
    return nullcontext()


def case_import(
    *,
    source: Path,
    lab: Lab,
    user: User,
    progress: Progress = no_progress,
    effect: Effect = _without_effect,
    frees_bytes: int = 0,
    name: str = "",
) -> CaseImported:
    """Bring in a case from a crate: a zip or a folder.

    Emits ``case.imported`` unless all was here; images are prepared by the jobs of an upload.

    Args:
        progress: what it raises ends the import.
        effect: around all that lasts, within its transaction.
        frees_bytes: of the lab's quota, within ``effect``.
        name: of the crate in messages; that of the file unless given.
    Raises:
        ForbiddenError: no manager of the lab.
        CrateError: the crate is damaged, of another version, or made to do harm.
        ConflictError: an id or the accession number is taken by something else.
        StorageFullError, TooLargeInputError: no room, on the disk or within the lab's quota.
        OSError: the crate cannot be read, or the same case is being imported by another process.
    """
    require_import(user, lab.pk)
    name = name or source.name
    crate_look(source, name, progress=progress)
    step = _Step(progress)
    with CrateReader(source, name=name, on_bytes=step.on_bytes) as crate:
        records = sum(
            file.size_bytes for name, file in crate.files.items() if name.startswith(RECORDS)
        )
        step.begin("Reading the records", records)
        rows = rows_read(crate, lab=lab, user=user)
        encoders_match(rows)
        with staging_held(import_folder(lab.pk, rows.case.pk)) as folder:
            if Case.all_objects.filter(pk=rows.case.pk).exists():
                labels_match(rows)
                require_same(rows)
                with transaction.atomic(), effect(rows.case):
                    result = CaseImported(rows.case, is_new=False)
            else:
                require_free(rows)
                staging_keep(rows)
                step.begin("Unpacking the files", crate.size_bytes - records)
                originals = originals_stage(rows, frees_bytes=frees_bytes)
                mosaics = mosaics_stage(rows)
                step.begin("Writing the records", records)
                result = _write(rows, originals, mosaics, effect)
            storage.folder_drop(folder)
    return result


class _Step:
    """Phase of an import and its progress in bytes of the crate."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.begin("", 0)

    def begin(self, phase: str, total: int) -> None:
        self._phase, self._total, self._done = phase, total, 0

    def on_bytes(self, count: int) -> None:
        self._done = min(self._done + count, self._total)
        self._progress(self._done, self._total, self._phase)


def _write(
    rows: CaseRows, originals: list[PlacedFile], mosaics: dict[str, Path], effect: Effect
) -> CaseImported:
    published: list[Path] = []
    received = {original.sha256: original.path for original in originals}
    try:
        with assets_placing(rows.lab.pk, received), effect(rows.case):
            new = [original for original in originals if original.existing_asset is None]
            require_quota(rows.lab.pk, sum(placed_file.asset.size_bytes for placed_file in new))
            labels = labels_match(rows)
            _insert([rows.case])
            _keep_originals(rows, originals)
            counts = {"case": 1, "labels": _insert(labels)}
            for table in BY_ID[1:]:
                counts[table] = _insert(held(rows, table))
            for table in STREAMED:
                counts[table] = _insert(rows.stream(table))
            counts["embeddings"], left_out = _insert_vectors(rows)
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
                    "rows": sum(counts.values()),
                    "originals": len(new),
                },
            )
    except BaseException as error:
        for derived in published:
            storage.folder_drop(derived)
        if not isinstance(error, IntegrityError):
            raise
        raise ConflictError(
            "Something in the crate is already here under another id, or is in the crate twice: "
            f"{str(error).splitlines()[0][:200]}.",
            code="import-conflict",
        ) from error
    return CaseImported(rows.case, True, counts, len(new), left_out)


def _keep_originals(rows: CaseRows, originals: list[PlacedFile]) -> None:
    """Store the originals as uploads of the user; an asset keeps its id unless that is taken."""
    names = {item.asset_id: item.name for item in rows.items.values()}
    asset_ids = [rows.assets.get(original.asset.pk, original.asset.pk) for original in originals]
    existing_ids = set(Asset.objects.filter(pk__in=asset_ids).values_list("pk", flat=True))
    for pk, placed_file in zip(asset_ids, originals, strict=True):
        if pk not in existing_ids:
            asset = copy(placed_file.asset)
            asset.pk = pk
            _insert([asset])
        upload_keep(
            case=rows.case,
            received=placed_file.path,
            stored_asset=placed_file.existing_asset,
            sha256=placed_file.asset.sha256,
            size_bytes=placed_file.asset.size_bytes,
            kind=placed_file.kind,
            filename=names[placed_file.asset.pk],
            user=rows.user,
        )


def _insert(rows: Iterable[models.Model]) -> int:
    """Insert rows as they are, with their times; returns how many."""
    count = 0
    for batch in batches(rows):
        rows_insert(batch, keeps_times=True)
        count += len(batch)
    return count


def _insert_vectors(rows: CaseRows) -> tuple[int, int]:
    """Vectors of encoders that are here, under new numbers; counts of those and of the rest."""
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

    for encoder in sorted(rows.encoders.values(), key=lambda encoder_row: encoder_row.pk):
        Encoder.objects.select_for_update().get(pk=encoder.pk)  # so that numbers show in order
    written = _insert(known())
    for encoder in rows.encoders.values():
        index_build_if_due(scope=Scope(encoder, rows.lab.pk))
    return written, left_out


def _queue(rows: CaseRows) -> None:
    """Images are prepared, and then their regions embedded; a mosaic's are embedded at once."""
    for item in rows.items.values():
        item_submit(item, user=rows.user)
    built = {component.canvas_id for component in rows.components.values()}
    canvases_restored(lab_id=rows.lab.pk, canvas_ids=built)
