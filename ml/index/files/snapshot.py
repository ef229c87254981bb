"""An opened version of an index: a base, the log of later changes, and removed rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ml.errors import IndexFormatError
from ml.index.exact import SearchResult, exact_merge, exact_search
from ml.index.files.delta import Delta, read_delta
from ml.index.files.manifest import Manifest, Stamp, read_manifest, stamp_of
from ml.index.files.segments.segment import Segment, read_segment
from ml.index.rows import ascending
from ml.index.selection import Selection
from ml.types import ArrayF32, ArrayI64


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A version: a base, later changes, and the mask of the base's rows.

    Attributes:
        removed_rows: (G,) rows of the base, ascending, that were removed later.
        base_stamp: Stamp of the base's folder, as a rebuilt index has bases of the same names.
    """

    manifest: Manifest
    segment: Segment | None
    delta: Delta
    removed_rows: ArrayI64
    base_stamp: Stamp | None = None

    @property
    def kind(self) -> str:
        """Search method: "ivf", "flat", or "empty" if it has neither base nor vectors."""
        if self.segment is not None:
            return self.segment.kind
        return "empty" if self.manifest.count == 0 else "flat"

    @property
    def recall(self) -> float:
        """Lower of the recalls (plain, filtered) measured when it was written; 1 if exact."""
        lists = None if self.segment is None else self.segment.lists
        return 1.0 if lists is None else min(lists.probes.recall, lists.probes.recall_filtered)

    @property
    def n_removed(self) -> int:
        """Number of masked rows of the base."""
        return len(self.removed_rows)

    def existing(self, ids: ArrayI64) -> ArrayI64:
        """The subset of ``ids`` (M,) that is in the index."""
        existing = np.isin(ids, self.delta.ids)
        if self.segment is not None:
            rows = self.segment.rows_of(ids)
            rows = np.setdiff1d(rows, self.removed_rows)
            existing |= np.isin(ids, self.segment.ids[rows])
        return ids[existing]

    def ids(self) -> ArrayI64:
        """All ids (N,), ascending."""
        if self.segment is None:
            return self.delta.ids
        return np.union1d(np.delete(self.segment.ids, self.removed_rows), self.delta.ids)

    def entries(self) -> tuple[ArrayI64, ArrayF32]:
        """All ids (N,), ascending, and their vectors (N, D), as copies."""
        ids, vectors = self.delta.ids, self.delta.vectors
        if self.segment is not None:
            mask = np.ones(len(self.segment.ids), dtype=np.bool_)
            mask[self.removed_rows] = False
            ids = np.concatenate([self.segment.ids[mask], ids])
            vectors = np.concatenate([self.segment.vectors[mask], vectors])
        order = np.argsort(ids)
        return ids[order], vectors.reshape(-1, self.manifest.dim)[order]

    def search(
        self, query: ArrayF32, k: int, allowed: Selection | None, excluded: ArrayI64 | None
    ) -> SearchResult:
        """The ``k`` nearest of the log (searched exactly) and the base (by FAISS)."""
        parts = []
        if len(self.delta.ids):
            log = self.delta.ids, self.delta.vectors
            parts.append(exact_search(query, *log, k, allowed=allowed, excluded=excluded))
        if self.segment is not None:
            permitted = None if allowed is None else allowed.rows_in(self.segment)
            removed_rows = self.removed_rows
            if excluded is not None and len(excluded):
                newly_excluded = ascending(self.segment.rows_of(excluded))
                removed_rows = (
                    np.union1d(removed_rows, newly_excluded)
                    if len(removed_rows)
                    else newly_excluded
                )
            parts.append(self.segment.search(query, k, permitted, removed_rows))
        return parts[0] if len(parts) == 1 else exact_merge(parts, k)


def open_snapshot(
    folder: Path, *, dim: int, tag: str, previous: Snapshot | None, gpu_above: int
) -> Snapshot:
    """Open the version in the manifest; an empty one if nothing was written yet.

    Args:
        previous: A version opened before; its base is reused if unchanged.
        gpu_above: Number of rows beyond which a GPU is used, if there is one.
    Raises:
        FileNotFoundError: A writer removed a file during the read; try again.
        IndexFormatError: Damaged, or of another dimension or tag.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        manifest = Manifest(0, dim, tag, 0, base="", delta="", n_delta_records=0)
    if manifest.dim != dim:
        raise IndexFormatError(f"the index: expected dim {dim}, got {manifest.dim}")
    if tag and manifest.tag and manifest.tag != tag:
        raise IndexFormatError(f"the index: expected tag {tag!r}, got {manifest.tag!r}")
    base = folder / manifest.base
    stamp = stamp_of(base) if manifest.base else None
    if not manifest.base:
        segment = None
    elif previous is not None and stamp is not None and previous.base_stamp == stamp:
        segment = previous.segment
    else:
        segment = read_segment(base, dim=dim, gpu_above=gpu_above)
    delta = read_delta(folder / manifest.delta, dim=dim, n_records=manifest.n_delta_records)
    removed_rows = np.empty(0, dtype=np.int64)
    if segment is not None:
        removed_rows = np.sort(segment.rows_of(delta.changed_ids))
    return Snapshot(manifest, segment, delta, removed_rows, stamp)
