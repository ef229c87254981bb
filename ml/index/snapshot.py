"""One version of an index, opened: what it holds, and which of its rows a search may find."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ml.errors import IndexFormatError
from ml.index.base.segment import Segment, read_segment
from ml.index.delta import Delta, read_delta
from ml.index.exact import Found, exact_merge, exact_search
from ml.index.manifest import Manifest, Stamp, read_manifest, stamp_of
from ml.index.rows import ascending
from ml.index.selection import Selection
from ml.types import ArrayF32, ArrayI64


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A version: a base, what changed since, and what masks the base's rows.

    Attributes:
        gone: (G,) rows of the base, ascending, that were removed since.
        base_stamp: of the base's files: an index that was deleted and built anew has bases of the
            same names.
    """

    manifest: Manifest
    segment: Segment | None
    delta: Delta
    gone: ArrayI64
    base_stamp: Stamp | None = None

    @property
    def kind(self) -> str:
        """How it is searched: "ivf", "flat", or "empty" if it has neither base nor vectors."""
        if self.segment is not None:
            return self.segment.kind
        return "empty" if self.manifest.count == 0 else "flat"

    @property
    def recall(self) -> float:
        """Least share of exact answers (plain, filtered) found when it was written; 1 if exact."""
        lists = None if self.segment is None else self.segment.lists
        return 1.0 if lists is None else min(lists.probes.recall, lists.probes.recall_filtered)

    @property
    def removed(self) -> int:
        """Rows of the base that are masked."""
        return len(self.gone)

    def held(self, ids: ArrayI64) -> ArrayI64:
        """Those of ``ids`` (M,) that are in the index."""
        held = np.isin(ids, self.delta.ids)
        if self.segment is not None:
            rows = self.segment.rows_of(ids)
            rows = np.setdiff1d(rows, self.gone)
            held |= np.isin(ids, self.segment.ids[rows])
        return ids[held]

    def ids(self) -> ArrayI64:
        """(N,) every id, ascending."""
        if self.segment is None:
            return self.delta.ids
        return np.union1d(np.delete(self.segment.ids, self.gone), self.delta.ids)

    def entries(self) -> tuple[ArrayI64, ArrayF32]:
        """Every id (N,) ascending, and its vector (N, D), as copies."""
        ids, vectors = self.delta.ids, self.delta.vectors
        if self.segment is not None:
            keep = np.ones(len(self.segment.ids), dtype=np.bool_)
            keep[self.gone] = False
            ids = np.concatenate([self.segment.ids[keep], ids])
            vectors = np.concatenate([self.segment.vectors[keep], vectors])
        order = np.argsort(ids)
        return ids[order], vectors.reshape(-1, self.manifest.dim)[order]

    def search(
        self, query: ArrayF32, k: int, allowed: Selection | None, excluded: ArrayI64 | None
    ) -> Found:
        """The ``k`` nearest: the log exactly, the base by FAISS, merged."""
        parts = []
        if len(self.delta.ids):
            log = self.delta.ids, self.delta.vectors
            parts.append(exact_search(query, *log, k, allowed=allowed, excluded=excluded))
        if self.segment is not None:
            chosen = None if allowed is None else allowed.rows_in(self.segment)
            gone = self.gone
            if excluded is not None and len(excluded):
                more = ascending(self.segment.rows_of(excluded))
                gone = np.union1d(gone, more) if len(gone) else more
            parts.append(self.segment.search(query, k, chosen, gone))
        return parts[0] if len(parts) == 1 else exact_merge(parts, k)


def open_snapshot(
    folder: Path, *, dim: int, tag: str, previous: Snapshot | None, gpu_above: int
) -> Snapshot:
    """Open the version that the manifest names now; an empty one where nothing was ever written.

    Args:
        previous: one opened before; its base is kept where it is still the base.
        gpu_above: bases of more rows are searched on a GPU, where there is one.
    Raises:
        FileNotFoundError: a writer cleared a file under our feet: look again.
        IndexFormatError: damaged, or of another dimension or tag.
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
    gone = np.empty(0, dtype=np.int64)
    if segment is not None:
        gone = np.sort(segment.rows_of(delta.touched))
    return Snapshot(manifest, segment, delta, gone, stamp)
