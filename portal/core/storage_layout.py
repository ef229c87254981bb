"""The places of the storage: each folder that the portal writes, once, with what becomes of it.

Code gets its paths here and nowhere else, so that a new place has to say how an erasure finds what
belongs to a patient, and whether backups take it. All lie on one volume, so that a rename publishes
a file or a folder at once.
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
    """A place of the storage: the folder, how names of its entries begin, and what becomes of it.

    ====================  =======================================================================
    ``ASSETS``            uploaded files, ``<lab>/<sha[:2]>/<sha>``, never changed; or in a bucket
    ``FETCHED``           local copies of those in a bucket, bounded
    ``TRASH``             originals that nothing names any more, by day; or in a bucket
    ``DERIVED``           what jobs made of a slide, video, mosaic or follow-up, by its id
    ``CACHE``             decoded tiles and frames of a canvas; may be deleted at any time
    ``INCOMING``          transfers under way, and files of one request
    ``INDEXES``           search indexes, ``<encoder>/<lab>/<snapshot>``
    ``ROI_IMPORTS``       documents with regions, by canvas and import
    ``CASE_EXPORTS``      crates to be downloaded, by case
    ``CASE_IMPORTS``      what was taken out of a crate, by lab and case
    ``MOSAIC_BUILDS``     stages to resume from, by video and options
    ``TRAININGS``         pictures and checkpoints, by lab and training
    ``JOBS``              temporary folders of jobs at work, by job
    ``IDENTITY``          which database these files belong to
    ``RESTORE``           says that a restore was begun
    ``MOVE``              says that an installation is being moved here
    ``RESERVE``           room that is held for records
    ====================  =======================================================================
    """

    ASSETS = ("assets", "", Erased.BY_CONTENT, True)
    FETCHED = ("fetched", "", Erased.BY_CONTENT, False)
    TRASH = ("trash", "", Erased.BY_CONTENT, False)
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
        """The entry that is named by these ids; the folder or file itself without any."""
        return self.folder / (self.prefix + "-".join(map(str, ids))) if ids else self.folder

    def entries(self) -> Iterator[Path]:
        """List the entries, in no particular order."""
        found = self.folder.iterdir() if self.folder.is_dir() else iter(())
        return (path for path in found if path.name.startswith(self.prefix))


def root() -> Path:
    """The storage's root, as configured."""
    return Path(settings.TESSERA_STORAGE)


def ids_in(name: str) -> set[str]:
    """The ids of which the name of an entry consists."""
    return set(_UUID.findall(name))


def entries_of(ids: Collection[str]) -> list[Path]:
    """Every entry, in any place, that is named by one of these ids."""
    return sorted(
        path
        for place in Place
        if place.erased == Erased.BY_ID
        for path in place.entries()
        if not ids_in(path.name).isdisjoint(ids)
    )


def unknown_entries() -> list[str]:
    """Names at the top of the storage, and in folders that places share, that no place declares."""
    known = {place.folder_name: [] for place in Place}  # type: dict[str, list[str]]
    for place in Place:
        known[place.folder_name].append(place.prefix)
    found = []
    for path in root().iterdir() if root().is_dir() else ():
        if path.name not in known:
            found.append(path.name)
        elif path.is_dir() and all(known[path.name]):
            prefixes = tuple(known[path.name])
            found += [
                f"{path.name}/{one.name}"
                for one in path.iterdir()
                if not one.name.startswith(prefixes)
            ]
    return sorted(found)
