"""The FAISS engine: a mapped base, an exact delta, a manifest swapped by rename."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError, IndexFormatError
from ml.files import sync_folder
from ml.index.delta import Delta, added, append_records, read_delta, removed
from ml.index.exact import exact_merge, exact_search
from ml.index.inputs import checked_entries, checked_ids, checked_k, checked_query
from ml.index.manifest import (
    Manifest,
    manifest_stamp,
    read_manifest,
    write_manifest,
    writer_lock,
)
from ml.index.protocol import IndexStats
from ml.index.segment import Segment, read_segment, write_segment
from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64, Progress, no_progress

_READ_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """How an index grows."""

    ivf_above: int = 500_000  # bases of more vectors get inverted lists: approximate, so not sooner
    delta_least: int = 4_096  # records the log may hold before it is folded into the base...
    delta_share: int = 8  # ...or a base's size divided by this, where that is more...
    delta_most: int = 16_384  # ...but never more than this: a reader replays the log whole
    lock_timeout_s: float = 60.0  # how long a writer waits for another one


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """One version, opened. ``live`` (N,) bool masks the base's rows; None where none is removed."""

    manifest: Manifest
    segment: Segment | None
    delta: Delta
    live: ArrayBool | None


class FaissIndex:
    """A ``VectorIndex`` in a folder: many readers, one writer at a time, across processes.

    A reader looks at the manifest's stamp before each search, so it sees a new version at once.
    What a crash leaves behind is not named by the manifest, and the next writer removes it.
    """

    def __init__(self, folder: Path, *, dim: int, tag: str = "", config: IndexConfig) -> None:
        self._folder, self._dim, self._tag, self._config = folder, dim, tag, config
        self._lock = threading.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._snapshot: _Snapshot | None = None
        self._current()

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._dim

    @property
    def stats(self) -> IndexStats:
        """The state of the newest version."""
        snapshot = self._current()
        segment, manifest = snapshot.segment, snapshot.manifest
        kind = segment.kind if segment else "empty" if manifest.count == 0 else "flat"
        return IndexStats(
            version=manifest.version,
            count=manifest.count,
            dim=self._dim,
            tag=manifest.tag,
            kind=kind,
            n_delta=len(snapshot.delta.ids),
            n_removed=0 if snapshot.live is None else int((~snapshot.live).sum()),
        )

    def build(
        self, ids: npt.ArrayLike, vectors: npt.ArrayLike, *, progress: Progress = no_progress
    ) -> int:
        """Replace the whole content, in a new version that readers see in one step.

        Args:
            ids: (N,) int64, unique. vectors: (N, D) float32, finite. N may not be 0.
        Returns:
            The new version.
        Raises:
            ShapeError, BadInputError: as documented on ``ml.index.inputs.checked_entries``.
            IndexBusyError: another writer does not finish.
        """
        entries = checked_entries(ids, vectors, self._dim)
        with self._writing() as snapshot:
            return self._swap_base(snapshot, *entries, progress)

    def add(self, ids: npt.ArrayLike, vectors: npt.ArrayLike) -> int:
        """Add vectors under new ids; found by the next search of every reader.

        Args:
            ids: (N,) int64, unique and none of them in the index. vectors: (N, D) float32, finite.
        Returns:
            The new version.
        Raises:
            ShapeError, BadInputError: as for ``build``; an id that is in the index already.
            IndexBusyError: another writer does not finish.
        """
        new_ids, new_vectors = checked_entries(ids, vectors, self._dim)
        with self._writing() as snapshot:
            held = _held(snapshot, new_ids)
            if len(held):
                raise BadInputError(f"id {held[0]} is in the index already; remove it first")
            if self._overflows(snapshot, len(new_ids)):
                old_ids, old_vectors = _live_entries(snapshot, self._dim)
                all_ids = np.concatenate([old_ids, new_ids])
                order = np.argsort(all_ids)
                all_vectors = np.concatenate([old_vectors, new_vectors])[order]
                return self._swap_base(snapshot, all_ids[order], all_vectors, no_progress)
            return self._append(snapshot, added(new_ids, new_vectors), len(new_ids))

    def remove(self, ids: npt.ArrayLike) -> int:
        """Remove ``ids`` (N,) int64; those that are not in the index are passed over.

        Returns:
            How many were removed.
        Raises:
            ShapeError: not (N,) whole numbers. IndexBusyError: another writer does not finish.
        """
        gone = np.unique(checked_ids(ids))
        with self._writing() as snapshot:
            held = _held(snapshot, gone)
            if len(held) == 0:
                return 0
            if self._overflows(snapshot, len(held)):
                old_ids, old_vectors = _live_entries(snapshot, self._dim)
                keep = ~np.isin(old_ids, held)
                self._swap_base(snapshot, old_ids[keep], old_vectors[keep], no_progress)
            else:
                self._append(snapshot, removed(held, self._dim), -len(held))
            return len(held)

    def compact(self, *, progress: Progress = no_progress) -> int:
        """Fold the log into a new base; returns the version, the same where nothing was to do."""
        with self._writing() as snapshot:
            if snapshot.manifest.n_delta_records == 0:
                return snapshot.manifest.version
            return self._swap_base(snapshot, *_live_entries(snapshot, self._dim), progress)

    def search(
        self,
        q: npt.ArrayLike,
        k: int,
        allowed: npt.ArrayLike | None = None,
        excluded: npt.ArrayLike | None = None,
    ) -> tuple[ArrayI64, ArrayF64]:
        """The nearest vectors by Euclidean distance, permission and exclusion inside the search.

        Args:
            q: (D,) float32, finite.
            k: how many at most; fewer come back where fewer are permitted.
            allowed: (M,) int64, the only ids that may come back; None permits every id.
            excluded: (M,) int64, ids that may not come back.
        Returns:
            ids (k,) int64 and distances (k,) float64, nearest first, ties ordered by id.
        Raises:
            ShapeError: q is not (D,), or an id array is not (M,) whole numbers.
            BadInputError: k below 1, or q holds NaN or infinity.
        """
        query, k = checked_query(q, self._dim), checked_k(k)
        allow = None if allowed is None else np.unique(checked_ids(allowed, name="allowed"))
        exclude = None if excluded is None else checked_ids(excluded, name="excluded")
        snapshot = self._current()
        delta = snapshot.delta
        parts = [exact_search(query, delta.ids, delta.vectors, k, allowed=allow, excluded=exclude)]
        if snapshot.segment is not None:
            mask = _base_mask(snapshot.segment, snapshot.live, allow, exclude)
            parts.append(snapshot.segment.search(query, k, mask))
        return exact_merge(parts, k)

    # -- reading ---------------------------------------------------------------------------------

    def _current(self) -> _Snapshot:
        """The newest version, opened. Opens again when a writer cleared files under our feet."""
        stamp = manifest_stamp(self._folder)
        snapshot = self._snapshot
        if snapshot is not None and stamp == self._stamp:
            return snapshot
        with self._lock:
            for attempt in range(_READ_ATTEMPTS):
                stamp = manifest_stamp(self._folder)
                if self._snapshot is not None and stamp == self._stamp:
                    return self._snapshot
                try:
                    opened = self._open(self._snapshot)
                except FileNotFoundError as error:
                    if attempt == _READ_ATTEMPTS - 1:
                        raise IndexFormatError(
                            "a file that the manifest names is missing"
                        ) from error
                    continue
                self._stamp, self._snapshot = stamp, opened
                return opened
        raise IndexFormatError("the index changes faster than it can be opened")

    def _open(self, previous: _Snapshot | None) -> _Snapshot:
        manifest = read_manifest(self._folder)
        if manifest is None:
            manifest = Manifest(0, self._dim, self._tag, 0, base="", delta="", n_delta_records=0)
        self._check_identity(manifest)
        if not manifest.base:
            segment = None
        elif previous is not None and previous.manifest.base == manifest.base:
            segment = previous.segment
        else:
            segment = read_segment(self._folder / manifest.base, dim=self._dim)
        delta = read_delta(
            self._folder / manifest.delta, dim=self._dim, n_records=manifest.n_delta_records
        )
        live = None
        if segment is not None and len(gone := segment.rows_of(delta.touched)):
            live = np.ones(len(segment.ids), dtype=np.bool_)
            live[gone] = False
        return _Snapshot(manifest, segment, delta, live)

    def _check_identity(self, manifest: Manifest) -> None:
        if manifest.dim != self._dim:
            raise IndexFormatError(f"the index: expected dim {self._dim}, got {manifest.dim}")
        if self._tag and manifest.tag and manifest.tag != self._tag:
            raise IndexFormatError(f"the index: expected tag {self._tag!r}, got {manifest.tag!r}")

    # -- writing ---------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[_Snapshot]:
        with writer_lock(self._folder, timeout_s=self._config.lock_timeout_s):
            yield self._current()

    def _overflows(self, snapshot: _Snapshot, n_more: int) -> bool:
        config, segment = self._config, snapshot.segment
        share = len(segment.ids) // config.delta_share if segment is not None else 0
        limit = min(max(config.delta_least, share), config.delta_most)
        return snapshot.manifest.n_delta_records + n_more > limit

    def _append(
        self, snapshot: _Snapshot, records: np.ndarray[tuple[int], np.dtype[np.void]], gained: int
    ) -> int:
        old = snapshot.manifest
        new = replace(
            old,
            version=old.version + 1,
            tag=self._tag or old.tag,
            count=old.count + gained,
            delta=old.delta or f"delta-{old.version + 1:06d}.log",
            n_delta_records=old.n_delta_records + len(records),
        )
        append_records(self._folder / new.delta, records, n_committed=old.n_delta_records)
        write_manifest(self._folder, new)
        return new.version

    def _swap_base(
        self, snapshot: _Snapshot, ids: ArrayI64, vectors: ArrayF32, progress: Progress
    ) -> int:
        old, version = snapshot.manifest, snapshot.manifest.version + 1
        base, delta = f"base-{version:06d}", f"delta-{version:06d}.log"
        self._clear(keep={old.base, old.delta})
        if len(ids):
            write_segment(
                self._folder / base,
                ids,
                vectors,
                ivf_above=self._config.ivf_above,
                progress=progress,
            )
            sync_folder(self._folder / base)
        new = Manifest(
            version=version,
            dim=self._dim,
            tag=self._tag or old.tag,
            count=len(ids),
            base=base if len(ids) else "",
            delta=delta,
            n_delta_records=0,
        )
        write_manifest(self._folder, new)
        self._clear(keep={new.base, new.delta})
        return version

    def _clear(self, *, keep: set[str]) -> None:
        """Remove versions that no manifest names. Readers that mapped them keep their pages."""
        for path in [*self._folder.glob("base-*"), *self._folder.glob("delta-*.log")]:
            if path.name not in keep:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _base_mask(
    segment: Segment, live: ArrayBool | None, allowed: ArrayI64 | None, excluded: ArrayI64 | None
) -> ArrayBool | None:
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


def _held(snapshot: _Snapshot, ids: ArrayI64) -> ArrayI64:
    """Those of ``ids`` (M,) that are live in ``snapshot``."""
    held = np.isin(ids, snapshot.delta.ids)
    segment = snapshot.segment
    if segment is not None:
        rows = segment.rows_of(ids)
        if snapshot.live is not None:
            rows = rows[snapshot.live[rows]]
        held |= np.isin(ids, segment.ids[rows])
    return ids[held]


def _live_entries(snapshot: _Snapshot, dim: int) -> tuple[ArrayI64, ArrayF32]:
    """Every live id (N,) ascending, and its vector (N, D), as copies."""
    ids, vectors = snapshot.delta.ids, snapshot.delta.vectors
    if snapshot.segment is not None:
        rows = slice(None) if snapshot.live is None else snapshot.live
        ids = np.concatenate([snapshot.segment.ids[rows], ids])
        vectors = np.concatenate([snapshot.segment.vectors[rows], vectors])
    order = np.argsort(ids)
    return ids[order], vectors.reshape(-1, dim)[order]
