"""A folder that scanners write to: what has arrived whole in it is received as from a page.

``<folder>/<accession>/<file>`` becomes a slide or video of the case with that accession number,
which is made where the lab has none. What was received is moved below ``.received``, what was
refused below ``.refused`` with a text beside it that says why. Nothing is deleted here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

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
"""How programs call a file while they write it; it is renamed when it is whole."""
_PASSING = (StorageFullError, TooManyRequestsError, UnavailableError)


class WatchOutcome(Enum):
    """What became of a file."""

    RECEIVED = "received"
    KNOWN = "known"  # the case has these bytes already
    REFUSED = "refused"
    LATER = "later"  # no room, or a part of the portal does not answer: the file stays


@dataclass(frozen=True, slots=True)
class Taken:
    """A file that was looked at, by its path below the folder, and why where it is not in."""

    path: Path
    outcome: WatchOutcome
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Look:
    """A file as it was seen: it is whole when nothing of this changes for a while."""

    size: int
    changed_ns: int
    since: float


class FolderWatch:
    """Looks at a folder again and again; remembers what was still growing."""

    def __init__(self, folder: Path, *, lab: Lab, user: User, settle_s: float) -> None:
        """``settle_s``: for so long a file has to stay as it is before it counts as whole."""
        self.folder, self.lab, self.user, self.settle_s = folder, lab, user, settle_s
        self._seen: dict[Path, _Look] = {}

    def look(self, now_s: float) -> Iterator[Taken]:
        """Receive what is whole by now, one file after the other.

        Args:
            now_s: of a clock that only goes forward.
        Raises:
            OSError: the folder cannot be read or written.
            ForbiddenError: the person may not write in this lab any more.
        """
        seen: dict[Path, _Look] = {}
        for path in self._files():
            try:
                about = path.stat()
            except FileNotFoundError:
                continue  # taken away or renamed since it was listed
            last = self._seen.get(path)
            if last is None or (last.size, last.changed_ns) != (about.st_size, about.st_mtime_ns):
                last = _Look(about.st_size, about.st_mtime_ns, now_s)
            seen[path] = last
        self._seen = seen
        for path in [path for path, one in seen.items() if now_s - one.since >= self.settle_s]:
            yield self._take(path)

    def stray(self) -> list[str]:
        """Names of files that lie in no folder of a case: nobody knows whose they are."""
        return sorted(path.name for path in self.folder.iterdir() if _is_file(path))

    def _files(self) -> Iterator[Path]:
        for case in sorted(self.folder.iterdir()):
            if not case.name.startswith(".") and case.is_dir() and not case.is_symlink():
                yield from (path for path in sorted(case.iterdir()) if _is_file(path))

    def _take(self, path: Path) -> Taken:
        shown = path.relative_to(self.folder)
        try:
            case = self._case(path.parent.name)
            with path.open("rb") as file:
                item = item_receive(case=case, file=file, filename=path.name, user=self.user)
        except _PASSING as error:
            return Taken(shown, WatchOutcome.LATER, error.message)
        except PortalError as error:
            if error.status == 403:
                raise
            self._away(path, REFUSED, error.message)
            return Taken(shown, WatchOutcome.REFUSED, error.message)
        except OSError as error:
            if isinstance(error, FileNotFoundError) or is_disk_full(error):
                return Taken(shown, WatchOutcome.LATER, str(error))
            raise
        self._away(path, RECEIVED)
        return Taken(shown, WatchOutcome.RECEIVED if item.is_new else WatchOutcome.KNOWN)

    def _case(self, accession: str) -> Case:
        """The lab's case; made where it has none, or none but one in the bin."""
        own = Case.objects.owned_by(self.user).filter(lab=self.lab, accession=accession)
        found = own.first()
        if found is not None:
            return found
        try:
            return case_create(lab=self.lab, user=self.user, accession=accession)
        except ConflictError:
            return own.get()  # made by somebody else meanwhile

    def _away(self, path: Path, where: str, reason: str = "") -> None:
        """Move a file out of sight, beside what has its name already."""
        target = self.folder / where / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        number = 1
        while target.exists():
            number += 1
            target = target.with_name(f"{path.stem}-{number}{path.suffix}")
        path.rename(target)
        if reason:
            target.with_name(f"{target.name}.reason.txt").write_text(f"{reason}\n")
        self._seen.pop(path, None)


def _is_file(path: Path) -> bool:
    """A file of its own that is not being written under another name; never what a link names."""
    hidden = path.name.startswith(".") or path.suffix.lower() in UNFINISHED
    return not hidden and not path.is_symlink() and path.is_file()
