"""Resume data of an import: ids of processed features and position in the document.

A file next to the document, one record per feature. It is written before the part's transaction
commits, so it may be ahead of the database but never behind; surplus records are truncated. If it
is missing, the document is read from its beginning.
"""

from __future__ import annotations

import struct
import uuid
from pathlib import Path

from portal.annotations.documents import ResumePoint

_RECORD = struct.Struct("<16s8sQ?")
"""Id and content, and the place after the feature: byte, whether in an object."""
_NONE = bytes(16)  # the feature was refused before it had an id
_CONTENT_BYTES = 8  # of a hash: collisions are negligible among features of the same id
_AT_ONCE = 4096  # records read together: 140 KB


class SeenIds:
    """Ids read so far from a document: the first feature with each id, and a hash of its content.

    A million of them are held in memory: one number each for the feature and its content.
    """

    def __init__(self) -> None:
        self._found: dict[int, int] = {}

    def first(self, roi_id: uuid.UUID, content: uuid.UUID, index: int) -> tuple[int, bool]:
        """The first feature with an id, this one if there was none, and whether it was the same.

        Args:
            content: follows from what the feature is, whatever its id.
        """
        return self.first_packed(roi_id.int, content.bytes[:_CONTENT_BYTES], index)

    def first_packed(self, roi_id: int, content: bytes, index: int) -> tuple[int, bool]:
        """Apply ``first`` to the values of a record."""
        packed = int.from_bytes(index.to_bytes(4) + content)
        first = self._found.setdefault(roi_id, packed).to_bytes(4 + _CONTENT_BYTES)
        return int.from_bytes(first[:4]), first[4:] == content


class ImportProgress:
    """Progress file of an import that has processed ``done`` features.

    Attributes:
        can_resume: The document can be read from ``place`` on.
        seen: Ids of the processed features.
        place: Position to continue from; None if the format does not support it.
    """

    def __init__(self, path: Path, record_count: int) -> None:
        self._ids: dict[int, tuple[bytes, bytes]] = {}
        self.seen = SeenIds()
        self.place: ResumePoint | None = None
        self._file = path.open("r+b" if path.exists() else "w+b")
        is_whole = path.stat().st_size >= record_count * _RECORD.size
        self.can_resume = record_count > 0 and is_whole
        self._written = record_count if self.can_resume else 0
        if self.can_resume:
            self._read(record_count)
        self._file.truncate(self._written * _RECORD.size)
        self._file.seek(0, 2)

    def __enter__(self) -> ImportProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def note(self, index: int, roi_id: uuid.UUID, content: uuid.UUID) -> None:
        """Record the id and content hash of a feature of the part that is being read."""
        self._ids[index] = (roi_id.bytes, content.bytes[:_CONTENT_BYTES])

    def write(self, through: int, place: ResumePoint | None) -> None:
        """Record that all features before ``through`` were read, and where the document goes on."""
        at_byte, in_object = (place.at_byte, place.in_object) if place else (0, False)
        ids = (self._ids.get(index, (_NONE, b"")) for index in range(self._written, through))
        self._file.writelines(_RECORD.pack(*record, at_byte, in_object) for record in ids)
        self._file.flush()
        self._written = max(self._written, through)
        self._ids.clear()

    def _read(self, count: int) -> None:
        """Read the first ``count`` records: ids seen, and the position to resume from."""
        last = b""
        for start in range(0, count, _AT_ONCE):
            data = self._file.read(_RECORD.size * min(_AT_ONCE, count - start))
            for index, (packed_id, content, _, _) in enumerate(_RECORD.iter_unpack(data), start):
                if packed_id != _NONE:
                    self.seen.first_packed(int.from_bytes(packed_id), content, index)
            last = data[-_RECORD.size :]
        *_, at_byte, in_object = _RECORD.unpack(last)
        self.place = ResumePoint(at_byte, in_object) if at_byte else None
