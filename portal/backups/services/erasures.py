"""Erasures in backups: listed in every destination, repeated when an older backup is restored."""

from __future__ import annotations

from collections.abc import Callable

from portal.backups.repository import BackupRepository, ErasedCases
from portal.core.registry import Registry

ERASURE_LISTS: Registry[str, Callable[[], list[ErasedCases]]] = Registry()
"""Functions that list the completed erasures, by the name of their app."""
ERASURE_REPEATERS: Registry[str, Callable[[ErasedCases], bool]] = Registry()
"""Functions that repeat an erasure if its cases are in the database again, by app."""


def erasures_note(repository: BackupRepository) -> list[str]:
    """Add the completed erasures to a repository; return its generations that hold erased data."""
    erasures = {row["erasure"]: row for row in repository.erasures()}
    for _, list_erasures in ERASURE_LISTS.items():
        erasures |= {row["erasure"]: row for row in list_erasures()}
    if erasures:
        repository.write_erasures(list(erasures.values()))
    last = max((row["at"] for row in erasures.values()), default="")
    return [name for name in repository.names() if repository.manifest(name).taken_at < last]


def erasures_repeat(repository: BackupRepository) -> int:
    """Erase again what a restored backup brought back; return the number of erasures."""
    return sum(
        repeat(row) for row in repository.erasures() for _, repeat in ERASURE_REPEATERS.items()
    )
