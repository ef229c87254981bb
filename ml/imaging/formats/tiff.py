"""Images of a TIFF file: sizes, coding, offsets of stored tiles. Pixels are not decoded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ml.errors import CorruptFileError
from ml.imaging.formats.tiff_fields import (
    MAX_DIRECTORIES,
    STRIP_COUNTS,
    STRIP_OFFSETS,
    SUB_IFDS,
    TILE_COUNTS,
    TILE_OFFSETS,
    Ifd,
    TiffReader,
    note_directory,
)
from ml.imaging.limits import MAX_ICC_BYTES, require_slide_size, require_tile_size

JPEG, YCBCR, RGB = 7, 6, 2
"""Values of the tags Compression (7) and PhotometricInterpretation that pass through."""
APERIO_JPEG2000 = (33003, 33005)
"""Values of the tag Compression in SVS files, in YCbCr and in RGB; only OpenSlide reads these."""
TRANSPOSED = (5, 6, 7, 8)
"""Values of the tag Orientation by which stored rows are columns of the picture."""
SEPARATE_PLANES = 2
"""Value of the tag PlanarConfiguration by which each sample has separate tiles or strips."""

_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC = 256, 257, 258, 259, 262
_SAMPLES, _X_RESOLUTION, _Y_RESOLUTION, _PLANAR, _RESOLUTION_UNIT = 277, 282, 283, 284, 296
_TILE_WIDTH, _TILE_HEIGHT, _JPEG_TABLES, _ICC = 322, 323, 347, 34675
_SUBFILE, _DESCRIPTION, _ORIENTATION, _SAMPLE_FORMAT = 254, 270, 274, 339
_MIN_VALUE, _MAX_VALUE, _S_MIN_VALUE, _S_MAX_VALUE = 280, 281, 340, 341
"""Tags of TIFF 6.0; JPEGTables of its Technical Note 2, ICC as the ICC specification says."""
_MAX_TABLES_BYTES = 64 * 1024  # quantisation and Huffman tables have some 600 bytes
_MAX_SAMPLES = 16  # of a pixel
_MAX_DESCRIPTION_BYTES = 2**20  # OME's XML of some thousand planes


@dataclass(frozen=True, slots=True, eq=False)
class TiffDirectory:
    """One image of a TIFF file.

    Attributes:
        offset: Offset of the directory in the file.
        page: Number in the main chain; for a SubIFD, that of its page.
        sub_ifd: Number among the SubIFDs of its page, -1 for the page itself.
        subfile: Bits of the tag NewSubfileType: 1 reduced, 2 a page, 4 a mask.
        description: ImageDescription, up to 1 MiB. It may contain a person's name.
        tile_width_px, tile_height_px: 0 if the image is stored in strips.
        bits: Bits per sample, one number per sample.
        offsets, counts: (N,) uint64, offset and size of each tile (or strip); count 0 is a missing
            tile.
        x_resolution, y_resolution: Pixels per ``resolution_unit`` (1 none, 2 inch, 3 cm) or None.
        sample_format: 1 unsigned, 2 signed, 3 floating point, 4 undefined.
        min_value, max_value: Stated range of the samples, None if not stated.
        orientation: Orientation tag, 1 (upright) to 8; 0 if not stated.
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


def read_directories(path: str | Path, limit: int | None = None) -> list[TiffDirectory]:
    """Read the directories of the main chain with their SubIFDs, at most the first ``limit``.

    Raises:
        UnsupportedFormatError: Not a TIFF.
        CorruptFileError: A directory or a value is not inside the file, or the chain has a loop or
            more than ``MAX_DIRECTORIES``.
        TooLargeError: The tags claim more bytes than ``ml.imaging.limits`` allows.
    """
    with Path(path).open("rb") as file:
        reader = TiffReader(file.fileno())
        pages = list(islice(reader.chain(), limit))
        if not pages:
            raise CorruptFileError("the TIFF file holds no image directory")
        known_offsets = {ifd.offset for ifd in pages}
        return [
            replace(
                _image(reader, ifd, page),
                sub_ifds=tuple(_sub_ifds(reader, ifd, page, known_offsets)),
            )
            for page, ifd in enumerate(pages)
        ]


