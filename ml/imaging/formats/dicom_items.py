"""Items of DICOM's sequences and of coded pixels: their heads (PS3.5, 7.5 and A.4)."""

from __future__ import annotations

import struct

from ml.errors import CorruptFileError

UNDEFINED = 0xFFFFFFFF  # a length that is not stated: a delimiter ends it (PS3.5, 7.1)
ITEM, END = b"\xfe\xff\x00\xe0", b"\xfe\xff\xdd\xe0"
ITEM_HEAD = struct.Struct("<4sI")
"""Tag, and number of bytes that follow."""
END_HEAD = ITEM_HEAD.pack(END, 0)
ITEM_END_HEAD = ITEM_HEAD.pack(b"\xfe\xff\x0d\xe0", 0)


def fragment_bytes(head: bytes, *, damage: str) -> int | None:
    """Number of bytes of coded pixels in an item, from its head; None after the last item.

    Args:
        damage: Message of the error.
    Raises:
        CorruptFileError: The head is cut, of another kind, or of undefined length.
    """
    if head == END_HEAD:
        return None
    tag, length = ITEM_HEAD.unpack(head) if len(head) == ITEM_HEAD.size else (b"", 0)
    if tag != ITEM or length == UNDEFINED:
        raise CorruptFileError(damage)
    return int(length)
