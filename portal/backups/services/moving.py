"""Move of an installation to another database, another folder or a bucket.

Files are copied first and one by one, so that an interrupted move continues. Rows follow in one
transaction. The source is never changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import DataError, IntegrityError, connection, connections, models, transaction

from ml.files import replacing
from ml.types import Progress, no_progress
from portal.archive.storage.files import file_sha256, relative, s3_settings, store_at, the_store
from portal.archive.storage.s3_store import S3Settings
from portal.archive.storage.store import Store, Stored
from portal.core.database.locks import session_lock
from portal.core.database.rows import rows_insert
from portal.core.errors import ConflictError
from portal.core.storage_layout import Place, root
from portal.jobs.selectors.jobs import reapers_alive, workers_alive

TARGET = "target"
"""Alias of the other database while a move is under way."""
_MARK = "tessera_move"
_BATCH = 500  # rows read and written at a time
_BY_MIGRATE = {"contenttypes.ContentType", "auth.Permission", "sites.Site"}
_STAYS = {Place.CACHE, Place.FETCHED, Place.RESERVE, Place.RESTORE, Place.MOVE}
"""Places that are not moved: they can be made again or describe the volume. Temporary folders of
jobs are not moved either."""
_ORIGINALS = {Place.ASSETS, Place.ORPHANS, Place.IDENTITY}


@dataclass(frozen=True, slots=True)
class MoveTarget:
    """Settings of the new installation, as ``DATABASES``, ``TESSERA_STORAGE``, ``TESSERA_S3``."""

    database: dict[str, Any]
    folder: Path
    bucket: S3Settings | None


@dataclass(frozen=True, slots=True)
class MoveReport:
    """Numbers of rows and files moved, and of those compared."""

    tables: int
    rows: int
    files: int
    size_bytes: int


def installation_move(*, target: MoveTarget, progress: Progress = no_progress) -> MoveReport:
    """Copy files and rows to the target, and compare both by count and hash.

    An interrupted move can be run again: files that were copied are not copied again.

    Raises:
        ConflictError: The portal is running; the target is the source, or is neither empty nor that
            of this move; a copy differs, or the target's database refuses a row.
        OSError: A file cannot be read or written.
    """
    if workers_alive().exists() or reapers_alive().exists():
        raise ConflictError("The portal is running. Stop it, and try again a minute later.")
    if target.bucket is None and root().resolve() in target.folder.resolve().parents:
        raise ConflictError("TESSERA_STORAGE of the target lies within that of the source.")
    with _connection_to(target.database), _source_snapshot():
        session_lock("move", using=TARGET)  # a killed move may still be writing
        source = _name_of_source()
        is_new_database = not _is_same_database()
        is_copied = is_new_database and _mark_database(source)
        if is_new_database:
            call_command("migrate", database=TARGET, interactive=False, verbosity=0)
        store = store_at(target.folder, target.bucket)
        tables = rows = count = size_bytes = 0
        if not is_copied:
            count, size_bytes = _files_move(target, store, source, progress)
        if is_new_database and not is_copied:
            tables, rows = _rows_move(progress)
        store.delete(Place.MOVE.folder_name)
        (target.folder / Place.MOVE.folder_name).unlink(missing_ok=True)
        if is_new_database:  # last, so that a resumed move knows that only this step is left
            with connections[TARGET].cursor() as cursor:
                cursor.execute(f"DROP TABLE {_MARK}")
    return MoveReport(tables, rows, count, size_bytes)


@contextmanager
def _connection_to(config: dict[str, Any]) -> Iterator[None]:
    """Add the target to Django's connections under its alias."""
    settings = connections.configure_settings({"default": config})
    connections.settings[TARGET] = settings["default"]
    try:
        yield
    finally:
        with suppress(AttributeError):
            connections[TARGET].close()
            del connections[TARGET]
        del connections.settings[TARGET]


