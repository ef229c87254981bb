"""Slides of several files in a folder: which files belong together, and what is missing.

No decoder runs here: names are compared, the first bytes of files, and the lines of an index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ml.errors import CorruptFileError
from ml.imaging.formats.archives import MAX_DEPTH, pack
from ml.imaging.formats.slide_index import (
    files_named,
    incomplete,
    is_there,
    missing_from,
    read_index,
)
from ml.imaging.formats.sniff import INDEXES, is_dicom_slide, read_head
from ml.imaging.formats.zarr_store import GROUP_FILES


@dataclass(frozen=True, slots=True)
class FoundSet:
    """A slide of several files.

    Attributes:
        main: the file to open, or the folder of a DICOM series or OME-Zarr.
        files: all files; the index, which names the others, comes last.
        missing: a sentence that says what is missing, else "".
    """

    main: Path
    files: tuple[Path, ...]
    missing: str = ""

    def packed(self) -> Iterator[bytes]:
        """Pack the set as a ZIP archive, the same for the same files. Raises ``OSError``."""
        base = self.main.parent
        return pack(
            sorted((file.relative_to(base).as_posix(), file) for file in self.files),
        )


def sets_in(folder: Path) -> list[FoundSet]:
    """Find multi-file slides in a folder and its subfolders.

    A DICOM series or OME-Zarr is found only in a subfolder of its own.

    Raises:
        OSError: a file or folder cannot be read.
    """
    paths = sorted(_files(folder))
    files = [path for path in paths if path.is_file()]
    sets = [FoundSet(path, tuple(sorted(_members(path)))) for path in paths if path.is_dir()]
    for main in (file for file in files if file.suffix.lower() in INDEXES):
        if main.suffix.lower() == ".mrxs":
            inner = main.with_suffix("")
            sets.append(_set_of_index(main, [file for file in files if inner in file.parents]))
        else:
            sets.append(_set_of_index(main, _files_of_index(main)))
    indexed = {file for found_set in sets for file in found_set.files}
    series: dict[Path, list[Path]] = {}
    for file in files:
        if file.parent != folder and file not in indexed and is_dicom_slide(read_head(file)):
            series.setdefault(file.parent, []).append(file)
    return sets + [FoundSet(main, tuple(objects)) for main, objects in series.items()]


def _files(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Visible files in visible folders, without links; for a Zarr its folder."""
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


def _files_of_index(main: Path) -> list[Path]:
    try:
        indexed = files_named(main, read_index(main), include_optional=True)
    except CorruptFileError:
        return []  # the reader that opens it reports the error
    within = main.parent.resolve()
    return [
        file
        for file in indexed
        if is_there(file) and not file.is_symlink() and within in file.resolve().parents
    ]


def _set_of_index(main: Path, members: list[Path]) -> FoundSet:
    try:
        missing = missing_from(main)
    except CorruptFileError:
        missing = []
    return FoundSet(main, (*members, main), incomplete(main, missing) if missing else "")
