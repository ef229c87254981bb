"""Watched folder for scanners: complete files in it are received like uploads from a page.

``<folder>/<accession>/<file>`` becomes a slide or video of the case with that accession number,
which is created if the lab has none. The same applies to a slide of several files, there or in a
subfolder: MRXS with its folder, VMS or VMU with its files, an OME-Zarr, a DICOM series in a folder.
Received files are moved below ``.received``, rejected ones below ``.refused`` with a text file that
states the reason. Nothing is deleted here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import BinaryIO, cast

from ml.imaging.formats.folders import FoundSet, sets_in
from ml.natural_order import natural_sort
from portal.archive.models import Case
from portal.archive.services.cases import case_create
from portal.archive.services.items import item_receive
from portal.core.disk import is_disk_full
from portal.core.errors import (
    ConflictError,
    PortalError,
    StorageFullError,
    TooManyRequestsError,
    UnavailableError,
)
from portal.labs.models import Lab, User

logger = logging.getLogger(__name__)

RECEIVED, REFUSED = ".received", ".refused"
UNFINISHED = frozenset({".part", ".partial", ".tmp", ".crdownload", ".filepart"})
"""Suffixes that programs add to a file's name while they write it."""
_PASSING = (StorageFullError, TooManyRequestsError, UnavailableError)


class WatchOutcome(Enum):
    """Outcome for one file."""

    RECEIVED = "received"
    KNOWN = "known"  # the case has these bytes already
    REFUSED = "refused"
    LATER = "later"
    """The file stays for the next look: no space, no answer of the portal, or an incomplete set."""


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """Outcome for a file, by its path below the folder, with the reason if it was not received."""

    path: Path
    outcome: WatchOutcome
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Look:
    """State of a file or set at one scan; it is complete if the state stays the same for a while.

    Attributes:
        file_set: The set; None for a single file.
        state: Name, size and modification time of each file; a rename keeps size and time.
    """

    file_set: FoundSet | None
    state: tuple[tuple[Path, int, int], ...]
    since: float


