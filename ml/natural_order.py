"""Natural order of file names: numbers count as numbers, so that frame_2 comes before frame_10."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

_NUMBER = re.compile(r"([0-9]+)")


def natural_sort(paths: Iterable[Path]) -> list[Path]:
    """Files in natural order, see ``natural_key``."""
    return sorted(paths, key=natural_key)


def natural_key(path: PurePath | str) -> tuple[Any, ...]:
    """Key by which paths are sorted naturally, folder by folder.

    Numbers are compared as numbers and letters without regard to their case. Names that are equal
    in this sense (``a1.png``, ``A01.png``) are ordered by their plain text.
    """
    parts = (PurePosixPath(path) if isinstance(path, str) else path).parts
    names = [(part, "") for part in parts[:-1]]
    names += [(PurePath(part).stem, PurePath(part).suffix) for part in parts[-1:]]
    return tuple((_chunks(stem), suffix.casefold()) for stem, suffix in names), parts


def _chunks(name: str) -> tuple[Any, ...]:
    """Texts and numbers in turn; a number as its length and its digits, however long it is."""
    chunks = _NUMBER.split(name.casefold())
    digits = [chunk.lstrip("0") for chunk in chunks]
    return tuple((len(digits[i]), digits[i]) if i % 2 else chunk for i, chunk in enumerate(chunks))
