"""Backups: the database as of one moment, then every file that it names, by content."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from django.utils import timezone

from ml.types import Progress, no_progress
from portal.archive import storage
from portal.keeping import rooms
from portal.keeping.dumps import engine_name, engine_of
from portal.keeping.models import Backup
from portal.keeping.rooms import WantedFile
from portal.keeping.services.erasing import erasures_pass_on
from portal.keeping.vault import BackupDamagedError, DumpFile, GenerationManifest, StoredFile, Vault

ROUNDS = 3
"""Dumps before a file that rows name and nobody finds counts as missing: each round, what was
deleted meanwhile is out of the dump, and the files of the round before are there already."""
NAMED = 20  # damaged files in a message; the rest is counted


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What a backup did; ``holding``: older generations that hold what was erased since."""

    manifest: GenerationManifest
    new_files: int
    new_bytes: int
    pruned: tuple[str, ...]
    holding: tuple[str, ...] = ()


@dataclass(slots=True)
class _Copied:
    """What was copied so far."""

    files: int = 0
    size_bytes: int = 0
    new_files: int = 0
    new_bytes: int = 0


def backup_take(
    *,
    destination: Path,
    keep: int | None = None,
    forget_erased: bool = False,
    progress: Progress = no_progress,
) -> BackupReport:
    """Make a new generation beside a running portal; what the destination has is not copied again.

    The dump comes first and the files after it: whatever was answered with success before this
    began is in both. Files that a row names and that are deleted in between make it begin again.

    Args:
        keep: this many generations stay, the new one among them; None: all.
        forget_erased: older generations that hold what was erased since are removed.
    Raises:
        ConflictError: another backup to this destination is under way; the database is damaged.
    """
    vault = Vault(destination)
    with vault.locked():
        known = _known(vault)
        taken_at = timezone.now()
        name = _free_name(vault, f"{taken_at:%Y%m%dT%H%M%SZ}")
        with vault.begun(name) as made:
            for left in reversed(range(ROUNDS)):
                taken_at = timezone.now()
                manifest, copied = _round(vault, made, name, known, progress)
                if not manifest.missing or not left:
                    break
            vault.publish(made, manifest)
        Backup.objects.create(
            destination=str(destination),
            name=name,
            taken_at=taken_at,
            files=copied.files,
            size_bytes=copied.size_bytes,
            new_bytes=copied.new_bytes,
        )
        pruned = _forget(vault, tuple(vault.names()[:-keep])) if keep is not None else ()
        holding = tuple(erasures_pass_on(vault))
        if forget_erased:
            pruned += _forget(vault, holding)
            holding = ()
    return BackupReport(manifest, copied.new_files, copied.new_bytes, pruned, holding)


def backup_verify(
    *, destination: Path, name: str | None = None, progress: Progress = no_progress
) -> GenerationManifest:
    """Read every byte of a generation (the newest unless named) and compare it with its hash.

    Raises:
        BackupDamagedError: with each file that is missing or not what was written.
    """
    vault = Vault(destination)
    manifest = vault.manifest(name or vault.newest())
    damaged = dump_damage(vault, manifest)
    done = 0
    if not damaged:
        for file in vault.files(manifest.name):
            path = vault.object_path(file.sha256)
            if not path.is_file():
                damaged.append(f"{file.path} is missing")
            elif storage.file_sha256(path) != file.sha256:
                damaged.append(f"{file.path} is damaged ({path.relative_to(destination)})")
            done += file.size_bytes
            progress(done, manifest.size_bytes, "verifying")
    require_whole(manifest, damaged)
    return manifest


def dump_damage(vault: Vault, manifest: GenerationManifest) -> list[str]:
    """What of the dump and of the list of files is not as it was written."""
    folder = vault.generation(manifest.name)
    wanted = {file.name: file.sha256 for file in manifest.dump}
    wanted["files.jsonl"] = manifest.files_sha256
    damaged = []
    for name, sha256 in wanted.items():
        path = folder / name
        if not path.is_file():
            damaged.append(f"{name} is missing")
        elif storage.file_sha256(path) != sha256:
            damaged.append(f"{name} is damaged")
    return damaged


