"""Vector search: FAISS in versioned, memory-mapped files, or Milvus, behind one protocol."""

from __future__ import annotations

from pathlib import Path

from ml.errors import BadInputError
from ml.index.files.engine import FaissIndex, IndexConfig

__all__ = ["open_index"]


def open_index(
    folder: str | Path, dim: int = 128, *, tag: str = "", config: IndexConfig | None = None
) -> FaissIndex:
    """Open the index in ``folder``; the first write creates a folder that does not exist.

    Args:
        folder: Folder of the index; it holds nothing else.
        dim: Length of a vector.
        tag: Encoder of the vectors (name, version and configuration hash), stored in the manifest
            and compared with it if both are given.
        config: Thresholds of its growth.
    Raises:
        IndexFormatError: The folder holds a damaged index, or one of another dimension or tag.
        BadInputError: ``dim`` is below 1, or ``folder`` is a file.
    """
    if dim < 1:
        raise BadInputError(f"dim: expected at least 1, got {dim}")
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise BadInputError(f"{path.name} is a file; an index is a folder")
    return FaissIndex(path, dim=dim, tag=tag, config=config or IndexConfig())
