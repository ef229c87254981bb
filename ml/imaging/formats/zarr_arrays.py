"""Arrays of Zarr, versions 2 and 3, read by zarr-python from the members of an archive.

Types and codecs are compared with a list before zarr-python sees them: none of these runs code
(pickles) or uses a network. How much a chunk may be packed is bounded; what it decodes to is
bounded by the memory of the confined child.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import zarr
from numcodecs import blosc
from zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
)

from ml.errors import CorruptFileError, TooLargeError, UnsupportedFormatError
from ml.imaging.formats.zarr_store import ZarrStore
from ml.imaging.limits import MAX_ZARR_CHUNK_BYTES
from ml.types import JsonObject

if TYPE_CHECKING:
    from zarr.core.buffer import Buffer, BufferPrototype

COMPRESSORS = ("blosc", "zstd", "lz4", "gzip", "zlib")
_CODECS = {*COMPRESSORS, "numcodecs.lz4", "numcodecs.zlib", "bytes", "crc32c", "sharding_indexed"}
_TYPES = ("uint8", "uint16", "|u1", "<u1", ">u1", "<u2", ">u2")
_MAX_DEPTH = 4  # codecs within codecs: those of a shard, and of its index
_DAMAGED = "the Zarr array is damaged"
_DAMAGED_CHUNK = "a chunk of the Zarr array is truncated or damaged"
_DAMAGED_SHARD = "a shard of the Zarr hierarchy is damaged"
_NAME = re.compile(r"[A-Za-z0-9_ .\-/]{0,200}")
_INVALID = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError)

blosc.use_threads = False  # its threads would outlive the child's limits
zarr.config.set({"async.concurrency": 1, "threading.max_workers": 1})


@dataclass(frozen=True, slots=True)
class ZarrArray:
    """An array of whole numbers.

    Attributes:
        path: of its folder below the root.
        shape, chunk: one number for each axis; of an array in shards, ``chunk`` is that within one.
        prefix, separator: of the names of the members that hold chunks or shards.
    """

    path: str
    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    dtype: np.dtype[Any]
    prefix: str
    separator: str
    opened: Any = field(repr=False, compare=False)

    def is_chunk(self, name: str) -> bool:
        """Return whether a member by its name below the array is a chunk of it, or a shard."""
        numbers = re.escape(self.separator).join([r"\d+"] * len(self.shape))
        return re.fullmatch(re.escape(self.prefix) + numbers, name) is not None


def read_array(store: ZarrStore, path: str) -> ZarrArray:
    """Open an array.

    Raises:
        UnsupportedFormatError: a type or codec that is not read.
        CorruptFileError: there is none, or its description is invalid.
        TooLargeError: its chunks are too large to be decoded at once.
    """
    if not _NAME.fullmatch(path) or ".." in path.split("/"):
        raise CorruptFileError("the OME-Zarr image is incomplete: an array of it is missing")
    below = f"{path}/" if path else ""
    version, metadata = 2, store.json(f"{below}.zarray")
    if metadata is None:
        version, metadata = 3, store.json(f"{below}zarr.json")
    if metadata is None:
        raise CorruptFileError("the OME-Zarr image is incomplete: an array of it is missing")
    try:
        _require_readable(metadata)
        members = _Members(store)
        opened: Any = zarr.open_array(members, path=path, mode="r", zarr_format=version)  # type: ignore[arg-type]
        array = _array(path, opened)
    except _INVALID as error:
        raise CorruptFileError(_DAMAGED) from error
    sizes = (*array.shape, *array.chunk)
    if not 2 <= len(array.shape) <= 5 or not all(0 < size < 2**40 for size in sizes):
        raise CorruptFileError(_DAMAGED)
    chunk_bytes = math.prod(array.chunk) * array.dtype.itemsize
    if chunk_bytes > MAX_ZARR_CHUNK_BYTES:
        raise TooLargeError(
            f"the Zarr array has chunks of {chunk_bytes:,} bytes; the limit is "
            f"{MAX_ZARR_CHUNK_BYTES:,}"
        )
    members.chunk_bytes = chunk_bytes
    return array


def read_chunk(array: ZarrArray, index: Sequence[int]) -> npt.NDArray[Any]:
    """Chunk by its index, cropped to the array; a missing one is filled.

    Raises:
        CorruptFileError, TooLargeError: It does not decode to its shape; it is too long.
    """
    place = tuple(
        slice(at * size, (at + 1) * size) for at, size in zip(index, array.chunk, strict=True)
    )
    try:
        return np.asarray(array.opened[place])
    except (*_INVALID, RuntimeError, EOFError, zlib.error) as error:
        raise CorruptFileError(_DAMAGED_CHUNK) from error
    except OSError as error:  # gzip's, which has no number
        if error.errno is not None:
            raise
        raise CorruptFileError(_DAMAGED_CHUNK) from error


class _Members(Store):
    """Members of an archive as a store of zarr-python.

    Attributes:
        chunk_bytes: decoded size of a chunk, which bounds what is read for one; 0 before it is
            known.
    """

    supports_writes = supports_deletes = supports_listing = False

    def __init__(self, members: ZarrStore) -> None:
        super().__init__(read_only=True)
        self.members = members
        self.chunk_bytes = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Members) and other.members is self.members

    __hash__ = Store.__hash__

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        data = self._read(key, byte_range)
        return None if data is None else prototype.buffer.from_bytes(data)

    def _read(self, key: str, part: ByteRequest | None) -> bytes | None:
        limit = 2 * self.chunk_bytes + 2**16
        size = self.members.size(key)
        if size is None or part is None:
            return self.members.read(key, max_bytes=limit if self.chunk_bytes else 2**22)
        if isinstance(part, RangeByteRequest):
            start, end = part.start, part.end
        elif isinstance(part, OffsetByteRequest):
            start, end = part.offset, size
        else:
            start, end = size - part.suffix, size
        if not isinstance(part, SuffixByteRequest) and end - start > limit:
            raise CorruptFileError(_DAMAGED_SHARD)
        return self.members.read_part(key, start, end - start)

    async def get_partial_values(self, prototype: BufferPrototype, key_ranges: Any) -> Any:
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    async def exists(self, key: str) -> bool:
        return self.members.size(key) is not None

    async def set(self, key: str, value: Buffer) -> None:
        raise NotImplementedError

    async def delete(self, key: str) -> None:
        raise NotImplementedError

    def list(self) -> AsyncIterator[str]:
        raise NotImplementedError

    def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        raise NotImplementedError

    def list_dir(self, prefix: str) -> AsyncIterator[str]:
        raise NotImplementedError


def _array(path: str, opened: Any) -> ZarrArray:
    metadata = opened.metadata
    if metadata.zarr_format == 2:
        prefix, separator = "", metadata.dimension_separator
    else:
        keys = metadata.chunk_key_encoding
        separator = keys.separator
        prefix = f"c{separator}" if keys.name == "default" else ""
    return ZarrArray(path, opened.shape, opened.chunks, opened.dtype, prefix, separator, opened)


def _require_readable(metadata: JsonObject) -> None:
    """Reject types and codecs that are not listed, before zarr-python sees their names."""
    dtype = metadata.get("dtype", metadata.get("data_type"))
    if not isinstance(dtype, str) or dtype not in _TYPES:
        raise UnsupportedFormatError(
            f"the Zarr array holds {ascii(dtype)[:40]}; expected uint8 or uint16"
        )
    if metadata.get("filters"):
        raise UnsupportedFormatError("the Zarr array uses filters; expected only compressed chunks")
    packer = metadata.get("compressor")
    names = [str(packer["id"])] if packer else [*_codec_names(metadata.get("codecs") or [])]
    for name in names:
        if name not in _CODECS:
            raise UnsupportedFormatError(
                f"the Zarr array is compressed with {ascii(name)[:40]}; expected "
                f"{', '.join(COMPRESSORS)}"
            )


def _codec_names(codecs: list[JsonObject], depth: int = 0) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        raise UnsupportedFormatError("the Zarr array nests shards; expected at most one in another")
    for codec in codecs:
        yield str(codec["name"])
        configuration = codec.get("configuration") or {}
        for inner in ("codecs", "index_codecs"):
            yield from _codec_names(configuration.get(inner) or [], depth + 1)