def require_whole(manifest: GenerationManifest, damaged: list[str]) -> None:
    """Raise ``BackupDamagedError`` naming what is damaged, if anything is."""
    if damaged:
        more = f"; and {len(damaged) - NAMED} more" if len(damaged) > NAMED else ""
        raise BackupDamagedError(
            f"The backup {manifest.name} cannot be used: {'; '.join(damaged[:NAMED])}{more}.",
            details={"damaged": damaged},
        )


def _round(
    vault: Vault, made: Path, name: str, known: dict[str, StoredFile], progress: Progress
) -> tuple[GenerationManifest, _Copied]:
    """One dump and the files it names."""
    engine = engine_name()
    progress(0, 0, "database")
    taken_at = timezone.now()
    with engine_of(engine).dump(made) as (ask, schema):
        wanted = rooms.assets_of(ask)
        named = rooms.paths_of(ask)
        tables = [table for (table,) in ask(_TABLES[engine])]
        rows = {t: int(ask(f'SELECT COUNT(*) FROM "{t}"')[0][0]) for t in tables}  # noqa: S608
    dump = [
        DumpFile(path.name, storage.file_sha256(path), path.stat().st_size)
        for path in sorted(made.glob("database.*"))
    ]
    wanted += rooms.others()
    missing, copied, found = [], _Copied(), set()
    with (made / "files.jsonl").open("w", encoding="utf-8") as lines:
        for at, one in enumerate(wanted, start=1):
            if _copy(vault, one, known, copied, lines):
                found.add(one.path)
            else:
                missing.append(one.path)
            progress(at, len(wanted), "files")
    missing += sorted(named - found - set(missing))
    manifest = GenerationManifest(
        name=name,
        taken_at=taken_at.isoformat(),
        engine=engine,
        schema=schema,
        dump=dump,
        rows=rows,
        files_sha256=storage.file_sha256(made / "files.jsonl"),
        files=copied.files,
        size_bytes=copied.size_bytes,
        missing=missing,
    )
    return manifest, copied


def _copy(
    vault: Vault, one: WantedFile, known: dict[str, StoredFile], copied: _Copied, lines: IO[str]
) -> bool:
    """Bring a file into the vault and into the list; False if it is not there, or not itself.

    What is known by its name (an original) or by size and time since the last backup is not read.
    """
    try:
        size_bytes, mtime_ns = _stamp(one.path)
        before = known.get(one.path)
        is_same = before and (before.size_bytes, before.mtime_ns) == (size_bytes, mtime_ns)
        sha256, is_new = one.sha256 or (before.sha256 if before and is_same else ""), False
        if not (sha256 and vault.holds(sha256, size_bytes)):
            sha256, size_bytes, is_new = vault.put(storage.resolve(one.path))
    except FileNotFoundError:
        return False
    if one.sha256 and (sha256, size_bytes) != (one.sha256, one.size_bytes):
        return False
    row = StoredFile(one.path, sha256, size_bytes, mtime_ns)
    lines.write(json.dumps(asdict(row)) + "\n")
    known[one.path] = row
    copied.files += 1
    copied.size_bytes += size_bytes
    copied.new_files += is_new
    copied.new_bytes += size_bytes if is_new else 0
    return True


def _stamp(path: str) -> tuple[int, int]:
    """Size and time of a file, in nanoseconds; an original in a bucket is not fetched for it."""
    if not storage.is_original(path):
        stat = storage.resolve(path).stat()
        return stat.st_size, stat.st_mtime_ns
    stored = storage.the_store().stat(path)
    if stored is None:
        raise FileNotFoundError(path)
    return stored.size_bytes, int(stored.changed_s * 1e9)


def _known(vault: Vault) -> dict[str, StoredFile]:
    """The files of the newest generation, by path; none if it cannot be read."""
    names = vault.names()
    if not names:
        return {}
    try:
        if dump_damage(vault, vault.manifest(names[-1])):
            return {}
    except BackupDamagedError:
        return {}
    return {file.path: file for file in vault.files(names[-1])}


def _free_name(vault: Vault, name: str) -> str:
    """Two backups within a second have two names."""
    taken, number = set(vault.names()), 1
    free = name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def _forget(vault: Vault, surplus: tuple[str, ...]) -> tuple[str, ...]:
    for name in surplus:
        vault.drop(name)
    vault.collect()
    gone = Backup.objects.filter(destination=str(vault.folder), name__in=surplus, gone_at=None)
    gone.update(gone_at=timezone.now())
    return surplus


_TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    "postgresql": "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()",
}
