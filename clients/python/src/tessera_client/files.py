"""Local files: those to send in pieces, unfinished transfers, and downloads."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any
from urllib.parse import unquote

from tessera_client.sets import PackedSet, set_of

Progress = Callable[[int, int], None]
"""Called with the bytes received by the portal, and the bytes of the file."""

_ENCODED_NAME = re.compile(r"filename\*\s*=\s*utf-8'[^']*'([^;\s]+)", re.IGNORECASE)
_PLAIN_NAME = re.compile(r'filename\s*=\s*"?([^";]+)', re.IGNORECASE)
PIECE_BYTES = 8 * 2**20
"""Bytes of one request: a lost connection costs at most this much."""


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file to send: its path, size and SHA-256."""

    path: Path
    size: int
    sha256: str

    @classmethod
    def of(cls, path: str | Path) -> LocalFile | PackedSet:
        """Read a file for its SHA-256, or all files of a slide of several as one archive.

        Raises:
            OSError: it cannot be read.
            InvalidError: a file of a slide of several files is missing.
        """
        path = Path(path)
        files = set_of(path)
        if files is not None:
            return PackedSet.of(path, files)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return cls(path, os.fstat(file.fileno()).st_size, digest)

    def bytes_from(self, offset: int, max_bytes: int) -> bytes:
        """``count`` bytes from ``offset`` on, fewer at the end."""
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read(max_bytes)


UploadSource = LocalFile | PackedSet
"""A file or archive to send in pieces."""


def checksum(piece: bytes) -> str:
    """``Upload-Checksum`` of a piece."""
    return f"sha256 {base64.b64encode(hashlib.sha256(piece).digest()).decode()}"


def metadata(**values: str) -> str:
    """``Upload-Metadata``: keys with base64 values."""
    return ",".join(f"{k} {base64.b64encode(v.encode()).decode()}" for k, v in values.items() if v)


def transfer_key(server: str, case: str, file: UploadSource) -> str:
    """Key of an unfinished transfer."""
    return hashlib.sha256(f"{server} {case} {file.sha256}".encode()).hexdigest()


class OpenTransfers:
    """Addresses of unfinished transfers by key, in a small JSON file that outlives this process."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or _cache_folder() / "transfers.json"

    def get(self, key: str) -> str | None:
        """Address of an unfinished transfer; None if there is none."""
        address = self._read().get(key)
        return address if isinstance(address, str) else None

    def put(self, key: str, address: str | None) -> None:
        """Store an address, or delete it (None); does nothing in a read-only folder."""
        known = {**self._read(), key: address}
        addresses = {name: value for name, value in known.items() if value}
        part = self.path.with_suffix(f".{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(addresses))
            part.replace(self.path)
        except OSError:
            part.unlink(missing_ok=True)

    def _read(self) -> dict[str, Any]:
        try:
            known = json.loads(self.path.read_text())
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}


class Download:
    """Writer of a file that appears only when it is complete.

    Args:
        path: of the file, or an existing folder, in which the file gets the portal's name.
    """

    def __init__(self, path: str | Path) -> None:
        self._target = Path(path)
        self.set_name("")

    def set_name(self, disposition: str) -> None:
        """Name the file by the header ``Content-Disposition`` if only a folder was given."""
        self.path = self._target
        if self._target.is_dir():
            self.path /= name_of(disposition) or "download"
        self._part = self.path.with_name(f".{self.path.name}.part")

    def __enter__(self) -> IO[bytes]:
        self._file = self._part.open("wb")
        return self._file

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        if kind is None:
            self._part.replace(self.path)
        else:
            self._part.unlink(missing_ok=True)


def name_of(disposition: str) -> str:
    """File name in a header ``Content-Disposition`` (RFC 6266) without folders; "" if none."""
    encoded = _ENCODED_NAME.search(disposition)
    plain = _PLAIN_NAME.search(disposition)
    name = unquote(encoded[1]) if encoded else plain[1] if plain else ""
    name = "".join(letter for letter in name if letter.isprintable() or letter in "\u200c\u200d")
    return re.split(r"[\\/:]", name)[-1].strip(" .")


def bar(title: str) -> Progress:
    """Make a progress bar of tqdm (``tessera-client[bars]``)."""
    from tqdm.auto import tqdm

    progress_bar = tqdm(desc=title, unit="B", unit_scale=True)

    def show(done: int, total: int) -> None:
        progress_bar.total = total
        progress_bar.update(done - progress_bar.n)
        if done >= total:
            progress_bar.close()

    return show


def _cache_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "tessera-client"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tessera-client"
