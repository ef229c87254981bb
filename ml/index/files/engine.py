"""The FAISS engine: a memory-mapped base, an exact log of changes, and a manifest."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ml.errors import BadInputError, IndexFormatError
from ml.files import sync_folder
from ml.index.exact import SearchResult
from ml.index.files.delta import addition_records, append_records, removal_records
from ml.index.files.manifest import (
    Manifest,
    Stamp,
    manifest_path,
    stamp_of,
    write_manifest,
    writer_lock,
)
from ml.index.files.segments.segment import write_segment
from ml.index.files.snapshot import Snapshot, open_snapshot
from ml.index.protocol import IndexStats, VectorIndex
from ml.index.selection import Selection
from ml.types import ArrayF32, ArrayI64, Progress, no_progress

_READ_ATTEMPTS = 20
"""A writer may remove the files of a version while it is opened."""


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """Configuration of an index's growth."""

    # The log is folded into the base at 1 / delta_share of its size, within the bounds.
    ivf_above: int = 500_000  # size of a base beyond which it gets (approximate) inverted lists
    gpu_above: int = 100_000  # size of a base beyond which a GPU is used, if there is one
    min_delta: int = 4_096  # records
    delta_share: int = 8
    max_delta: int = 16_384  # records; a reader replays the whole log
    lock_timeout_s: float = 60.0  # wait for another writer


class FaissIndex(VectorIndex):
    """A vector index in a folder: many readers, one writer at a time, across processes.

    A reader checks the stamp of the manifest before each search, so it sees a new version at once.
    Files that a crash leaves behind are not in the manifest; the next writer removes them.
    """

    def __init__(self, folder: Path, *, dim: int, tag: str = "", config: IndexConfig) -> None:
        self._folder, self._dim, self._tag, self._config = folder, dim, tag, config
        self._manifest = manifest_path(folder)
        self._lock = threading.Lock()
        self._stamp: Stamp | None = None
        self._snapshot: Snapshot | None = None
        self._current()

    @property
    def dim(self) -> int:
        """See ``VectorIndex``."""
        return self._dim

    @property
    def stats(self) -> IndexStats:
        """See ``VectorIndex``."""
        snapshot = self._current()
        manifest = snapshot.manifest
        return IndexStats(
            version=manifest.version,
            count=manifest.count,
            dim=self._dim,
            tag=manifest.tag,
            kind=snapshot.kind,
            n_delta=len(snapshot.delta.ids),
            n_removed=snapshot.n_removed,
            recall=snapshot.recall,
        )

    def ids(self) -> ArrayI64:
        """See ``VectorIndex``."""
        return self._current().ids()

    def _build(self, ids: ArrayI64, vectors: ArrayF32, progress: Progress) -> int:
        with self._writing() as snapshot:
            return self._swap_base(snapshot, ids, vectors, progress)

    def _add(self, ids: ArrayI64, vectors: ArrayF32) -> int:
        with self._writing() as snapshot:
            existing = snapshot.existing(ids)
            if len(existing):
                raise BadInputError(f"id {existing[0]} is already in the index; remove it first")
            if self._overflows(snapshot, len(ids)):
                old_ids, old_vectors = snapshot.entries()
                all_ids = np.concatenate([old_ids, ids])
                order = np.argsort(all_ids)
                all_vectors = np.concatenate([old_vectors, vectors])[order]
                return self._swap_base(snapshot, all_ids[order], all_vectors, no_progress)
            return self._append(snapshot, addition_records(ids, vectors), len(ids))

    def _remove(self, ids: ArrayI64) -> int:
        with self._writing() as snapshot:
            existing = snapshot.existing(ids)
            if len(existing) == 0:
                return 0
            if self._overflows(snapshot, len(existing)):
                old_ids, old_vectors = snapshot.entries()
                keep = ~np.isin(old_ids, existing)
                self._swap_base(snapshot, old_ids[keep], old_vectors[keep], no_progress)
            else:
                self._append(snapshot, removal_records(existing, self._dim), -len(existing))
            return len(existing)

    def _search(
        self, q: ArrayF32, k: int, allowed: Selection | None, excluded: ArrayI64 | None
    ) -> SearchResult:
        return self._current().search(q, k, allowed, excluded)

    def _current(self) -> Snapshot:
        """Open the newest version; retry if a writer removes its files while they are opened."""
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
                    current = open_snapshot(
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
                self._stamp, self._snapshot = stamp, current
                return current
        raise IndexFormatError("the index changes faster than it can be opened")

    @contextmanager
    def _writing(self) -> Iterator[Snapshot]:
        with writer_lock(self._folder, timeout_s=self._config.lock_timeout_s):
            yield self._current()

    def _overflows(self, snapshot: Snapshot, n_more: int) -> bool:
        config, segment = self._config, snapshot.segment
        share = len(segment.ids) // config.delta_share if segment is not None else 0
        limit = min(max(config.min_delta, share), config.max_delta)
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
        """Remove other versions. Readers that mapped them keep their pages."""
        for path in [*self._folder.glob("base-*"), *self._folder.glob("delta-*.log")]:
            if path.name not in keep:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
