"""Limits on a file's claims, checked before memory is allocated.

A clinical whole-slide scan at 40x is about 200,000 x 100,000 px; the limits leave room above that
and stop files whose header promises more than any machine could hold.
"""

from __future__ import annotations

from ml.errors import TooLargeError

MAX_SLIDE_SIDE_PX = 1_000_000  # five times the long side of a scan at 40x
MAX_SLIDE_PIXELS = 250_000_000_000  # a dozen scans at 40x
MAX_STILL_SIDE_PX = 65_500
"""Largest side of a still; also the largest that libjpeg takes."""
MAX_STILL_PIXELS = 500_000_000  # 1.5 GB of RGB, which libvips streams
MAX_JPEG2000_PIXELS = 100_000_000
"""Decoded at once, unlike other stills: OpenJPEG takes 16 bytes for each pixel of RGB."""
MAX_TILE_SIDE_PX = 4_096
"""Largest stored tile side; a tile is the unit that is decoded at once."""
MAX_TILE_BYTES = 64 * 1024 * 1024  # a raw RGB tile of the largest side is 48 MiB
MAX_TAG_BYTES = 32 * 1024 * 1024
"""Largest value of one TIFF tag: 64-bit offsets of four million tiles, 250 gigapixels of 256 px."""
MAX_TAGS_BYTES = 256 * 1024 * 1024
"""Largest values of all tags of a TIFF file together; a scan of a million tiles has 16 MiB."""
MAX_ARCHIVE_ENTRIES = 20_000
"""Files of a slide that is several files: MRXS has some dozen, a DICOM series some hundred."""
MAX_ARCHIVE_LISTING_BYTES = 8 * 1024 * 1024  # 20,000 entries of 400 bytes
MAX_ZARR_ENTRIES = 200_000
"""Files of a Zarr hierarchy, which is not unpacked: a scan of 100,000 px in chunks of 512 px has
150,000 where each channel has its own."""
MAX_ZARR_CHUNK_BYTES = 128 * 1024 * 1024  # 4,096 px of RGB in 16 bits
MAX_ZARR_ROW_BYTES = 1024**3  # 350,000 px of chunks that are 1,024 px high
MAX_UNPACKED_BYTES = 128 * 1024**3  # of all files; the largest upload is 100 GiB by default
MAX_FRAME_SIDE_PX = 8_192  # 8K
MAX_FRAMES = 2_000_000
"""Ten hours at 55 frames a second."""
MAX_ICC_BYTES = 4 * 1024 * 1024  # a camera profile with tables has about one


def require_slide_size(width_px: int, height_px: int) -> None:
    """Refuse a slide that claims more pixels than the limits (``TooLargeError``)."""
    _require("slide", width_px, height_px, MAX_SLIDE_SIDE_PX, MAX_SLIDE_PIXELS)


def require_still_size(width_px: int, height_px: int) -> None:
    """Refuse a still that would decode to more pixels than the limits (``TooLargeError``)."""
    _require("image", width_px, height_px, MAX_STILL_SIDE_PX, MAX_STILL_PIXELS)


def require_jpeg2000_size(width_px: int, height_px: int) -> None:
    """Refuse a JPEG 2000 still beyond the limits (``TooLargeError``)."""
    _require("JPEG 2000 image", width_px, height_px, MAX_STILL_SIDE_PX, MAX_JPEG2000_PIXELS)


def require_tile_size(width_px: int, height_px: int) -> None:
    """Refuse a tile that is too large to decode at once (``TooLargeError``)."""
    _require("tile", width_px, height_px, MAX_TILE_SIDE_PX, MAX_TILE_SIDE_PX**2)


def require_frame_size(width_px: int, height_px: int) -> None:
    """Refuse video frames that are too large (``TooLargeError``)."""
    _require("video frame", width_px, height_px, MAX_FRAME_SIDE_PX, MAX_FRAME_SIDE_PX**2)


def _require(kind: str, width_px: int, height_px: int, side: int, pixels: int) -> None:
    if width_px > side or height_px > side or width_px * height_px > pixels:
        raise TooLargeError(
            f"the file claims a {kind} of {width_px:,} x {height_px:,} px; the limit is "
            f"{side:,} px a side and {pixels:,} px in all"
        )
