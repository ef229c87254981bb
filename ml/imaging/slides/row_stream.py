"""A picture of libvips made of rows of pixels, from top to bottom, in bounded memory.

libvips takes the rows as a stream of PNG, which is never a file: its wheels read no plainer format
from a stream.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyvips

from ml.types import ImageU8

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PIECE_ROWS = 64  # of a PNG's chunk, whose length has 31 bits


@contextmanager
def image_of_rows(size_px: tuple[int, int], rows: Iterable[ImageU8]) -> Iterator[Any]:
    """Picture (``pyvips.Image``) to be read once from top to bottom, within the block.

    Args:
        size_px: (width, height).
        rows: (n, W, 3) uint8 each, of any n, H rows together.
    Raises:
        Exception: What ``rows`` raises, in place of the error of libvips that follows it.
    """
    feed = _Feed(_png(size_px, rows))
    stream = pyvips.SourceCustom()
    stream.on_read(feed.read)
    try:
        yield pyvips.Image.pngload_source(stream, access="sequential", fail_on="truncated")
    except Exception:
        if feed.error is not None:
            raise feed.error from None
        raise


class _Feed:
    """Source of bytes for libvips, with the error that ended it."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._left = pieces, memoryview(b"")
        self.error: Exception | None = None

    def read(self, size: int) -> bytes:
        """Read at most ``size`` bytes; b"" at the end."""
        try:
            while not self._left:
                self._left = memoryview(next(self._pieces))
        except StopIteration:
            return b""
        except Exception as error:  # noqa: BLE001 - carried out of a C callback, raised there
            self.error = error
            return b""
        data, self._left = bytes(self._left[:size]), self._left[size:]
        return data


def _png(size_px: tuple[int, int], rows: Iterable[ImageU8]) -> Iterator[bytes]:
    width, height = size_px
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    yield _SIGNATURE + _part(b"IHDR", head)
    packer = zlib.compressobj(0)
    for row in rows:
        for top in range(0, len(row), _PIECE_ROWS):
            lines = row[top : top + _PIECE_ROWS].reshape(-1, 3 * width)
            data = packer.compress(np.pad(lines, ((0, 0), (1, 0))).tobytes())  # no filter
            if data:
                yield _part(b"IDAT", data)
    yield _part(b"IDAT", packer.flush()) + _part(b"IEND", b"")


def _part(kind: bytes, body: bytes) -> bytes:
    crc = zlib.crc32(body, zlib.crc32(kind))
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", crc)
