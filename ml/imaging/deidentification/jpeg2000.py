"""JPEG 2000: notes in boxes and in the codestream are overwritten in place."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from ml.imaging.deidentification.overwrite import write_at, zero
from ml.imaging.deidentification.result import DeidentificationResult
from ml.imaging.formats.iso_boxes import kind_name
from ml.imaging.formats.jpeg2000 import COMMENT, END, HEADER, STREAM, boxes, segments, stream_of

_SHOWN = frozenset(
    {b"jP  ", b"ftyp", b"rreq", b"free", HEADER, STREAM}
    | {b"ihdr", b"bpcc", b"colr", b"pclr", b"cmap", b"cdef", b"res "}
)
"""Boxes needed to display the picture."""
_PROGRAM = re.compile(rb"\x00\x01(Created by OpenJPEG version|Kakadu-v?) ?[0-9.]+\x00?")


def clean_jpeg2000(source: Path, target: Path, cleaned: DeidentificationResult) -> None:
    """Turn boxes with notes into free space, and blank comments between the coded tiles.

    Raises:
        CorruptFileError: cut or damaged.
    """
    shutil.copyfile(source, target)
    with target.open("r+b") as file:
        stream = stream_of(file)
        for box in list(boxes(file)):
            if box.kind in _SHOWN:
                continue
            cleaned.add_removed(f"JPEG 2000 box {kind_name(box.kind)}")
            write_at(file, box.at + 4, b"free")
            zero(file, box.body, box.end)
        for segment in segments(file, stream):
            file.seek(segment.body)
            if segment.marker == END and file.read(stream.end - segment.end).strip(b"\0"):
                cleaned.add_removed("data after the image")
                zero(file, segment.end, stream.end)
            if segment.marker != COMMENT:
                continue
            comment = file.read(segment.end - segment.body)
            if comment[2:].strip(b"\0 ") and not _PROGRAM.fullmatch(comment):
                cleaned.add_removed("JPEG 2000 comment")
                zero(file, segment.body + 2, segment.end)
