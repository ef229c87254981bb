"""Slides that are several files: MRXS with its folder, VMS and VMU with theirs, a DICOM series.

They arrive as one ZIP archive. A set lies in a folder that holds nothing else, and its index names
files of that folder alone: a path up out of it is refused before OpenSlide reads the index.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ml.errors import CorruptFileError, UnsupportedFormatError
from ml.imaging.formats.archives import unpack
from ml.imaging.formats.sniff import INDEXES, SETS, is_dicom_slide, read_head
from ml.types import Progress, no_progress

_MRXS_INDEX = "Slidedat.ini"
_MAX_INDEX_BYTES = 4 * 1024 * 1024  # a real one has some hundred kilobytes
_UPWARDS = re.compile(rb"\.\.[/\\]|[/\\]\.\.|=\s*\.\.")
"""Literal in every spelling that leads up: no escape of a key file makes a dot or a slash."""


def unpack_set(path: Path, folder: Path, progress: Progress = no_progress) -> Path:
    """Unpack an archive into ``folder`` and return the file to open.

    Raises:
        UnsupportedFormatError: no slide of several files, more than one, or one that names files
            outside.
        CorruptFileError, TooLargeError: as ``ml.imaging.formats.archives.unpack``.
    """
    unpack(path, folder, progress)
    files = sorted(found for found in folder.rglob("*") if found.is_file())
    indexes = [file for file in files if file.suffix.lower() in INDEXES]
    series = [file for file in files if is_dicom_slide(read_head(file))]
    if len(indexes) > 1 or (indexes and series) or len({file.parent for file in series}) > 1:
        raise UnsupportedFormatError(
            "the ZIP archive holds several slides; upload each in an archive of its own"
        )
    if not indexes and not series:
        raise UnsupportedFormatError(f"the ZIP archive holds no slide; expected {SETS}")
    if indexes:
        check_index(indexes[0])
        return indexes[0]
    return series[0]


def check_index(path: Path) -> None:
    """Refuse a slide whose index names files outside its folder.

    Raises:
        UnsupportedFormatError: it does, or a link stands in for a file of the set.
        CorruptFileError: the index is missing or far too long.
    """
    index = path
    if path.suffix.lower() == ".mrxs":
        index = path.with_suffix("") / _MRXS_INDEX
    if not index.is_file():
        raise CorruptFileError(
            f"the slide is incomplete: {_MRXS_INDEX} is missing; "
            "upload the .mrxs file and its folder in one archive"
        )
    if index.is_symlink() or index.parent.is_symlink():
        raise UnsupportedFormatError("the slide's index is a link; expected a plain file")
    with index.open("rb") as file:
        text = file.read(_MAX_INDEX_BYTES + 1)
    if len(text) > _MAX_INDEX_BYTES:
        raise CorruptFileError(f"the slide's index has more than {_MAX_INDEX_BYTES:,} bytes")
    if _UPWARDS.search(text):
        raise UnsupportedFormatError("the slide's index names files outside its own folder")


def is_index(path: Path) -> bool:
    """Whether a file by its name is the index of a slide of several files, and a checked one."""
    if path.suffix.lower() not in INDEXES or not os.access(path, os.R_OK):
        return False
    check_index(path)
    return True
