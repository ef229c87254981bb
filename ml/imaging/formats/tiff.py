"""A small reader of TIFF directories: enough to find stored tiles and to refuse false claims.

Classic TIFF and BigTIFF, both byte orders. Reads only what the file really holds: no value is
believed before it is compared with the file's size. Pixels are not decoded here.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ml.errors import CorruptFileError, TooLargeError, UnsupportedFormatError
from ml.imaging.limits import (
    MAX_ICC_BYTES,
    MAX_TAG_BYTES,
    MAX_TAGS_BYTES,
    require_slide_size,
    require_tile_size,
)

MAX_DIRECTORIES = 4_096  # a slide has a dozen; ends a chain that was made to be long
MAX_ENTRIES = 4_096  # a page has some thirty

JPEG, YCBCR, RGB = 7, 6, 2
"""Values of the tags Compression (7) and PhotometricInterpretation that pass through."""
APERIO_JPEG2000 = (33003, 33005)
"""Values of the tag Compression in SVS files, in YCbCr and in RGB; only OpenSlide reads these."""
TRANSPOSED = (5, 6, 7, 8)
"""Values of the tag Orientation by which stored rows are columns of the picture."""
PLANES_APART = 2
"""Value of the tag PlanarConfiguration by which each sample has tiles or strips of its own."""

_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC = 256, 257, 258, 259, 262
_SAMPLES, _X_RESOLUTION, _Y_RESOLUTION, _PLANAR, _RESOLUTION_UNIT = 277, 282, 283, 284, 296
_TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _TILE_COUNTS = 322, 323, 324, 325
_STRIP_OFFSETS, _STRIP_COUNTS, _JPEG_TABLES, _ICC = 273, 279, 347, 34675
_SUBFILE, _DESCRIPTION, SUB_IFDS, _ORIENTATION, _SAMPLE_FORMAT = 254, 270, 330, 274, 339
_MIN_VALUE, _MAX_VALUE, _S_MIN_VALUE, _S_MAX_VALUE = 280, 281, 340, 341
"""Tags of TIFF 6.0; JPEGTables of its Technical Note 2, ICC as the ICC specification says."""

_DTYPES = {1: "u1", 2: "u1", 3: "u2", 4: "u4", 5: "u4", 6: "i1", 7: "u1", 8: "i2", 9: "i4"} | {
    10: "i4", 11: "f4", 12: "f8", 13: "u4", 16: "u8", 17: "i8", 18: "u8"
}  # fmt: skip
_PER_VALUE = {5: 2, 10: 2}  # rationals are two numbers
_POSITIONS = (3, 4, 13, 16, 18)
"""Types that a list of tiles may have: SHORT, LONG, IFD, LONG8, IFD8."""
_LISTS = (_TILE_OFFSETS, _TILE_COUNTS, _STRIP_OFFSETS, _STRIP_COUNTS, SUB_IFDS)
_NDPI = 65420
"""Hamamatsu's mark of the format; its files keep 64-bit offsets in a classic header."""
_MAX_TABLES_BYTES = 64 * 1024  # quantisation and Huffman tables have some 600 bytes
_MAX_BITS = 16  # samples of a pixel
_MAX_DESCRIPTION_BYTES = 2**20  # OME's XML of some thousand planes


