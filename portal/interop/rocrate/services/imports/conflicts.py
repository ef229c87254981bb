"""Records of a crate that exist here already: none of a new case, all of one imported before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import models

from portal.annotations.models import RoiRevision
from portal.archive.models import Case, Slide, Video
from portal.core.errors import ConflictError
from portal.interop.rocrate.formats.rows import columns_of
from portal.interop.rocrate.services.imports.rows import TABLES, CaseRows
from portal.interop.rocrate.services.imports.tables import BY_ID, STREAMED, batches, table_rows
from portal.mosaics.models import Mosaic

_SAME = {"canvases": ("case_id", "kind", "name"), "slides": ("case_id", "name")}
"""Only these columns are compared: the rest is made from the file here, and may have changed."""
_SAME |= {"videos": _SAME["slides"], "mosaics": ("case_id", "name", "video_id", "config_hash")}
_DERIVED: tuple[type[models.Model], ...] = (Slide, Video, Mosaic)
"""Files made from each lie in a folder named by its id, so no two may share an id."""


def require_free(rows: CaseRows) -> None:
    """The case is not here, so nothing of it may be."""
    same_accession = Case.objects.filter(lab=rows.lab, accession=rows.case.accession)
    if same_accession.exists():
        raise ConflictError(
            f"The lab already has another case {rows.case.accession}.", code="accession-taken"
        )
    for table in (*BY_ID, *STREAMED):
        for batch in batches(table_rows(rows, table)):
            ids = [row.pk for row in batch]
            for model in _DERIVED if TABLES[table] in _DERIVED else (TABLES[table],):
                first = model._base_manager.filter(pk__in=ids).first()
                if first is not None:
                    raise (
                        _conflict(table, first.pk)
                        if _is_ours(rows, first)
                        else _anonymous_conflict()
                    )


def require_same(rows: CaseRows) -> None:
    """Require that a case that exists already equals that of the crate."""
    for table in (*BY_ID, *STREAMED):
        columns = _SAME.get(table) or tuple(_stored_columns(TABLES[table]))
        for batch in batches(table_rows(rows, table)):
            stored = TABLES[table]._base_manager.in_bulk([row.pk for row in batch])
            for row in batch:
                stored_row = stored.get(row.pk)
                if stored_row is None:
                    raise _conflict(table, row.pk)
                if not _is_ours(rows, stored_row):
                    raise _anonymous_conflict()
                if getattr(stored_row, "trash_entry_id", None) is not None:
                    raise ConflictError(f"{table}: {row.pk} is in the trash.", code="in-trash")
                for name in columns:
                    if getattr(stored_row, name) != getattr(row, name):
                        raise _conflict(table, row.pk, name)


def _stored_columns(model: type[models.Model]) -> Iterator[str]:
    people = {"created_by_id", "author_id"}  # these people may have left the lab
    return (name for name in columns_of(model) if name not in {"updated_at", *people})


def _is_ours(rows: CaseRows, stored: Any) -> bool:
    lab_id = getattr(stored, "lab_id", None)
    if lab_id is None:
        lab_id = (stored.roi if isinstance(stored, RoiRevision) else stored.mosaic).lab_id
    return bool(lab_id == rows.lab.pk)


def _conflict(table: str, pk: object, column: str = "") -> ConflictError:
    problem = (
        f"already here with other content ({column})" if column else "already in another place"
    )
    return ConflictError(
        f"{table}: {pk} is {problem}, or has been removed from its case.",
        code="import-conflict",
        details={"table": table, "id": str(pk)},
    )


def _anonymous_conflict() -> ConflictError:
    """Conflict that names neither record nor lab, for an id of another lab."""
    return ConflictError(
        "This crate cannot be imported here under the ids of its records.",
        code="import-conflict",
    )