@contextmanager
def _source_snapshot() -> Iterator[None]:
    """Read the source from one snapshot that cannot be written; SQLite locks out other writers."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
            return
        cursor.execute("PRAGMA query_only = ON")
        try:
            yield
        finally:
            cursor.execute("PRAGMA query_only = OFF")


def _name_of_source() -> str:
    parts = [connection.vendor, str(s3_settings()), str(root().resolve())]
    parts += [str(connection.settings_dict[key]) for key in ("HOST", "PORT", "NAME")]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _is_same_database() -> bool:
    other = connections[TARGET].settings_dict
    keys = ("ENGINE", "HOST", "PORT", "NAME")
    return all(str(other[key]) == str(connection.settings_dict[key]) for key in keys)


def _mark_database(source: str) -> bool:
    """Mark the target as that of this move; True if all files and rows were copied before.

    Raises:
        ConflictError: The target has rows, or belongs to another move.
    """
    target = connections[TARGET]
    with transaction.atomic(using=TARGET), target.cursor() as cursor:
        tables = set(target.introspection.table_names(cursor))
        if _MARK in tables:
            cursor.execute(f"SELECT source, is_copied FROM {_MARK}")  # noqa: S608 - ours
            marks = cursor.fetchall()
            if [mark[0] for mark in marks] != [source]:
                raise ConflictError("The target is that of another move that was not finished.")
            return bool(marks[0][1])
        for model in _models():
            meta = model._meta
            if meta.db_table in tables and meta.label not in _BY_MIGRATE:
                cursor.execute(f"SELECT 1 FROM {_quote_name(meta.db_table)} LIMIT 1")  # noqa: S608 - ours
                if cursor.fetchone():
                    raise ConflictError(
                        "The target's database is not empty: it has rows in "
                        f"{meta.db_table}. Name an empty one, or one of an unfinished move.",
                        code="move-not-empty",
                    )
        cursor.execute(f"CREATE TABLE {_MARK} (source text, is_copied boolean)")
        cursor.execute(f"INSERT INTO {_MARK} VALUES (%s, %s)", [source, False])  # noqa: S608 - ours
        return False


def _files_move(
    target: MoveTarget, store: Store, source: str, progress: Progress
) -> tuple[int, int]:
    """Copy and compare files whose place changes; return their number and size."""
    is_new_folder = target.folder.resolve() != root().resolve()
    bucket = s3_settings()
    is_new_store = target.bucket != bucket or (bucket is None and is_new_folder)
    if not (is_new_folder or is_new_store):
        return 0, 0
    if is_new_folder:
        _mark_folder(target.folder, source)
    if is_new_store:
        _mark_store(store, source)
    originals = list(_originals()) if is_new_store else []
    other_names = list(_other_files()) if is_new_folder else []
    total, size_bytes = len(originals) + len(other_names), 0
    for number, original in enumerate(originals, start=1):
        _original_move(target, store, original.name)
        size_bytes += original.size_bytes
        progress(number, total, "originals")
    for number, name in enumerate(other_names, start=1):
        _file_move(root() / name, target.folder / name)
        size_bytes += (root() / name).stat().st_size
        progress(len(originals) + number, total, "files")
    return total, size_bytes


def _mark_folder(folder: Path, source: str) -> None:
    mark = folder / Place.MOVE.folder_name
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()) and not (mark.exists() and mark.read_text() == source):
        raise ConflictError(
            f"{folder} is not empty. Name an empty folder as TESSERA_STORAGE of the target.",
            code="move-not-empty",
        )
    mark.write_text(source)


def _mark_store(store: Store, source: str) -> None:
    name = Place.MOVE.folder_name
    if store.stat(name) is not None:
        if store.read(name).decode() != source:
            raise ConflictError("The target is that of another move that was not finished.")
        return
    if any(True for _ in store.files(Place.ASSETS.folder_name)):
        raise ConflictError(
            "The target's object storage holds originals already. Name an empty bucket.",
            code="move-not-empty",
        )
    store.write(name, source.encode())


def _originals() -> Iterator[Stored]:
    store = the_store()
    for place in (Place.ASSETS, Place.ORPHANS):
        yield from store.files(place.folder_name)
    if (identity := store.stat(Place.IDENTITY.folder_name)) is not None:
        yield identity


def _other_files() -> Iterator[str]:
    """Paths of other files that cannot be made again, relative to the root."""
    left_out = {place.folder_name for place in _STAYS | _ORIGINALS}
    at_work = f"{Place.JOBS.folder_name}/{Place.JOBS.prefix}"
    for entry in sorted(root().iterdir()) if root().is_dir() else ():
        if entry.name in left_out:
            continue
        for path in [entry] if entry.is_file() else sorted(entry.rglob("*")):
            name = relative(path)
            if path.is_file() and not path.is_symlink() and not name.startswith(at_work):
                yield name


def _file_move(path: Path, copy: Path) -> None:
    """Copy a file unless its copy has the same size and time; compare their bytes."""
    source, copied = path.stat(), copy.stat() if copy.is_file() else None
    if copied is None or (copied.st_size, copied.st_mtime_ns) != (
        source.st_size,
        source.st_mtime_ns,
    ):
        copy.parent.mkdir(parents=True, exist_ok=True)
        with replacing(copy) as temporary:
            shutil.copyfile(path, temporary)
            os.utime(temporary, ns=(source.st_atime_ns, source.st_mtime_ns))
    if file_sha256(copy) != file_sha256(path):
        copy.unlink()
        raise ConflictError(f"The copy of {path} differs from it. Run the move again.")


def _original_move(target: MoveTarget, store: Store, name: str) -> None:
    if name == Place.IDENTITY.folder_name:
        store.write(name, the_store().read(name))
        return
    path = the_store().local(name)
    stored = store.stat(name)
    if stored is None or stored.size_bytes != path.stat().st_size:
        if target.bucket is not None:
            store.send(path, name)
        else:
            received = target.folder / Place.INCOMING.folder_name / f"moved-{uuid.uuid4()}"
            received.parent.mkdir(parents=True, exist_ok=True)
            try:
                shutil.copyfile(path, received)
                _sync_file(received)
                store.put(received, name)
            finally:
                received.unlink(missing_ok=True)
    if not store.is_intact(name):
        store.delete(name)
        raise ConflictError(
            f"{name} is not what its hash says, in the copy or already in the source. "
            "Run the move again; if it stays, look at the source with backup --verify."
        )


def _sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _rows_move(progress: Progress) -> tuple[int, int]:
    """Copy every row in one transaction of the target, compared before it commits."""
    tables, total = _models(), 0
    target = connections[TARGET]
    with transaction.atomic(using=TARGET), target.cursor() as cursor:
        for model in tables:
            if model._base_manager.using(TARGET).exists():  # rows that migrations wrote
                cursor.execute(f"DELETE FROM {_quote_name(model._meta.db_table)}")  # noqa: S608 - ours
        for number, model in enumerate(tables, start=1):
            count, digest = _copy(model)
            copied = _digest(model)
            if copied != (count, digest):
                raise ConflictError(
                    f"{model._meta.db_table} differs in the copy: {copied[0]} rows of {count}, or "
                    "other values in them. Nothing was written."
                )
            total += count
            progress(number, len(tables), "rows")
        for statement in target.ops.sequence_reset_sql(no_style(), tables):
            cursor.execute(statement)
        cursor.execute(f"UPDATE {_MARK} SET is_copied = %s", [True])  # noqa: S608 - ours
    return len(tables), total


def _models() -> list[type[models.Model]]:
    """Models of all tables. Their order is free: foreign keys are checked at the commit."""
    all_models = apps.get_models(include_auto_created=True)
    return [model for model in all_models if model._meta.managed and not model._meta.proxy]


def _copy(model: type[models.Model]) -> tuple[int, int]:
    """Copy a table; return count and digest of the rows read."""
    count = digest = 0
    batch: list[models.Model] = []
    try:
        for row in model._base_manager.order_by("pk").iterator(chunk_size=_BATCH):
            count, digest = count + 1, digest + _row_digest(row)
            batch.append(row)
            if len(batch) == _BATCH:
                rows_insert(batch, keeps_times=True, using=TARGET)
                batch = []
        rows_insert(batch, keeps_times=True, using=TARGET)
    except (DataError, IntegrityError) as error:
        last = batch[-1].pk if batch else None
        raise ConflictError(
            f"The target's database refuses a row of {model._meta.db_table}, at or before {last}: "
            f"{str(error).splitlines()[0]}. Correct it in the source, and run the move again."
        ) from error
    return count, digest % 2**128


def _digest(model: type[models.Model]) -> tuple[int, int]:
    """Count and digest of a table of the target."""
    count = digest = 0
    for row in model._base_manager.using(TARGET).order_by().iterator(chunk_size=_BATCH):
        count, digest = count + 1, digest + _row_digest(row)
    return count, digest % 2**128


def _row_digest(row: models.Model) -> int:
    """Hash of a row's values as a number: the sum over rows does not depend on their order."""
    values = [_plain(getattr(row, field.attname)) for field in row._meta.concrete_fields]
    text = json.dumps(values, sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")


def _plain(value: Any) -> Any:
    """Value as JSON that is equal for both databases, which write numbers differently."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, bytes | memoryview):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value) if isinstance(value, date | uuid.UUID) else value


def _quote_name(name: str) -> str:
    return connections[TARGET].ops.quote_name(name)