class FolderWatch:
    """Polls a folder; keeps the state of files that are still being written."""

    def __init__(self, folder: Path, *, lab: Lab, user: User, settle_s: float) -> None:
        """``settle_s``: how long a file must stay unchanged before it counts as whole."""
        self.folder, self.lab, self.user, self.settle_s = folder, lab, user, settle_s
        self._looks: dict[Path, _Look] = {}

    def look(self, now_s: float) -> Iterator[FileOutcome]:
        """Receive the files and sets that no longer change, one after the other.

        Args:
            now_s: of a clock that only goes forward.
        Raises:
            OSError: the folder cannot be read or written.
            ForbiddenError: the person may not write in this lab any more.
        """
        looks: dict[Path, _Look] = {}
        for path, file_set in self._units():
            files = file_set.files if file_set else (path,)
            try:
                statuses = [(file, file.stat()) for file in files]
            except FileNotFoundError:
                continue  # taken away or renamed since it was listed
            state = tuple((file, stat.st_size, stat.st_mtime_ns) for file, stat in statuses)
            last = self._looks.get(path)
            if last is None or last.state != state:
                last = _Look(file_set, state, now_s)
            looks[path] = last
        self._looks = looks
        settled = {
            path: look for path, look in looks.items() if now_s - look.since >= self.settle_s
        }
        for path, look in settled.items():
            yield self._take(path, look.file_set)

    def stray(self) -> list[str]:
        """Names of files outside the folders of cases; they are not received."""
        return sorted(path.name for path in self.folder.iterdir() if _is_file(path))

    def _units(self) -> Iterator[tuple[Path, FoundSet | None]]:
        """Sets by the file that is opened, and the files of a case's folder that are in none."""
        for case in natural_sort(self.folder.iterdir()):
            if case.name.startswith(".") or case.is_symlink() or not case.is_dir():
                continue
            with suppress(FileNotFoundError):  # renamed since it was listed: seen at the next look
                yield from list(_units_of(case))

    def _take(self, path: Path, file_set: FoundSet | None) -> FileOutcome:
        relative = path.relative_to(self.folder)
        if file_set is not None and file_set.missing:
            return FileOutcome(relative, WatchOutcome.LATER, file_set.missing)
        try:
            is_new = self._receive(path, file_set, self._case(relative.parts[0]))
        except _PASSING as error:
            return FileOutcome(relative, WatchOutcome.LATER, error.message)
        except PortalError as error:
            if error.status == 403:
                raise
            self._move_away(path, file_set, REFUSED, error.message)
            return FileOutcome(relative, WatchOutcome.REFUSED, error.message)
        except OSError as error:
            if isinstance(error, FileNotFoundError) or is_disk_full(error):
                return FileOutcome(relative, WatchOutcome.LATER, str(error))
            raise
        self._move_away(path, file_set, RECEIVED)
        return FileOutcome(relative, WatchOutcome.RECEIVED if is_new else WatchOutcome.KNOWN)

    def _receive(self, path: Path, file_set: FoundSet | None, case: Case) -> bool:
        if file_set is not None:
            packed = cast(BinaryIO, _Packed(file_set))
            name = f"{path.name if path.is_dir() else path.stem}.zip"
            return item_receive(case=case, file=packed, filename=name, user=self.user).is_new
        with path.open("rb") as file:
            return item_receive(case=case, file=file, filename=path.name, user=self.user).is_new

    def _case(self, accession: str) -> Case:
        """The lab's case; made where it has none, or none but one in the trash."""
        cases = Case.objects.owned_by(self.user).filter(lab=self.lab, accession=accession)
        case = cases.first()
        if case is not None:
            return case
        try:
            return case_create(lab=self.lab, user=self.user, accession=accession)
        except ConflictError:
            return cases.get()  # created by another process

    def _move_away(
        self, path: Path, file_set: FoundSet | None, where: str, reason: str = ""
    ) -> None:
        """Move a file or a set to ``where``, under a free name."""
        relative = path.relative_to(self.folder)
        case, target = self.folder / relative.parts[0], self.folder / where / relative
        if file_set is None:
            target.parent.mkdir(parents=True, exist_ok=True)
            target = _free(target)
            path.rename(target)
        else:
            root = self.folder / where / case.name
            number = 1
            while any((root / file.relative_to(case)).exists() for file in file_set.files):
                number += 1  # a folder of its own: its files name each other
                root = root.with_name(f"{case.name}-{number}")
            for file in file_set.files:
                moved = root / file.relative_to(case)
                moved.parent.mkdir(parents=True, exist_ok=True)
                file.rename(moved)
            _remove_empty_folders(case, file_set)
            target = root / path.relative_to(case)
        if reason:
            target.with_name(f"{target.name}.reason.txt").write_text(f"{reason}\n")
        self._looks.pop(path, None)


def _units_of(case: Path) -> Iterator[tuple[Path, FoundSet | None]]:
    sets = sets_in(case)
    for file_set in sets:
        folders = {file.parent for file in file_set.files}
        if not any(
            file.suffix.lower() in UNFINISHED for folder in folders for file in folder.iterdir()
        ):
            yield file_set.main, file_set
    set_files = {file for file_set in sets for file in file_set.files}
    for path in natural_sort(case.iterdir()):
        if path not in set_files and _is_file(path):
            yield path, None


def _free(target: Path) -> Path:
    """The path, or a free one next to it."""
    free, number = target, 1
    while free.exists():
        number += 1
        free = target.with_name(f"{target.stem}-{number}{target.suffix}")
    return free


class _Packed:
    """A set read as the archive that it becomes."""

    def __init__(self, file_set: FoundSet) -> None:
        self._parts = file_set.packed()

    def read(self, _size: int = -1) -> bytes:
        """The next piece, of any length; b"" at the end."""
        return next((part for part in self._parts if part), b"")


def _remove_empty_folders(case: Path, file_set: FoundSet) -> None:
    """Remove folders that a set left empty, the deepest first; never that of the case."""
    folders = {above for file in file_set.files for above in file.parents if case in above.parents}
    for folder in sorted(folders, key=lambda folder_path: len(folder_path.parts), reverse=True):
        with suppress(OSError):  # something else is in it
            folder.rmdir()


def _is_file(path: Path) -> bool:
    """Return whether this is a regular file, no link, and not a file in the course of being
    written."""
    hidden = path.name.startswith(".") or path.suffix.lower() in UNFINISHED
    return not hidden and not path.is_symlink() and path.is_file()
