"""Slides of several files in a folder: which files belong together, and what is missing.

No decoder runs here: names are compared, the first bytes of files, and the lines of an index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ml.errors import CorruptFileError
from ml.imaging.formats.archives import MAX_DEPTH, pack
from ml.imaging.formats.indexes import files_named, incomplete, is_there, missing_from, read_index
from ml.imaging.formats.sniff import INDEXES, is_dicom_slide, read_head
from ml.imaging.formats.zarr_store import GROUP_FILES


@dataclass(frozen=True, slots=True)
class FoundSet:
    """A slide of several files.

    Attributes:
        main: the file that is opened; of a DICOM series and of an OME-Zarr the folder.
        files: all of them; the one that names the others comes last.
        missing: a sentence where it is not complete, else "".
    """

    main: Path
    files: tuple[Path, ...]
    missing: str = ""

    def packed(self) -> Iterator[bytes]:
        """One ZIP archive of the set, the same for the same files. Raises ``OSError``."""
        base = self.main.parent
        return pack(
            sorted((file.relative_to(base).as_posix(), file) for file in self.files),
        )


def sets_in(folder: Path) -> list[FoundSet]:
    """The sets in a folder and in those below it. A DICOM series and an OME-Zarr have a folder of
    their own below it.

    Raises:
        OSError: something in it cannot be read.
    """
    seen = sorted(_files(folder))
    files = [path for path in seen if path.is_file()]
    found = [FoundSet(path, tuple(sorted(_members(path)))) for path in seen if path.is_dir()]
    for main in (file for file in files if file.suffix.lower() in INDEXES):
        if main.suffix.lower() == ".mrxs":
            inner = main.with_suffix("")
            found.append(_indexed(main, [file for file in files if inner in file.parents]))
        else:
            found.append(_indexed(main, _named(main)))
    taken = {file for one in found for file in one.files}
    series: dict[Path, list[Path]] = {}
    for file in files:
        if file.parent != folder and file not in taken and is_dicom_slide(read_head(file)):
            series.setdefault(file.parent, []).append(file)
    return found + [FoundSet(main, tuple(objects)) for main, objects in series.items()]


def _files(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Plain files that are not hidden and lie in no hidden folder; links are not followed. A Zarr
    comes as its folder.
    """
    for path in folder.iterdir():
        if path.name.startswith(".") or path.is_symlink():
            continue
        if path.is_file() or any((path / name).is_file() for name in GROUP_FILES):
            yield path
        elif path.is_dir() and depth < MAX_DEPTH:
            yield from _files(path, depth + 1)


def _members(zarr: Path, depth: int = 0) -> Iterator[Path]:
    """Files of a Zarr; of hidden ones only those in ``GROUP_FILES``."""
    for path in zarr.iterdir():
        if path.is_symlink() or (path.name.startswith(".") and path.name not in GROUP_FILES):
            continue
        if path.is_file():
            yield path
        elif depth < MAX_DEPTH:
            yield from _members(path, depth + 1)


def _named(main: Path) -> list[Path]:
    try:
        named = files_named(main, read_index(main), all_of_them=True)
    except CorruptFileError:
        return []  # whoever opens it says why
    within = main.parent.resolve()
    return [
        file
        for file in named
        if is_there(file) and not file.is_symlink() and within in file.resolve().parents
    ]


def _indexed(main: Path, others: list[Path]) -> FoundSet:
    try:
        missing = missing_from(main)
    except CorruptFileError:
        missing = []
    return FoundSet(main, (*others, main), incomplete(main, missing) if missing else "")
