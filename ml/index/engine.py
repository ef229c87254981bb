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
from ml.index.base.segment import write_segment
from ml.index.delta import added, append_records, removed
from ml.index.exact import Allowed
from ml.index.inputs import checked_entries, checked_ids, checked_k, checked_query
from ml.index.manifest import (
    Manifest,
    Stamp,
    manifest_file,
    stamp_of,
    write_manifest,
    writer_lock,
)
from ml.index.protocol import IndexStats
from ml.index.selection import Selection
from ml.index.snapshot import Snapshot, open_snapshot
from ml.types import ArrayF32, ArrayF64, ArrayI64, Progress, no_progress

_READ_ATTEMPTS = 20
"""A writer may clear the files of a version while it is opened; twenty in a row is no accident."""


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """How an index grows."""

    ivf_above: int = 500_000  # bases of more vectors get inverted lists: approximate, so not sooner
    gpu_above: int = 100_000  # bases of more vectors go to a GPU, where there is one
    delta_least: int = 4_096  # records the log may hold before it is folded into the base...
    delta_share: int = 8  # ...or a base's size divided by this, where that is more...
    delta_most: int = 16_384  # ...but never more than this: a reader replays the log whole
    lock_timeout_s: float = 60.0  # how long a writer waits for another one


class FaissIndex:
    """A ``VectorIndex`` in a folder: many readers, one writer at a time, across processes.

    A reader looks at the manifest's stamp before each search, so it sees a new version at once.
    What a crash leaves behind is not named by the manifest, and the next writer removes it.
    """

    def __init__(self, folder: Path, *, dim: int, tag: str = "", config: IndexConfig) -> None:
        self._folder, self._dim, self._tag, self._config = folder, dim, tag, config
        self._manifest = manifest_file(folder)
        self._lock = threading.Lock()
        self._stamp: Stamp | None = None
        self._snapshot: Snapshot | None = None
        self._current()

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._dim

    @property
    def stats(self) -> IndexStats:
        """The state of the newest version."""
        snapshot = self._current()
        manifest = snapshot.manifest
        return IndexStats(
            version=manifest.version,
            count=manifest.count,
            dim=self._dim,
            tag=manifest.tag,
            kind=snapshot.kind,
            n_delta=len(snapshot.delta.ids),
            n_removed=snapshot.removed,
            recall=snapshot.recall,
        )

    def ids(self) -> ArrayI64:
        """(N,) int64, every id it holds, ascending."""
        return self._current().ids()

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
            held = snapshot.held(new_ids)
            if len(held):
                raise BadInputError(f"id {held[0]} is already in the index; remove it first")
            if self._overflows(snapshot, len(new_ids)):
                old_ids, old_vectors = snapshot.entries()
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
            held = snapshot.held(gone)
            if len(held) == 0:
                return 0
            if self._overflows(snapshot, len(held)):
                old_ids, old_vectors = snapshot.entries()
                keep = ~np.isin(old_ids, held)
                self._swap_base(snapshot, old_ids[keep], old_vectors[keep], no_progress)
            else:
                self._append(snapshot, removed(held, self._dim), -len(held))
            return len(held)

    def compact(self, *, progress: Progress = no_progress) -> int:
        """Fold the log into a new base; returns the version, unchanged if the log was empty."""
        with self._writing() as snapshot:
            if snapshot.manifest.n_delta_records == 0:
                return snapshot.manifest.version
            return self._swap_base(snapshot, *snapshot.entries(), progress)

    def search(
        self,
        q: npt.ArrayLike,
        k: int,
        allowed: Allowed | None = None,
        excluded: npt.ArrayLike | None = None,
    ) -> tuple[ArrayI64, ArrayF64]:
        """The nearest vectors by Euclidean distance, permission and exclusion inside the search.

        Args:
            q: (D,) float32, finite.
            k: how many at most; fewer come back where fewer are permitted.
            allowed: (M,) int64, the only ids that may come back, or a ``Selection`` of them, which
                is faster where the same ids are asked for again; None permits every id.
            excluded: (M,) int64, ids that may not come back.
        Returns:
            ids (k,) int64 and distances (k,) float64, nearest first, ties ordered by id.
        Raises:
            ShapeError: q is not (D,), or an id array is not (M,) whole numbers.
            BadInputError: k below 1, or a value of q that is too large or not finite.
        """
        query, k = checked_query(q, self._dim), checked_k(k)
        if allowed is not None and not isinstance(allowed, Selection):
            allowed = Selection(allowed)
        exclude = None if excluded is None else checked_ids(excluded, name="excluded")
        return self._current().search(query, k, allowed, exclude)

    # -- reading ---------------------------------------------------------------------------------

    def _current(self) -> Snapshot:
        """The newest version, opened. Opens again when a writer cleared files under our feet."""
        stamp = stamp_of(self._manifest)
        snapshot = self._snapshot
        if snapshot is not None and stamp == self._stamp:
            return snapshot
        with self._lock:
            for attempt in range(_READ_ATTEMPTS):
                stamp = stamp_of(self._manifest)
                if self._snapshot is not None and stamp == self._stamp:
                    return self._snapshot
                try:
                    opened = open_snapshot(
                        self._folder,
                        dim=self._dim,
                        tag=self._tag,
                        previous=self._snapshot,
                        gpu_above=self._config.gpu_above,
                    )
                except FileNotFoundError as error:
                    if attempt == _READ_ATTEMPTS - 1:
                        raise IndexFormatError(
                            "a file that the manifest names is missing"
                        ) from error
                    continue
                self._stamp, self._snapshot = stamp, opened
                return opened
        raise IndexFormatError("the index changes faster than it can be opened")

    # -- writing ---------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[Snapshot]:
        with writer_lock(self._folder, timeout_s=self._config.lock_timeout_s):
            yield self._current()

    def _overflows(self, snapshot: Snapshot, n_more: int) -> bool:
        config, segment = self._config, snapshot.segment
        share = len(segment.ids) // config.delta_share if segment is not None else 0
        limit = min(max(config.delta_least, share), config.delta_most)
        return snapshot.manifest.n_delta_records + n_more > limit

    def _append(
        self, snapshot: Snapshot, records: np.ndarray[tuple[int], np.dtype[np.void]], gained: int
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
        self, snapshot: Snapshot, ids: ArrayI64, vectors: ArrayF32, progress: Progress
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
                gpu_above=self._config.gpu_above,
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
