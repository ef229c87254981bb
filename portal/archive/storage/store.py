"""Storage of originals behind one interface: a folder, or a bucket of object storage.

Names are relative paths, ``assets/<lab>/<sha[:2]>/<sha>``, the same in both. Derived files are
always on the local volume: OpenSlide, OpenCV and FFmpeg need files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from portal.core.errors import UnavailableError


@dataclass(frozen=True, slots=True)
class Stored:
    """A file of the store; ``changed_s``: Unix time at which it was put or moved there."""

    name: str
    size_bytes: int
    changed_s: float


class StoreAwayError(UnavailableError, OSError):
    """The store does not answer, or what it answered is damaged. Nothing was changed.

    A request is answered with 503, and a job tries again as after any ``OSError``.
    """

    code = "store-away"


class DamagedError(StoreAwayError):
    """The store answered with other bytes than it was given."""


class Store(Protocol):
    """Holds originals, the orphan folder, and the identity of their database.

    Every method raises ``StoreAwayError`` where the store cannot be reached.
    """

    def send(self, received: Path, name: str) -> None:
        """Do the slow part of ``put`` ahead, outside of locks; harmless where it is left out."""

    def put(self, received: Path, name: str) -> None:
        """Take a local file over, durably. What has the name already has the same bytes."""

    def write(self, name: str, data: bytes) -> None:
        """Write a small file, durably, as a whole."""

    def read(self, name: str) -> bytes:
        """Read a small file; ``FileNotFoundError`` where there is none."""

    def local(self, name: str) -> Path:
        """Path of a local file with the bytes, to be opened at once; ``FileNotFoundError`` if
        missing."""

    def stat(self, name: str) -> Stored | None:
        """The file of this name; None if there is none."""

    def files(self, folder: str) -> Iterator[Stored]:
        """Every file below a folder, in the order of names."""

    def folders(self, folder: str) -> list[str]:
        """The names of the folders directly in a folder, in order."""

    def move(self, name: str, target: str) -> None:
        """Give a file another name; what has that name already is replaced."""

    def delete(self, name: str) -> bool:
        """Delete a file and this machine's local copies of it; returns whether it was there."""

    def delete_folder(self, folder: str) -> None:
        pass

    def is_intact(self, name: str) -> bool:
        """Read an original in the store and check that its hash is its name."""

    def tidy(self) -> int:
        """Drop local copies of objects that the store no longer has; returns their number."""

    def check(self) -> None:
        """Write, read and delete a file; ``OSError`` says what is wrong."""
