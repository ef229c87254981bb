"""Arrays of Zarr, versions 2 and 3: what they state, checked, and their chunks decoded.

Only the codecs that images are written with are known, none that runs code (pickles) or uses a
network; what a chunk decodes to is bounded before it is decoded.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numcodecs import blosc, lz4, zstd

from ml.errors import CorruptFileError, TooLargeError, UnsupportedFormatError
from ml.imaging.formats.zarr_store import ZarrStore
from ml.imaging.limits import MAX_ZARR_CHUNK_BYTES
from ml.types import JsonObject

CODECS = ("blosc", "zstd", "lz4", "gzip", "zlib")
"""What chunks may be packed with, each alone."""
_TYPES = {
    "uint8": "u1", "uint16": "<u2", "|u1": "u1", "<u1": "u1", ">u1": "u1", "<u2": "<u2",
    ">u2": ">u2",
}  # fmt: skip
_MISSING = 2**64 - 1
"""Place and length of a chunk that a shard does not hold."""
_CRC_BYTES = 4  # of CRC-32C, behind a chunk or an index
_DAMAGED = "the Zarr array is damaged"
_NAME = re.compile(r"[A-Za-z0-9_ .\-/]{0,200}")

blosc.use_threads = False  # its own would outlive the child's limits


@dataclass(frozen=True, slots=True)
class ZarrArray:
    """An array of whole numbers.

    Attributes:
        path: of its folder below the root. shape, chunk: as many numbers as it has axes.
        codec: one of ``CODECS``, "" where chunks are not packed. has_crc: a checksum follows.
        shard: of the files, where each holds several chunks, else None.
        prefix, separator: of the names of chunks. is_fortran: the first axis varies fastest.
    """

    path: str
    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    dtype: np.dtype[Any]
    fill: int
    codec: str
    has_crc: bool
    shard: tuple[int, ...] | None
    prefix: str
    separator: str
    is_fortran: bool

    @property
    def chunk_bytes(self) -> int:
        """Of a chunk, decoded."""
        return math.prod(self.chunk) * self.dtype.itemsize

    def is_chunk(self, name: str) -> bool:
        """Whether a member by its name below the array is a chunk of it, or a shard."""
        number, between = r"\d+", re.escape(self.separator)
        numbers = between.join([number] * len(self.shape))
        return re.fullmatch(re.escape(self.prefix) + numbers, name) is not None

    def name_of(self, index: Sequence[int]) -> str:
        """The member that holds a chunk, or a shard, by its numbers."""
        return f"{self.path}/{self.prefix}{self.separator.join(map(str, index))}".lstrip("/")


def read_array(store: ZarrStore, path: str) -> ZarrArray:
    """What an array states.

    Raises:
        UnsupportedFormatError: a type or codec that is not read.
        CorruptFileError: there is none, or its description is invalid.
        TooLargeError: its chunks are too large to be decoded at once.
    """
    below = f"{path}/" if path else ""
    try:
        if (told := store.json(f"{below}.zarray")) is not None:
            found = _version_2(path, told)
        elif (told := store.json(f"{below}zarr.json")) is not None:
            found = _version_3(path, told)
        else:
            raise CorruptFileError("the OME-Zarr image is incomplete: an array of it is missing")
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise CorruptFileError(_DAMAGED) from error
    _check(found)
    return found


def read_chunk(store: ZarrStore, array: ZarrArray, index: Sequence[int]) -> npt.NDArray[Any]:
    """A chunk by its numbers, in the shape that the array states; what is missing is filled.

    Raises:
        CorruptFileError, TooLargeError: it does not decode to what it should; it is too long.
    """
    data = _packed(store, array, tuple(index))
    if data is None:
        return np.full(array.chunk, array.fill, array.dtype)
    if array.has_crc:
        data = _without_crc(data)
    plain = _unpacked(data, array.codec, array.chunk_bytes)
    values = np.frombuffer(plain, array.dtype)
    return values.reshape(array.chunk, order="F" if array.is_fortran else "C")


def _version_2(path: str, told: JsonObject) -> ZarrArray:
    packer = told.get("compressor") or {}
    if told.get("filters"):
        raise UnsupportedFormatError("the Zarr array uses filters; expected only compressed chunks")
    return ZarrArray(
        path=path,
        shape=_sizes(told["shape"]),
        chunk=_sizes(told["chunks"]),
        dtype=_dtype(told["dtype"]),
        fill=int(told.get("fill_value") or 0),
        codec=_codec(str(packer["id"])) if packer else "",
        has_crc=False,
        shard=None,
        prefix="",
        separator=_separator(told.get("dimension_separator", ".")),
        is_fortran=told.get("order", "C") == "F",
    )


def _version_3(path: str, told: JsonObject) -> ZarrArray:
    grid, keys = told["chunk_grid"], told["chunk_key_encoding"]
    if told.get("node_type") != "array" or grid["name"] != "regular":
        raise UnsupportedFormatError("the Zarr array has no regular chunks")
    outer, codecs = _sizes(grid["configuration"]["chunk_shape"]), list(told["codecs"])
    shard = None
    if codecs and codecs[0]["name"] == "sharding_indexed":
        if len(codecs) > 1:
            raise UnsupportedFormatError(
                "the Zarr array compresses whole shards; expected compressed chunks"
            )
        how = codecs[0]["configuration"]
        index = [one["name"] for one in how["index_codecs"]]
        if index != ["bytes", "crc32c"] or how.get("index_location", "end") != "end":
            raise UnsupportedFormatError("the Zarr array has shards of an unsupported kind")
        shard, outer, codecs = outer, _sizes(how["chunk_shape"]), list(how["codecs"])
    dtype, codec, has_crc = _codecs(codecs, _dtype(told["data_type"]))
    is_plain = keys["name"] == "v2"
    separator = (keys.get("configuration") or {}).get("separator", "." if is_plain else "/")
    return ZarrArray(
        path=path,
        shape=_sizes(told["shape"]),
        chunk=outer,
        dtype=dtype,
        fill=int(told.get("fill_value") or 0),
        codec=codec,
        has_crc=has_crc,
        shard=shard,
        prefix="" if is_plain else f"c{_separator(separator)}",
        separator=_separator(separator),
        is_fortran=False,
    )


def _codecs(told: list[JsonObject], dtype: np.dtype[Any]) -> tuple[np.dtype[Any], str, bool]:
    """Byte order, packer and whether a checksum follows, of a list of version 3."""
    if not told or told[0]["name"] != "bytes":
        raise UnsupportedFormatError("the Zarr array uses an unsupported codec; expected bytes")
    if (told[0].get("configuration") or {}).get("endian") == "big":
        dtype = dtype.newbyteorder(">")
    names = [str(one["name"]) for one in told[1:]]
    has_crc = names[-1:] == ["crc32c"]
    packers = names[:-1] if has_crc else names
    if len(packers) > 1:
        raise UnsupportedFormatError("the Zarr array is compressed more than once")
    return dtype, _codec(packers[0]) if packers else "", has_crc


def _codec(name: str) -> str:
    if name not in CODECS:
        raise UnsupportedFormatError(
            f"the Zarr array is compressed with {ascii(name)[:40]}; expected {', '.join(CODECS)}"
        )
    return name


def _dtype(told: Any) -> np.dtype[Any]:
    name = _TYPES.get(told) if isinstance(told, str) else None
    if name is None:
        raise UnsupportedFormatError(
            f"the Zarr array holds {ascii(told)[:40]}; expected uint8 or uint16"
        )
    return np.dtype(name)


def _separator(told: Any) -> str:
    if told not in (".", "/"):
        raise CorruptFileError(_DAMAGED)
    return str(told)


def _sizes(told: Any) -> tuple[int, ...]:
    found = tuple(int(one) for one in told)
    if not 2 <= len(found) <= 5 or not all(0 < one < 2**40 for one in found):
        raise CorruptFileError(_DAMAGED)
    return found


def _check(array: ZarrArray) -> None:
    sizes = {len(array.shape), len(array.chunk), len(array.shard or array.shape)}
    if len(sizes) > 1 or not 0 <= array.fill < 2 ** (8 * array.dtype.itemsize):
        raise CorruptFileError(_DAMAGED)
    if array.shard and any(a % b for a, b in zip(array.shard, array.chunk, strict=True)):
        raise CorruptFileError(_DAMAGED)
    if not _NAME.fullmatch(array.path) or ".." in array.path.split("/"):
        raise CorruptFileError("the OME-Zarr image names an array by an invalid path")
    if array.chunk_bytes > MAX_ZARR_CHUNK_BYTES:
        raise TooLargeError(
            f"the Zarr array has chunks of {array.chunk_bytes:,} bytes; the limit is "
            f"{MAX_ZARR_CHUNK_BYTES:,}"
        )


def _packed(store: ZarrStore, array: ZarrArray, index: tuple[int, ...]) -> bytes | None:
    if array.shard is None:
        return store.read(array.name_of(index), most_bytes=2 * array.chunk_bytes + 2**16)
    each = [a // b for a, b in zip(array.shard, array.chunk, strict=True)]
    name = array.name_of([one // count for one, count in zip(index, each, strict=True)])
    size = store.size(name)
    if size is None:
        return None
    listing = 16 * math.prod(each)
    if listing + _CRC_BYTES > size:
        raise CorruptFileError("a shard of the Zarr hierarchy is damaged")
    inside = [one % count for one, count in zip(index, each, strict=True)]
    at = 16 * int(np.ravel_multi_index(inside, each))
    found = store.read_part(name, size - listing - _CRC_BYTES + at, 16)
    start, length = (int(one) for one in np.frombuffer(found, "<u8"))
    if (start, length) == (_MISSING, _MISSING):
        return None
    if length > 2 * array.chunk_bytes + 2**16:
        raise CorruptFileError("a shard of the Zarr hierarchy is damaged")
    return store.read_part(name, start, length)


def _without_crc(data: bytes) -> bytes:
    """The checksum, CRC-32C, is cut off unread: no package that is installed computes it."""
    if len(data) < _CRC_BYTES:
        raise CorruptFileError(_DAMAGED)
    return data[:-_CRC_BYTES]


def _unpacked(data: bytes, codec: str, size: int) -> bytes:
    """Exactly ``size`` bytes, whatever a header claims.

    Raises:
        CorruptFileError: it is not this many.
    """
    found = data
    try:
        if codec in ("gzip", "zlib"):
            one = zlib.decompressobj(zlib.MAX_WBITS | 32)
            found = one.decompress(data, size + 1)
        elif codec == "blosc":
            claimed = int.from_bytes(data[4:8], "little") if len(data) >= 16 else -1
            found = blosc.decompress(data) if claimed == size else b""
        elif codec == "lz4":
            claimed = int.from_bytes(data[:4], "little")
            found = lz4.decompress(data) if claimed == size else b""
        elif codec == "zstd":
            found = zstd.decompress(data, bytearray(size))
    except (zlib.error, ValueError, RuntimeError) as error:
        raise CorruptFileError("a chunk of the Zarr array is truncated or damaged") from error
    if len(found) != size:
        raise CorruptFileError("a chunk of the Zarr array is truncated or damaged")
    return bytes(found)
