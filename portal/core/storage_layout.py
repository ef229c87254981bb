"""Folders of the storage volume, with the rules of erasures and backups for each.

All code gets its paths here, so that every new folder must declare how an erasure finds a patient's
data in it and whether backups include it. All are on one volume, so renames are atomic.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Iterator
from enum import Enum, StrEnum
from pathlib import Path

from django.conf import settings

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Erased(StrEnum):
    """Rule by which an erasure finds entries of cases."""

    BY_ID = "entries that are named by the id of a row that goes"
    BY_CONTENT = "originals that no other case has, by their hash"
    OF_LAB = "all of the lab, since it is mixed of many patients and made again"
    NOTHING = "nothing: it holds no data of a patient"


class Place(Enum):
    """Folder of the storage with the prefix of its entries' names and its rules.

    ====================  =======================================================================
    ``ASSETS``            uploaded files, ``<lab>/<sha[:2]>/<sha>``, never changed; or in a bucket
    ``FETCHED``           local copies of those in a bucket, bounded
    ``ORPHANS``           originals without any reference, by day; or in a bucket
    ``DERIVED``           files made from a slide, video, mosaic or follow-up, by its id
    ``CACHE``             decoded tiles and frames of a canvas; may be deleted at any time
    ``INCOMING``          transfers under way, and files of one request
    ``INDEXES``           search indexes, ``<encoder>/<lab>/<snapshot>``
    ``ROI_IMPORTS``       documents with regions, by canvas and import
    ``CASE_EXPORTS``      crates for download, by case
    ``CASE_IMPORTS``      files extracted from a crate, by lab and case
    ``MOSAIC_BUILDS``     stages to resume from, by video and options
    ``TRAININGS``         pictures and checkpoints, by lab and training
    ``JOBS``              temporary folders of running jobs, by job
    ``IDENTITY``          identity of the database that these files belong to
    ``RESTORE``           marks an unfinished restore
    ``MOVE``              marks an unfinished move of an installation
    ``RESERVE``           reserved space for records
    ====================  =======================================================================
    """

    ASSETS = ("assets", "", Erased.BY_CONTENT, True)
    FETCHED = ("fetched", "", Erased.BY_CONTENT, False)
    ORPHANS = ("orphans", "", Erased.BY_CONTENT, False)
    DERIVED = ("derived", "", Erased.BY_ID, True)
    CACHE = ("cache", "", Erased.BY_ID, False)
    INCOMING = ("incoming", "", Erased.BY_ID, False)
    INDEXES = ("indexes", "", Erased.OF_LAB, False)
    ROI_IMPORTS = ("scratch", "rois-", Erased.BY_ID, False)
    CASE_EXPORTS = ("scratch", "export-", Erased.BY_ID, False)
    CASE_IMPORTS = ("scratch", "crate-", Erased.BY_ID, False)
    MOSAIC_BUILDS = ("scratch", "mosaic-", Erased.BY_ID, False)
    TRAININGS = ("scratch", "learning-", Erased.OF_LAB, False)
    JOBS = ("scratch", "job-", Erased.BY_ID, False)
    IDENTITY = ("identity.json", "", Erased.NOTHING, True)
    RESTORE = ("restore-under-way", "", Erased.NOTHING, False)
    MOVE = ("move-under-way", "", Erased.NOTHING, False)
    RESERVE = ("tessera.reserve", "", Erased.NOTHING, False)

    def __init__(self, folder: str, prefix: str, erased: Erased, is_backed_up: bool) -> None:
        self.folder_name = folder
        self.prefix = prefix
        self.erased = erased
        self.is_backed_up = is_backed_up

    @property
    def folder(self) -> Path:
        """Folder of the entries; several places may share one."""
        return root() / self.folder_name

    def path(self, *ids: uuid.UUID | str) -> Path:
        """Path of the entry with these ids; without ids the folder or file itself."""
        return self.folder / (self.prefix + "-".join(map(str, ids))) if ids else self.folder

    def entries(self) -> Iterator[Path]:
        """Entries of the folder, in no particular order."""
        paths = self.folder.iterdir() if self.folder.is_dir() else iter(())
        return (path for path in paths if path.name.startswith(self.prefix))


def root() -> Path:
    """Configured root of the storage."""
    return Path(settings.TESSERA_STORAGE)


def ids_in(name: str) -> set[str]:
    """Ids in the name of an entry."""
    return set(_UUID.findall(name))


def entries_of(ids: Collection[str]) -> list[Path]:
    """Entries of all folders whose name contains one of these ids."""
    return sorted(
        path
        for place in Place
        if place.erased == Erased.BY_ID
        for path in place.entries()
        if not ids_in(path.name).isdisjoint(ids)
    )


def unknown_entries() -> list[str]:
    """Names in the root of the storage and in shared folders that no ``Place`` declares."""
    prefixes_of = {place.folder_name: [] for place in Place}  # type: dict[str, list[str]]
    for place in Place:
        prefixes_of[place.folder_name].append(place.prefix)
    unknown = []
    for path in root().iterdir() if root().is_dir() else ():
        if path.name not in prefixes_of:
            unknown.append(path.name)
        elif path.is_dir() and all(prefixes_of[path.name]):
            prefixes = tuple(prefixes_of[path.name])
            unknown += [
                f"{path.name}/{entry.name}"
                for entry in path.iterdir()
                if not entry.name.startswith(prefixes)
            ]
    return sorted(unknown)
