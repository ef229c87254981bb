"""Writes of rows that have versions: guarded by the version that was read, safe to repeat."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db import IntegrityError, transaction
from django.utils import timezone

from portal.annotations.models import Roi, VideoEvent
from portal.archive.models import Canvas
from portal.core.errors import ConflictError, NotFoundError, StaleVersionError

Row = TypeVar("Row", Roi, VideoEvent)


@dataclass(frozen=True, slots=True)
class Versions(Generic[Row]):
    """Versions of the rows of one model.

    Attributes:
        noun: What errors call a row.
        deleted_code: Code of the error for a deleted row.
        fields: Fields that a change writes, reloaded when a row is locked.
        state: Fields of the first revision that a repeated save must repeat.
        place: Fields of the row that a repeated save must repeat; no change writes them.
    """

    model: type[Row]
    noun: str
    deleted_code: str
    fields: tuple[str, ...]
    state: tuple[str, ...]
    place: tuple[str, ...]

    @contextmanager
    def locked(self, row: Row, expected_version: int | None) -> Iterator[None]:
        """Transaction with the row locked (where the database locks rows), reloaded, compared.

        Args:
            expected_version: None for the version that was read.

        Raises:
            NotFoundError: the row was purged.
            StaleVersionError: it has another version; ``details["current_version"]``.
        """
        expected = row.version if expected_version is None else expected_version
        with transaction.atomic():
            now = self.model.objects.select_for_update().filter(pk=row.pk).first()
            if now is None:
                raise NotFoundError(f"This {self.noun} no longer exists.")
            for field in ("version", "deleted_at", *self.fields):
                setattr(row, field, getattr(now, field))
            self.require(row, expected)
            yield

    def require(self, row: Row, expected_version: int) -> None:
        """Raise ``StaleVersionError`` unless the row has the version."""
        if row.version != expected_version:
            raise _stale(row, expected_version)

    def require_live(self, row: Row) -> None:
        """Raise ``ConflictError`` for a deleted row."""
        if row.deleted_at is not None:
            raise ConflictError(
                f"This {self.noun} is deleted. Restore it first.", code=self.deleted_code
            )

    def write(self, row: Row, fields: Mapping[str, object]) -> None:
        """UPDATE guarded by the version: of two writers that saw the same version, one wins."""
        updates = {**fields, "version": row.version + 1, "updated_at": timezone.now()}
        if not self.model.objects.filter(pk=row.pk, version=row.version).update(**updates):
            raise _stale(row, row.version)
        for name, value in updates.items():
            setattr(row, name, value)

    def require_canvas(self, canvas_id: uuid.UUID) -> None:
        """Raise ``NotFoundError`` where the canvas of new rows was deleted."""
        if not Canvas.objects.filter(pk=canvas_id).exists():
            raise NotFoundError(f"The item of this {self.noun} was deleted.")

    def insert_once(self, row: Row, record: Callable[[], None], *, can_exist: bool) -> Row:
        """Insert a row, or return the one of the same id that was created with the same content.

        Args:
            record: Writes the first revision and emits the event, in the same transaction.
            can_exist: The client chose the id and may have sent it before.

        Raises:
            ConflictError: the id is taken by something else.
        """
        if can_exist and (existing := self._created_before(row)):
            return existing
        try:
            with transaction.atomic():
                self.require_canvas(row.canvas_id)
                row.save(force_insert=True)
                record()
        except IntegrityError:  # a concurrent request has created the same row
            if can_exist and (existing := self._created_before(row)):
                return existing
            raise
        return row

    def _created_before(self, row: Row) -> Row | None:
        rows = self.model.all_objects.select_related("canvas__video", "created_by")
        existing: Row | None = rows.filter(pk=row.pk).first()
        if existing is None:
            return None
        first = existing.revisions.filter(version=1).first()
        if not _alike(existing, row, self.place) or not first or not _alike(first, row, self.state):
            raise ConflictError(
                f"id: {row.pk} is taken by another {self.noun}. Choose a new UUID.", code="id-taken"
            )
        return existing


def _alike(first: object, second: object, fields: tuple[str, ...]) -> bool:
    return all(getattr(first, field) == getattr(second, field) for field in fields)


def _stale(row: Roi | VideoEvent, expected_version: int) -> StaleVersionError:
    return StaleVersionError(
        f"You changed version {expected_version}, but the current version is {row.version}.",
        details={"current_version": row.version},
    )
