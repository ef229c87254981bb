"""One version of an index, opened: what it holds, and which of its rows a search may find."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ml.errors import IndexFormatError
from ml.index.delta import Delta, read_delta
from ml.index.exact import Found, exact_merge, exact_search
from ml.index.manifest import Manifest, read_manifest
from ml.index.segment import Segment, read_segment
from ml.types import ArrayBool, ArrayF32, ArrayI64


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A version: a base, what changed since, and what masks the base's rows.

    Attributes:
        live: (N,) bool, the base's rows that were not removed since; None where all are.
    """

    manifest: Manifest
    segment: Segment | None
    delta: Delta
    live: ArrayBool | None

    @property
    def kind(self) -> str:
        """How it is searched: "ivf", "flat", or "empty" where nothing is in it."""
        if self.segment is not None:
            return self.segment.kind
        return "empty" if self.manifest.count == 0 else "flat"

    @property
    def removed(self) -> int:
        """Rows of the base that are masked."""
        return 0 if self.live is None else int((~self.live).sum())

    def held(self, ids: ArrayI64) -> ArrayI64:
        """Those of ``ids`` (M,) that are in the index."""
        held = np.isin(ids, self.delta.ids)
        if self.segment is not None:
            rows = self.segment.rows_of(ids)
            if self.live is not None:
                rows = rows[self.live[rows]]
            held |= np.isin(ids, self.segment.ids[rows])
        return ids[held]

    def entries(self) -> tuple[ArrayI64, ArrayF32]:
        """Every id (N,) ascending, and its vector (N, D), as copies."""
        ids, vectors = self.delta.ids, self.delta.vectors
        if self.segment is not None:
            rows = slice(None) if self.live is None else self.live
            ids = np.concatenate([self.segment.ids[rows], ids])
            vectors = np.concatenate([self.segment.vectors[rows], vectors])
        order = np.argsort(ids)
        return ids[order], vectors.reshape(-1, self.manifest.dim)[order]

    def search(
        self, query: ArrayF32, k: int, allowed: ArrayI64 | None, excluded: ArrayI64 | None
    ) -> Found:
        """The ``k`` nearest: the log exactly, the base by FAISS, merged. ``allowed`` is sorted."""
        delta = self.delta
        parts = [
            exact_search(query, delta.ids, delta.vectors, k, allowed=allowed, excluded=excluded)
        ]
        if self.segment is not None:
            mask = _permitted(self.segment, self.live, allowed, excluded)
            parts.append(self.segment.search(query, k, mask))
        return exact_merge(parts, k)


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
    if not manifest.base:
        segment = None
    elif previous is not None and previous.manifest.base == manifest.base:
        segment = previous.segment
    else:
        segment = read_segment(folder / manifest.base, dim=dim, gpu_above=gpu_above)
    delta = read_delta(folder / manifest.delta, dim=dim, n_records=manifest.n_delta_records)
    live = None
    if segment is not None and len(gone := segment.rows_of(delta.touched)):
        live = np.ones(len(segment.ids), dtype=np.bool_)
        live[gone] = False
    return Snapshot(manifest, segment, delta, live)


def _permitted(
    segment: Segment, live: ArrayBool | None, allowed: ArrayI64 | None, excluded: ArrayI64 | None
) -> ArrayBool | None:
    """(N,) bool over the base's rows; None where every row may be found."""
    mask = live
    if allowed is not None:
        mask = np.zeros(len(segment.ids), dtype=np.bool_)
        mask[segment.rows_of(allowed)] = True
        if live is not None:
            mask &= live
    if excluded is not None and len(rows := segment.rows_of(excluded)):
        mask = np.ones(len(segment.ids), dtype=np.bool_) if mask is None else mask.copy()
        mask[rows] = False
    return mask
