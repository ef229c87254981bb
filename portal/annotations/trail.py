"""What an import needs to resume: the ids that it met, and where in the document it was.

A file beside the document, one record a feature. It is written before the part that it speaks of
is committed, so it may be ahead of the database, never behind; what is ahead is cut off. Where it
was lost, the document is read from its beginning.
"""

from __future__ import annotations

import struct
import uuid
from pathlib import Path

from portal.annotations.documents import ResumePoint

_RECORD = struct.Struct("<16sQ?")  # id, place after the feature: byte, whether in an object
_NONE = bytes(16)  # the feature was refused before it had an id
_AT_ONCE = 4096  # records read together: 100 KB


class Trail:
    """The trail of an import that dealt with this many features.

    Attributes:
        goes_on: what was done before need not be read again.
        seen: by id, the first feature that has it.
        place: where to continue; None if the format has no such places.
    """

    def __init__(self, path: Path, done: int) -> None:
        self._ids: dict[int, bytes] = {}
        self.seen: dict[int, int] = {}
        self.place: ResumePoint | None = None
        self._file = path.open("r+b" if path.exists() else "w+b")
        is_whole = path.stat().st_size >= done * _RECORD.size
        self.goes_on = done > 0 and is_whole
        self._written = done if self.goes_on else 0
        if self.goes_on:
            self._read(done)
        self._file.truncate(self._written * _RECORD.size)
        self._file.seek(0, 2)

    def __enter__(self) -> Trail:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def note(self, index: int, roi_id: uuid.UUID) -> None:
        """A feature of the part that is being read, and the id that its ROI would have."""
        self._ids[index] = roi_id.bytes

    def write(self, through: int, place: ResumePoint | None) -> None:
        """A part was read: all features before this index, and where the document continues."""
        at_byte, in_object = (place.at_byte, place.in_object) if place else (0, False)
        ids = (self._ids.get(index, _NONE) for index in range(self._written, through))
        self._file.writelines(_RECORD.pack(one, at_byte, in_object) for one in ids)
        self._file.flush()
        self._written = max(self._written, through)
        self._ids.clear()

    def _read(self, count: int) -> None:
        last = b""
        for start in range(0, count, _AT_ONCE):
            data = self._file.read(_RECORD.size * min(_AT_ONCE, count - start))
            for index, (found, _, _) in enumerate(_RECORD.iter_unpack(data), start):
                if found != _NONE:
                    self.seen.setdefault(int.from_bytes(found), index)
            last = data[-_RECORD.size :]
        _, at_byte, in_object = _RECORD.unpack(last)
        self.place = ResumePoint(at_byte, in_object) if at_byte else None