@dataclass(frozen=True, slots=True, eq=False)
class TiffDirectory:
    """One image of a TIFF file.

    Attributes:
        offset: of the directory in the file.
        page: number in the main chain; of a SubIFD, that of the page that leads to it.
        sub_ifd: number among the SubIFDs of its page, -1 for the page itself.
        subfile: bits of the tag NewSubfileType: 1 reduced, 2 a page, 4 a mask.
        description: text stored with the pixels, up to 1 MiB of it. It may name somebody.
        tile_width_px, tile_height_px: 0 if the image is stored in strips.
        bits: bits per sample, one number per sample.
        offsets, counts: (N,) uint64, where each tile (or strip) lies; count 0 is a missing tile.
        x_resolution, y_resolution: pixels per ``resolution_unit`` (1 none, 2 inch, 3 cm) or None.
        sample_format: 1 unsigned, 2 signed, 3 floating point, 4 undefined.
        min_value, max_value: what the file states of its samples, None where it states nothing.
        orientation: how the stored pixels are turned, 1 (upright) to 8; 0 if the file does not say.
    """

    offset: int
    page: int
    sub_ifd: int
    subfile: int
    description: str
    width_px: int
    height_px: int
    tile_width_px: int
    tile_height_px: int
    compression: int
    photometric: int
    samples: int
    bits: tuple[int, ...]
    planar: int
    offsets: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.uint64]
    jpeg_tables: bytes
    icc_profile: bytes | None
    x_resolution: float | None
    y_resolution: float | None
    resolution_unit: int
    orientation: int
    sample_format: int
    min_value: float | None
    max_value: float | None
    sub_ifds: tuple[TiffDirectory, ...] = ()

    @property
    def is_tiled(self) -> bool:
        """True if the image is stored in tiles."""
        return self.tile_width_px > 0 and self.tile_height_px > 0

    @property
    def columns(self) -> int:
        """Tiles in a row."""
        return -(-self.width_px // self.tile_width_px)

    @property
    def rows(self) -> int:
        """Tiles in a column."""
        return -(-self.height_px // self.tile_height_px)


def is_tiff(head: bytes) -> bool:
    """Whether the first bytes of a file are a TIFF or BigTIFF header."""
    return head[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


def read_directories(path: str | Path, limit: int | None = None) -> list[TiffDirectory]:
    """Read the directories of the main chain with their SubIFDs, at most the first ``limit``.

    Raises:
        UnsupportedFormatError: not a TIFF.
        CorruptFileError: a directory or a tag lies outside the file, or the chain loops or has more
            than ``MAX_DIRECTORIES``.
        TooLargeError: the tags claim more bytes than ``ml.imaging.limits`` allows.
    """
    with Path(path).open("rb") as file:
        return _Reader(file.fileno()).directories(limit)


def check_claims(path: str | Path) -> None:
    """Refuse false claims of a TIFF before any library allocates for them.

    Raises:
        CorruptFileError: a stored tile or strip lies beyond the end of the file.
        TooLargeError: an image or a tile is beyond ``ml.imaging.limits``.
    """
    try:
        directories = read_directories(path)
    except CorruptFileError:
        if is_ndpi(path):  # past 4 GiB its directories are not where a plain reader looks
            return
        raise
    file_size = Path(path).stat().st_size
    for page in directories:
        for directory in (page, *page.sub_ifds):
            require_slide_size(directory.width_px, directory.height_px)
            if directory.is_tiled:
                require_tile_size(directory.tile_width_px, directory.tile_height_px)
            _check_complete(directory, file_size)


def is_ndpi(path: str | Path) -> bool:
    """Whether a file's first directory carries the mark of Hamamatsu's NDPI format."""
    with Path(path).open("rb") as file:
        return _Reader(file.fileno()).is_ndpi()


def _check_complete(directory: TiffDirectory, file_size: int) -> None:
    ends = directory.offsets + directory.counts
    beyond = int(np.count_nonzero((ends > file_size) | (ends < directory.offsets)))
    if beyond:
        raise CorruptFileError(
            f"the file is truncated: {beyond:,} of {len(ends):,} stored tiles lie beyond its end "
            f"at {file_size:,} bytes; upload the complete file"
        )


def note_directory(offset: int, seen: set[int]) -> None:
    """Add one of a chain to those seen; raise ``CorruptFileError`` if it would never end."""
    if offset in seen:
        raise CorruptFileError("the TIFF directories form a loop")
    if len(seen) >= MAX_DIRECTORIES:
        raise CorruptFileError(f"the TIFF file has more than {MAX_DIRECTORIES:,} directories")
    seen.add(offset)


class TiffBytes:
    """The bytes of an open TIFF file, up to its end, and the numbers in them."""

    def __init__(self, fd: int) -> None:
        """Raises UnsupportedFormatError (no TIFF header) or CorruptFileError (a cut one)."""
        self.fd = fd
        self.size = os.fstat(fd).st_size
        self.head = os.pread(fd, 16, 0)
        if not is_tiff(self.head):
            raise UnsupportedFormatError(
                "not a TIFF file: the first four bytes are not a TIFF header"
            )
        self.order = "<" if self.head[:2] == b"II" else ">"
        self.is_big = self.head[2:4] in (b"+\0", b"\0+")
        if len(self.head) < (16 if self.is_big else 8):
            raise CorruptFileError("the TIFF header is truncated: the file ends inside it")

    def read(self, at: int, size: int) -> bytes:
        """Bytes of the file; raises ``CorruptFileError`` beyond its end."""
        self.require(at, size)
        return os.pread(self.fd, size, at)

    def require(self, at: int, size: int) -> None:
        """Raise ``CorruptFileError`` where these bytes are not in the file."""
        if at < 0 or at + size > self.size:
            raise CorruptFileError(
                f"the TIFF file is truncated: it ends at {self.size:,} bytes, but its directory "
                f"points to byte {at + size:,}"
            )

    def unpack(self, code: str, data: bytes) -> int:
        """A number of the file's byte order."""
        return int(struct.unpack(self.order + code, data)[0])


_Tags = dict[int, tuple[int, int, bytes]]
"""Type, count and the four or eight bytes in the directory, by the number of the tag."""


class _Reader(TiffBytes):
    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        head = self.head
        self.first = self.unpack("Q", head[8:16]) if self.is_big else self.unpack("I", head[4:8])
        self.far_first = int.from_bytes(head[4:12], "little")
        self.tags_bytes = 0

    def is_ndpi(self) -> bool:
        if self.is_big or self.order != "<":
            return False
        try:
            count = self.unpack("H", self.read(self.far_first, 2))
            body = self.read(self.far_first + 2, min(count, MAX_ENTRIES) * 12)
        except CorruptFileError:
            return False
        return any(struct.unpack_from("<H", body, at)[0] == _NDPI for at in range(0, len(body), 12))

    def directories(self, limit: int | None) -> list[TiffDirectory]:
        pages: list[tuple[int, _Tags]] = []
        seen: set[int] = set()
        offset = self.first
        while offset and (limit is None or len(pages) < limit):
            note_directory(offset, seen)
            tags, following = self._tags(offset)
            pages.append((offset, tags))
            offset = following
        if not pages:
            raise CorruptFileError("the TIFF file holds no image directory")
        return [
            replace(
                self._build(tags, offset, page), sub_ifds=tuple(self._sub_ifds(tags, page, seen))
            )
            for page, (offset, tags) in enumerate(pages)
        ]

    def _sub_ifds(self, tags: _Tags, page: int, seen: set[int]) -> Iterator[TiffDirectory]:
        """Directories that a page leads to, each read once."""
        offsets = self._values(tags, SUB_IFDS, MAX_DIRECTORIES)
        for number, offset in enumerate(map(int, offsets.tolist())):
            if offset and offset not in seen:
                note_directory(offset, seen)
                yield self._build(self._tags(offset)[0], offset, page, number)

    def _tags(self, offset: int) -> tuple[_Tags, int]:
        count_size, entry_size, code = (8, 20, "Q") if self.is_big else (2, 12, "H")
        count = self.unpack(code, self.read(offset, count_size))
        if not 0 < count <= MAX_ENTRIES:
            raise CorruptFileError(f"a TIFF directory claims {count:,} tags")
        word = 8 if self.is_big else 4
        body = self.read(offset + count_size, count * entry_size + word)
        tags: _Tags = {}
        for start in range(0, count * entry_size, entry_size):
            tag, kind = struct.unpack_from(self.order + "HH", body, start)
            n = self.unpack("Q" if self.is_big else "I", body[start + 4 : start + 4 + word])
            self._check(tag, kind, n)
            tags[tag] = (kind, n, body[start + 4 + word : start + entry_size])
        following = self.unpack("Q" if self.is_big else "I", body[-word:])
        return tags, following

    def _check(self, tag: int, kind: int, count: int) -> None:
        """Refuse what no honest file claims, before this or another library reads it."""
        if tag in _LISTS and kind not in _POSITIONS:
            raise CorruptFileError(f"TIFF tag {tag} claims {count:,} values of a type it never has")
        size = count * _size(kind)
        self.tags_bytes += size
        if size > MAX_TAG_BYTES:
            raise TooLargeError(
                f"TIFF tag {tag} claims {count:,} values, {size:,} bytes; "
                f"the limit is {MAX_TAG_BYTES:,} bytes"
            )
        if self.tags_bytes > MAX_TAGS_BYTES:
            raise TooLargeError(
                f"the TIFF file claims tags of {self.tags_bytes >> 20:,} MiB in all; "
                f"the limit is {MAX_TAGS_BYTES >> 20:,} MiB"
            )

    def _values(self, tags: _Tags, tag: int, most: int | None = None) -> npt.NDArray[np.generic]:
        """The values of a tag; of those beyond ``most`` nothing is read."""
        kind, count, inline = tags.get(tag, (0, 0, b""))
        if kind not in _DTYPES:
            return np.empty(0, np.uint64)
        wanted = (count if most is None else min(count, most)) * _size(kind)
        if count * _size(kind) > len(inline):
            inline = self.read(self.unpack("Q" if self.is_big else "I", inline), wanted)
        return np.frombuffer(inline[:wanted], np.dtype(self.order + _DTYPES[kind]))

    def _build(self, tags: _Tags, offset: int, page: int, sub_ifd: int = -1) -> TiffDirectory:
        def number(tag: int, default: int) -> int:
            values = self._values(tags, tag, 1)
            return int(values[0]) if len(values) else default

        def stated(tag: int) -> list[float]:
            values = self._values(tags, tag, _MAX_BITS)
            return [float(value) for value in values.tolist()]

        def resolution(tag: int) -> float | None:
            values = self._values(tags, tag, 1)
            return float(values[0]) / float(values[1]) if len(values) >= 2 and values[1] else None

        tiled = _TILE_OFFSETS in tags
        offsets = self._values(tags, _TILE_OFFSETS if tiled else _STRIP_OFFSETS)
        counts = self._values(tags, _TILE_COUNTS if tiled else _STRIP_COUNTS)
        shared = min(len(offsets), len(counts))
        samples = number(_SAMPLES, 1)
        icc = self._values(tags, _ICC, MAX_ICC_BYTES + 1).tobytes()
        description = self._values(tags, _DESCRIPTION, _MAX_DESCRIPTION_BYTES).tobytes()
        return TiffDirectory(
            offset=offset,
            page=page,
            sub_ifd=sub_ifd,
            subfile=number(_SUBFILE, 0),
            description=description.rstrip(b"\0").decode("utf-8", "replace"),
            width_px=number(_WIDTH, 0),
            height_px=number(_HEIGHT, 0),
            tile_width_px=number(_TILE_WIDTH, 0),
            tile_height_px=number(_TILE_HEIGHT, 0),
            compression=number(_COMPRESSION, 1),
            photometric=number(_PHOTOMETRIC, 0),
            samples=samples,
            bits=tuple(int(b) for b in self._values(tags, _BITS, _MAX_BITS).tolist()) or (1,),
            planar=number(_PLANAR, 1) if samples > 1 else 1,
            offsets=offsets[:shared].astype(np.uint64),
            counts=counts[:shared].astype(np.uint64),
            jpeg_tables=self._values(tags, _JPEG_TABLES, _MAX_TABLES_BYTES).tobytes(),
            icc_profile=icc if 128 <= len(icc) <= MAX_ICC_BYTES else None,
            x_resolution=resolution(_X_RESOLUTION),
            y_resolution=resolution(_Y_RESOLUTION),
            resolution_unit=number(_RESOLUTION_UNIT, 2),
            orientation=number(_ORIENTATION, 0),
            sample_format=number(_SAMPLE_FORMAT, 1),
            min_value=_first_extreme(min, stated(_S_MIN_VALUE), stated(_MIN_VALUE)),
            max_value=_first_extreme(max, stated(_S_MAX_VALUE), stated(_MAX_VALUE)),
        )


def _first_extreme(extreme: Callable[[list[float]], float], *found: list[float]) -> float | None:
    """The least or largest value of the first list that has one."""
    return next((extreme(values) for values in found if values), None)


def _size(kind: int) -> int:
    """Bytes of one value of a TIFF type, 0 of an unknown one."""
    return np.dtype(_DTYPES[kind]).itemsize * _PER_VALUE.get(kind, 1) if kind in _DTYPES else 0
