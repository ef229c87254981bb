"""Detection of truncated video files: a container states more than the file holds.

Counts and durations in headers are estimates of the writer; the sizes of the outermost elements are
not, since anything after a wrong size is unreadable.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

from ml.imaging.formats.sniff import read_head, video_format

_HEAD_BYTES = 32  # of an element: identifier and size
_MAX_ELEMENTS = 100_000
_EBML = (b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67")
"""Header and segment (RFC 8794, RFC 9559)."""
_BOXES = (b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"mfra", b"sidx", b"free", b"skip", b"wide")
_ASF_DATA = bytes.fromhex("3626b2758e66cf11a6d900aa0062ce6c")
_ASF_HEADER = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")


def is_cut(path: str | Path) -> bool:
    """Return whether an outermost element of a video file ends beyond the file."""
    size_of = _SIZES.get(video_format(read_head(path)))
    if size_of is None:
        return False
    end, at = Path(path).stat().st_size, 0
    with Path(path).open("rb") as file:
        for _ in range(_MAX_ELEMENTS):
            file.seek(at)
            size = size_of(file.read(_HEAD_BYTES))
            if size is None or at >= end:
                return False
            at += size
            if at > end:
                return True
    return False


def _box_size(head: bytes) -> int | None:
    """Size of an ISO base media box (ISO/IEC 14496-12, 4.2); None if it is none, or the last."""
    if len(head) < 16 or head[4:8] not in _BOXES:
        return None
    size = int.from_bytes(head[:4], "big")
    if size == 1:
        size = int.from_bytes(head[8:16], "big")
    return size if size >= 8 else None


def _riff_size(head: bytes) -> int | None:
    size = int.from_bytes(head[4:8], "little")
    return 8 + size if head[:4] == b"RIFF" and 0 < size < 0xFFFFFFFF else None


def _asf_size(head: bytes) -> int | None:
    if len(head) < 24 or head[:16] not in (_ASF_HEADER, _ASF_DATA):
        return None
    size: int = struct.unpack_from("<Q", head, 16)[0]
    return size if size >= 24 else None


def _ebml_size(head: bytes) -> int | None:
    """Size of a Matroska element; None where it is unknown, as in a live recording."""
    if head[:4] not in _EBML or len(head) < 12 or not head[4]:
        return None
    width = 9 - head[4].bit_length()
    size = int.from_bytes(head[4 : 4 + width], "big") - (1 << 7 * width)
    return 4 + width + size if size != (1 << 7 * width) - 1 else None


_SIZES: dict[str, Callable[[bytes], int | None]] = {
    "mov": _box_size,
    "avi": _riff_size,
    "asf": _asf_size,
    "matroska": _ebml_size,
}
