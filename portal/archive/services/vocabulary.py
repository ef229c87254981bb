"""Import, export and delete the terms of a lab's vocabulary."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from portal.archive.models import Case, VocabularyField, VocabularyTerm
from portal.archive.models.vocabulary import MAX_CODE_LENGTH
from portal.archive.rules import require_manage_vocabulary
from portal.core.database.rows import rows_insert, rows_update
from portal.core.errors import InvalidInputError, TooLargeInputError
from portal.core.events import event_emit
from portal.core.text import name_clean, name_key
from portal.labs.models import Lab, User

MAX_FILE_BYTES = 2**19  # a hundred bytes for each of MAX_TERMS
MAX_TERMS = 5_000  # of a lab: the form of a case offers all of them
COLUMNS = ("field", "term", "code")
EXAMPLE = (
    "field,term,code\n"
    "organ,Caecum,C18.0\n"
    "organ,Sigmoid colon,C18.7\n"
    "organ,Rectum,C20.9\n"
    "diagnosis,Tubular adenoma,8211/0\n"
    "diagnosis,Hyperplastic polyp,\n"
)
"""A file to start from. Tessera has no terms of its own: classifications are licensed."""
_MAX_LENGTHS = {
    name: int(getattr(Case._meta.get_field(name), "max_length", 0))
    for name in VocabularyField.values
}
_FORMULA = ("=", "+", "-", "@")  # a spreadsheet that opens the export would compute them


@dataclass(frozen=True, slots=True)
class VocabularyRow:
    """A row of a file; ``code`` is None if the file has no such column."""

    number: int
    field: str
    term: str
    code: str | None

    @property
    def key(self) -> tuple[str, str]:
        """Field and name of the term, equal in any spelling."""
        return self.field, name_key(self.term)


@dataclass(frozen=True, slots=True)
class VocabularyImport:
    """Numbers of terms that an import adds, changes and leaves as they are."""

    added: int
    changed: int
    unchanged: int


def vocabulary_import(
    *, lab: Lab, user: User, data: bytes, is_preview: bool = False
) -> VocabularyImport:
    """Add the terms of a CSV file, and change the codes of those that are there.

    All or nothing. Terms that the file lacks stay. Emits ``vocabulary.imported`` where something
    differs.

    Args:
        data: Columns ``field``, ``term`` and optionally ``code``; UTF-8, comma or semicolon.
        is_preview: Count only.
    Raises:
        ForbiddenError: Not a manager.
        TooLargeInputError: More than ``MAX_FILE_BYTES``.
        InvalidInputError: A value is not valid; the message names its row and column.
    """
    require_manage_vocabulary(user, lab.pk)
    rows = vocabulary_read(data)
    with transaction.atomic():
        Lab.objects.select_for_update().get(pk=lab.pk)  # one import at a time
        terms = {
            (term.field, term.term_key): term
            for term in VocabularyTerm.objects.filter(lab_id=lab.pk)
        }
        added = [
            VocabularyTerm(lab=lab, field=row.field, term=row.term, code=row.code or "")
            for key, row in rows.items()
            if key not in terms
        ]
        if (total := len(terms) + len(added)) > MAX_TERMS:
            raise InvalidInputError(
                f"The vocabulary of a lab has at most {MAX_TERMS:,} terms; with this file it would "
                f"have {total:,}. Delete terms that you do not need first.",
                code="too-many-terms",
            )
        changed = _change_codes(terms, rows)
        result = VocabularyImport(len(added), len(changed), len(rows) - len(added) - len(changed))
        if is_preview or not (added or changed):
            return result
        rows_insert(added)
        rows_update(changed, ("term", "code"))
        payload = {"lab_id": str(lab.pk), "user_id": str(user.pk)}
        event_emit(
            "vocabulary.imported",
            lab_id=lab.pk,
            payload=payload | {"added": len(added), "changed": len(changed)},
        )
    return result


def vocabulary_delete(
    *, lab: Lab, user: User, ids: Collection[UUID] | None = None, field: str = ""
) -> int:
    """Delete terms of a lab, by id or all of a field; how many. Cases keep their words.

    Emits ``vocabulary.deleted`` where something was deleted.

    Raises:
        ForbiddenError: Not a manager.
        InvalidInputError: Both or neither of ``ids`` and ``field``.
    """
    require_manage_vocabulary(user, lab.pk)
    if (ids is None) == (not field):
        raise InvalidInputError("terms, field: give one of them.")
    terms = VocabularyTerm.objects.filter(lab_id=lab.pk)
    terms = terms.filter(field=field) if ids is None else terms.filter(pk__in=ids)
    with transaction.atomic():
        count, _ = terms.delete()
        if count:
            payload = {"lab_id": str(lab.pk), "user_id": str(user.pk), "count": count}
            event_emit("vocabulary.deleted", lab_id=lab.pk, payload=payload)
    return count


def vocabulary_csv(terms: QuerySet[VocabularyTerm]) -> str:
    """Terms as a file that can be imported, with a byte order mark for spreadsheets."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    writer.writerows(terms.values_list(*COLUMNS))
    return "\ufeff" + stream.getvalue()


