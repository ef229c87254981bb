"""Vector search: FAISS in versioned, memory-mapped files, behind a protocol for other engines.

``open_index`` gives the engine; ``exact_search`` and ``exact_merge`` are the pure functions by
which a caller adds what no file holds yet (the portal: what the database has and the file has not).
"""

from __future__ import annotations

from pathlib import Path

from ml.errors import BadInputError
from ml.index.engine import FaissIndex, IndexConfig
from ml.index.exact import exact_merge, exact_search
from ml.index.protocol import IndexStats, VectorIndex
from ml.index.selection import Selection

__all__ = [
    "FaissIndex",
    "IndexConfig",
    "IndexStats",
    "Selection",
    "VectorIndex",
    "exact_merge",
    "exact_search",
    "open_index",
]


def open_index(
    folder: str | Path, dim: int = 128, *, tag: str = "", config: IndexConfig | None = None
) -> FaissIndex:
    """Open the index in ``folder``; a folder that is not there yet is made by the first write.

    Args:
        folder: where the index lives, one folder per index.
        dim: length of a vector.
        tag: whose vectors these are (an encoder's name, version and configuration hash); kept in
            the manifest and compared with it where both are given.
    Raises:
        IndexFormatError: the folder holds an index of another dimension or tag, or a damaged one.
        BadInputError: ``dim`` is below 1, or ``folder`` is a file.
    """
    if dim < 1:
        raise BadInputError(f"dim: expected at least 1, got {dim}")
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise BadInputError(f"{path.name} is a file; an index is a folder")
    return FaissIndex(path, dim=dim, tag=tag, config=config or IndexConfig())
