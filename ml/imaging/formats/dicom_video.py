"""DICOM objects that hold a video: the stream as it was coded, in one fragment or in several.

AVC and HEVC come within MP4 or MPEG-TS (DICOM PS3.5, 8.2.7 to 8.2.11), MPEG-2 as it is or within
one of its own containers, so that what is unwrapped is an ordinary video file.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

from ml.errors import CorruptFileError, UnsupportedFormatError
from ml.imaging.formats.dicom_items import UNDEFINED, fragment_bytes
from ml.imaging.formats.frame_groups import (
    copy_bytes,
    encoding_of,
    has_groups,
    pydicom_errors_as_corrupt,
    read_head,
    read_rest,
    skip_groups,
)

_SYNTAX = re.compile(rb"\x02\x00\x10\x00UI..1\.2\.840\.10008\.1\.2\.4\.10[0-8](\.1)?\0", re.DOTALL)
"""TransferSyntaxUID of MPEG-2, AVC and HEVC, also those that may be in several fragments."""
_DAMAGED = "the DICOM video is truncated or damaged"
_BARE = b"\0\0\0\1"
"""First bytes of an AVC or HEVC stream without a container."""


def is_dicom_video(head: bytes) -> bool:
    """Return whether the first bytes of a file are a DICOM object with a coded video."""
    return head[128:132] == b"DICM" and _SYNTAX.search(head) is not None


def fragments_of(path: Path) -> list[tuple[int, int]]:
    """Parts of the stream in the file, each as (start, bytes).

    Raises:
        CorruptFileError, TooLargeError: cut, damaged, or with more attributes than any video.
    """
    with path.open("rb") as file, pydicom_errors_as_corrupt():
        data = read_head(file)
        if has_groups(file):
            skip_groups(file, is_implicit=False, frames=int(data.get("NumberOfFrames") or 1))
            read_rest(file, is_implicit=False, encoding=encoding_of(data))
        head = file.read(12)
        if len(head) < 12 or struct.unpack("<I", head[8:])[0] != UNDEFINED:
            raise CorruptFileError(_DAMAGED)
        fragments, size = list[tuple[int, int]](), path.stat().st_size
        while (item := fragment_bytes(file.read(8), damage=_DAMAGED)) is not None:
            fragments.append((file.tell(), item))
            if file.tell() + item > size:
                raise CorruptFileError(_DAMAGED)
            file.seek(item, 1)
    if len(fragments) < 2:  # the first says where frames begin
        raise CorruptFileError("the DICOM video holds no stream")
    return fragments[1:]


def unwrap_video(path: Path, target: Path) -> Path:
    """Write the stream of a DICOM video to a separate file.

    Raises:
        UnsupportedFormatError: AVC or HEVC in no container, so that frames have no times.
        CorruptFileError, TooLargeError: as ``fragments_of``.
    """
    with path.open("rb") as file, target.open("wb") as out:
        for start, size in fragments_of(path):
            file.seek(start)
            copy_bytes(file, out, size)
    with target.open("rb") as file:
        if file.read(len(_BARE)) == _BARE:
            raise UnsupportedFormatError(
                "the DICOM video holds a bare stream of AVC or HEVC, whose frames have no times; "
                "expected MP4 or MPEG-TS inside it, as the standard requires"
            )
    return target