def check_claims(path: str | Path) -> None:
    """Reject false claims of a TIFF before any library allocates memory for them.

    Raises:
        CorruptFileError: A stored tile or strip extends beyond the end of the file.
        TooLargeError: An image or a tile is beyond ``ml.imaging.limits``.
    """
    file_size = Path(path).stat().st_size
    for page in read_directories(path):
        for directory in (page, *page.sub_ifds):
            require_slide_size(directory.width_px, directory.height_px)
            if directory.is_tiled:
                require_tile_size(directory.tile_width_px, directory.tile_height_px)
            _check_complete(directory, file_size)


def is_ndpi(path: str | Path) -> bool:
    """Return whether a file's first directory has the mark of Hamamatsu's NDPI format."""
    with Path(path).open("rb") as file:
        return TiffReader(file.fileno()).is_ndpi


def _check_complete(directory: TiffDirectory, file_size: int) -> None:
    ends = directory.offsets + directory.counts
    beyond = int(np.count_nonzero((ends > file_size) | (ends < directory.offsets)))
    if beyond:
        raise CorruptFileError(
            f"the file is truncated: {beyond:,} of {len(ends):,} stored tiles lie beyond its end "
            f"at {file_size:,} bytes; upload the complete file"
        )


def _sub_ifds(
    reader: TiffReader, parent: Ifd, page: int, known_offsets: set[int]
) -> Iterator[TiffDirectory]:
    """Directories that a page leads to, each read once."""
    offsets = reader.values(parent.fields.get(SUB_IFDS), MAX_DIRECTORIES)
    for number, offset in enumerate(map(int, offsets.tolist())):
        if offset and offset not in known_offsets:
            note_directory(offset, known_offsets)
            yield _image(reader, reader.directory(offset), page, number)


def _image(reader: TiffReader, ifd: Ifd, page: int, sub_ifd: int = -1) -> TiffDirectory:
    def values(tag: int, limit: int | None = None) -> npt.NDArray[np.generic]:
        return reader.values(ifd.fields.get(tag), limit)

    def number(tag: int, default: int) -> int:
        stored = values(tag, 1)
        return int(stored[0]) if len(stored) and stored.dtype.kind in "ui" else default

    def values_of(tag: int) -> list[float]:
        stored = map(float, values(tag, _MAX_SAMPLES).tolist())
        return [value for value in stored if math.isfinite(value)]

    def resolution(tag: int) -> float | None:
        stored = values(tag, 1)
        return float(stored[0]) / float(stored[1]) if len(stored) >= 2 and stored[1] else None

    is_tiled = TILE_OFFSETS in ifd.fields
    offsets = values(TILE_OFFSETS if is_tiled else STRIP_OFFSETS)
    counts = values(TILE_COUNTS if is_tiled else STRIP_COUNTS)
    shared = min(len(offsets), len(counts))
    samples, bits = number(_SAMPLES, 1), values(_BITS, _MAX_SAMPLES)
    icc = values(_ICC, MAX_ICC_BYTES + 1).tobytes()
    description = values(_DESCRIPTION, _MAX_DESCRIPTION_BYTES).tobytes()
    return TiffDirectory(
        offset=ifd.offset,
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
        bits=tuple(map(int, bits.tolist())) if bits.dtype.kind in "ui" and len(bits) else (1,),
        planar=number(_PLANAR, 1) if samples > 1 else 1,
        offsets=offsets[:shared].astype(np.uint64),
        counts=counts[:shared].astype(np.uint64),
        jpeg_tables=values(_JPEG_TABLES, _MAX_TABLES_BYTES).tobytes(),
        icc_profile=icc if 128 <= len(icc) <= MAX_ICC_BYTES else None,
        x_resolution=resolution(_X_RESOLUTION),
        y_resolution=resolution(_Y_RESOLUTION),
        resolution_unit=number(_RESOLUTION_UNIT, 2),
        orientation=number(_ORIENTATION, 0),
        sample_format=number(_SAMPLE_FORMAT, 1),
        min_value=_extreme_value(min, values_of(_S_MIN_VALUE), values_of(_MIN_VALUE)),
        max_value=_extreme_value(max, values_of(_S_MAX_VALUE), values_of(_MAX_VALUE)),
    )


def _extreme_value(
    extreme: Callable[[list[float]], float], *value_lists: list[float]
) -> float | None:
    """``min`` or ``max`` of the first list that is not empty, else None."""
    return next((extreme(values) for values in value_lists if values), None)