def vocabulary_read(data: bytes) -> dict[tuple[str, str], VocabularyRow]:
    """Rows of a CSV file by field and term. Raises what ``vocabulary_import`` raises."""
    if len(data) > MAX_FILE_BYTES:
        raise TooLargeInputError(
            f"The file has {len(data):,} bytes; at most {MAX_FILE_BYTES:,} can be imported at once."
        )
    lines = csv.reader(io.StringIO(_decode(data), newline=""), delimiter=_delimiter(data))
    rows: dict[tuple[str, str], VocabularyRow] = {}
    for row in _rows(lines):
        before = rows.setdefault(row.key, row)
        if before.code != row.code:
            raise _problem(
                row.number,
                "code",
                f"“{row.term}” has the code “{row.code}” here and “{before.code}” in row "
                f"{before.number}; a term has one code",
            )
    if not rows:
        raise InvalidInputError("The file has no terms below its heading.", code="no-terms")
    return rows


def _change_codes(
    terms: dict[tuple[str, str], VocabularyTerm], rows: dict[tuple[str, str], VocabularyRow]
) -> list[VocabularyTerm]:
    """Terms whose code or spelling differs in the file, with its values."""
    changed = []
    for key, row in rows.items():
        if (term := terms.get(key)) is None:
            continue
        values = (row.term, term.code if row.code is None else row.code)
        if values != (term.term, term.code):
            term.term, term.code = values
            changed.append(term)
    return changed


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = data[: error.start].count(b"\n") + 1
        raise InvalidInputError(
            f"row {row}: the file is not in UTF-8. Save it as “CSV UTF-8”.", code="not-utf-8"
        ) from None


def _delimiter(data: bytes) -> str:
    head = data.partition(b"\n")[0]
    return ";" if head.count(b";") > head.count(b",") else ","


def _rows(lines: Iterator[list[str]]) -> Iterator[VocabularyRow]:
    try:
        columns = _columns(next(lines, []))
        for number, line in enumerate(lines, start=2):
            if not any(cell.strip() for cell in line):
                continue
            if len(line) > len(columns) and any(cell.strip() for cell in line[len(columns) :]):
                raise InvalidInputError(
                    f"row {number}: it has {len(line)} columns, the heading {len(columns)}. Put "
                    "terms with a comma or semicolon in double quotes."
                )
            yield _row(number, dict(zip(columns, line, strict=False)))
    except csv.Error as error:
        raise InvalidInputError(f"The file cannot be read as CSV: {error}.") from None


def _columns(head: Sequence[str]) -> list[str]:
    columns = [name_key(name) for name in head]
    while columns and not columns[-1]:
        columns.pop()
    missing = [name for name in COLUMNS[:2] if name not in columns]
    if missing or set(columns) - set(COLUMNS) or len(set(columns)) != len(columns):
        raise InvalidInputError(
            "row 1: the heading has to be “field,term,code” (the code may be left out); it is "
            f"“{','.join(columns)[:80]}”.",
            code="wrong-heading",
        )
    return columns


def _row(number: int, cells: dict[str, str]) -> VocabularyRow:
    field = name_key(cells.get("field", ""))
    if field not in VocabularyField.values:
        raise _problem(number, "field", f"expected organ or diagnosis, got “{field[:40]}”")
    term = name_clean(cells.get("term", ""))
    if not term:
        raise _problem(number, "term", "it is empty")
    _check(number, "term", term, _MAX_LENGTHS[field])
    code = name_clean(cells["code"]) if "code" in cells else None
    _check(number, "code", code or "", MAX_CODE_LENGTH)
    return VocabularyRow(number, field, term, code)


def _check(number: int, column: str, value: str, max_length: int) -> None:
    if len(value) > max_length:
        raise _problem(
            number,
            column,
            f"“{value[:20]}…” has {len(value)} characters; at most {max_length} fit",
        )
    if value.startswith(_FORMULA):
        raise _problem(
            number,
            column,
            f"“{value[:20]}” begins with {value[0]}, which spreadsheets take for a formula",
        )


def _problem(number: int, column: str, text: str) -> InvalidInputError:
    return InvalidInputError(
        f"row {number}, column {column}: {text}.", details={"row": number, "column": column}
    )
