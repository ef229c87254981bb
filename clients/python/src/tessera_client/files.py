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
"""Called with the bytes that have arrived at the portal, and the bytes of the file."""

_WHOLE_NAME = re.compile(r"filename\*\s*=\s*utf-8'[^']*'([^;\s]+)", re.IGNORECASE)
_PLAIN_NAME = re.compile(r'filename\s*=\s*"?([^";]+)', re.IGNORECASE)
PIECE_BYTES = 8 * 2**20
"""Sent by one request: a lost connection costs at most this much."""


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

    def bytes_from(self, offset: int, most: int) -> bytes:
        """``most`` bytes from ``offset`` on, fewer at the end."""
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read(most)


Sent = LocalFile | PackedSet
"""What is sent in pieces."""


def checksum(piece: bytes) -> str:
    """``Upload-Checksum`` of a piece."""
    return f"sha256 {base64.b64encode(hashlib.sha256(piece).digest()).decode()}"


def metadata(**said: str) -> str:
    """``Upload-Metadata``: keys with base64 values."""
    return ",".join(f"{k} {base64.b64encode(v.encode()).decode()}" for k, v in said.items() if v)


def transfer_key(server: str, case: str, file: Sent) -> str:
    """The name under which a transfer is kept until it is finished."""
    return hashlib.sha256(f"{server} {case} {file.sha256}".encode()).hexdigest()


class OpenTransfers:
    """Addresses of unfinished transfers by key, in a small JSON file that outlives this process."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or _cache_folder() / "transfers.json"

    def get(self, key: str) -> str | None:
        """The address of an unfinished transfer; None if there is none."""
        address = self._read().get(key)
        return address if isinstance(address, str) else None

    def put(self, key: str, address: str | None) -> None:
        """Keep an address, or forget it (None); in a folder that is read-only nothing is kept."""
        known = {**self._read(), key: address}
        kept = {name: value for name, value in known.items() if value}
        part = self.path.with_suffix(f".{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(kept))
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
    """Writes a file that appears only when it is complete.

    Args:
        path: of the file, or a folder that is there: the file gets the portal's name in it.
    """

    def __init__(self, path: str | Path) -> None:
        self._given = Path(path)
        self.take_name("")

    def take_name(self, disposition: str) -> None:
        """Name the file by the header ``Content-Disposition`` if only a folder was given."""
        self.path = self._given
        if self._given.is_dir():
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
    """The name in a header ``Content-Disposition`` (RFC 6266) without folders; empty if none."""
    whole = _WHOLE_NAME.search(disposition)
    plain = _PLAIN_NAME.search(disposition)
    name = unquote(whole[1]) if whole else plain[1] if plain else ""
    name = "".join(letter for letter in name if letter.isprintable() or letter in "\u200c\u200d")
    return re.split(r"[\\/:]", name)[-1].strip(" .")


def bar(title: str) -> Progress:
    """A progress bar of tqdm (``tessera-client[bars]``)."""
    from tqdm.auto import tqdm

    shown = tqdm(desc=title, unit="B", unit_scale=True)

    def show(done: int, total: int) -> None:
        shown.total = total
        shown.update(done - shown.n)
        if done >= total:
            shown.close()

    return show


def _cache_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "tessera-client"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tessera-client"
