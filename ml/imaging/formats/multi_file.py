"""Slides of several files: MRXS with its folder, VMS and VMU with theirs, a DICOM series.

They are uploaded as one ZIP archive. A set has a separate folder, and its index may name files of
that folder only: a path out of it is rejected before OpenSlide reads the index.
"""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path

from ml.errors import CorruptFileError, UnsupportedFormatError
from ml.imaging.formats.archives import unpack
from ml.imaging.formats.slide_index import (
    incomplete,
    index_of,
    missing_from,
    names_absolute_paths,
    read_index,
)
from ml.imaging.formats.sniff import INDEXES, SETS, is_dicom_slide, read_head
from ml.types import Progress, no_progress

_SERIES_UID = 0x0020000E  # tag of the attribute; nothing after it is read
_UPWARDS = re.compile(rb"\.\.[/\\]|[/\\]\.\.|=\s*\.\.")
"""Upward paths, which key files cannot escape."""


def unpack_set(path: Path, folder: Path, progress: Progress = no_progress) -> Path:
    """Unpack an archive into ``folder`` and return the file to open.

    Raises:
        UnsupportedFormatError: no slide of several files, more than one, or one that names files
            outside.
        CorruptFileError, TooLargeError: as ``ml.imaging.formats.archives.unpack``.
    """
    unpack(path, folder, progress)
    files = sorted(entry for entry in folder.rglob("*") if entry.is_file())
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
    if len({uid for uid in map(_series_of, series) if uid}) > 1:
        raise UnsupportedFormatError(
            "the ZIP archive holds several DICOM series; upload each in an archive of its own"
        )
    return series[0]


def check_index(path: Path) -> None:
    """Reject a slide whose index names files outside its folder, or missing files.

    Raises:
        UnsupportedFormatError: A file is outside its folder, or a file of the set is a link.
        CorruptFileError: The index or a file that it names is missing, or it is far too long.
    """
    index = index_of(path)
    if not index.is_file():
        raise CorruptFileError(incomplete(path, [index]))
    if index.is_symlink() or index.parent.is_symlink():
        raise UnsupportedFormatError("the slide's index is a link; expected a plain file")
    sections = read_index(path)  # also checks the length
    if _UPWARDS.search(index.read_bytes()) or names_absolute_paths(path, sections):
        raise UnsupportedFormatError("the slide's index names files outside its own folder")
    if missing := missing_from(path):
        raise CorruptFileError(incomplete(path, missing))


def is_index(path: Path) -> bool:
    """Return whether a file is by its name the index of a slide of several files, and check it."""
    if path.suffix.lower() not in INDEXES or not os.access(path, os.R_OK):
        return False
    check_index(path)
    return True


def _series_of(path: Path) -> str:
    """UID of the series of an object, "" of a label or an overview, which may have another."""
    # Imported here: it takes as long as all else that a child loads to open a file.
    from pydicom.errors import InvalidDicomError
    from pydicom.filereader import read_partial

    try:
        with path.open("rb") as file:
            head = read_partial(file, stop_when=lambda tag, *_: tag > _SERIES_UID)
        is_secondary = not {"LABEL", "OVERVIEW"}.isdisjoint(head.get("ImageType") or ())
        return "" if is_secondary else str(head.get("SeriesInstanceUID", ""))
    except (InvalidDicomError, AttributeError, EOFError, ValueError, struct.error) as error:
        raise CorruptFileError("a DICOM object of the archive is truncated or damaged") from error
