"""The index against FAISS Flat: recall, time, memory; plain and filtered.

``python -m tests.bench.index`` measures 10,000 to 1,000,000 vectors and writes the section;
``--ten-million`` adds 10,000,000 (some 14 GB of disk), ``--sizes`` names others. With ``--folder``
vectors and indexes stay there, and a run that was stopped goes on with those that are finished.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from ml.index import open_index
from ml.index.files.engine import FaissIndex
from ml.index.selection import Selection
from tests.bench.measure import Row, Section, median_ms, p95_ms
from tests.bench.vectors import clustered

DIM, K, QUERIES = 144, 25, 100
SIZES = (10_000, 100_000, 1_000_000)
SHARES = (None, 0.1, 0.01, 0.0001)
LEFT_OUT = 20  # the query itself and the rest of its patient
_MAX_EXHAUSTIVE = 1_000_000  # vectors: beyond, Flat takes seconds a query
_CHUNK = 131_072
_LOOK_S = 0.02  # between two looks at the memory of a build


def index_against_flat(folder: Path, sizes: tuple[int, ...] = SIZES) -> Section:
    """Both answer each query in turn, so that other load of the machine affects both."""
    section = Section(
        "Index of vectors",
        f"{K} nearest of vectors of {DIM} values, clustered as real ones are; {QUERIES} queries, "
        f"which are rows of the index with noise, {LEFT_OUT} ids left out of each. Filters permit "
        "rows by chance, or whole clusters. The alternative is FAISS Flat with its own "
        "filter (a bitmap made beforehand) and one thread; queries alternate between the two. "
        "Value and ratio are medians of the processor time of a call, which does not depend on "
        "other load; p50 and p95 of the elapsed time do. Recall is against exact search. The set "
        "of permitted ids is reused, as in the portal; the first search with it, which takes "
        "longer, is listed. Up to 500,000 vectors the index is flat. Memory is private, without "
        "mapped files. A size that a run does not measure keeps its rows.",
    )
    for size in sizes:
        for row in _measure(folder, size):
            costs_path = f"{row.what:<90} {row.value:10.3f} {row.unit}  {row.against}"
            print(costs_path, flush=True)  # ten million take long
            section.rows.append(row)
    return section


def _measure(folder: Path, size: int) -> Iterator[Row]:
    vectors, clusters = vectors_made(folder, size)
    built = _built(folder, size, vectors)
    index = open_index(folder / str(size), dim=DIM)
    flat = faiss.read_index(
        str(folder / str(size) / "base-000001" / "flat.faiss"), faiss.IO_FLAG_MMAP_IFC
    )
    rng = np.random.default_rng(2)
    rows = rng.integers(0, size, QUERIES)
    queries = vectors[rows] + rng.standard_normal((QUERIES, DIM)).astype(np.float32) * 0.02
    name = f"{size:,} vectors"
    on_disk = sum(file.stat().st_size for file in (folder / str(size)).rglob("*") if file.is_file())
    yield Row(f"{name}: processor time of the build, {index.stats.kind}", built["used_s"], "s")
    yield Row(f"{name}: memory of the build at its peak", built["mib"], "MiB")
    yield Row(f"{name}: files, mapped and shared", on_disk / 2**20, "MiB")
    filters: list[tuple[str, np.ndarray | None]] = []
    for share in SHARES:
        costs_path = "plain" if share is None else f"filter {share:.2%}"
        filters.append(
            (costs_path, None if share is None else np.flatnonzero(rng.random(size) < share))
        )
    few = np.isin(clusters, rng.choice(clusters.max() + 1, 200, replace=False))
    filters.append((f"filter of clusters {few.mean():.1%}", np.flatnonzero(few)))
    for costs_path, permitted in filters:
        if permitted is None or len(permitted) > K:
            questions = _Asked(vectors, queries, rows, permitted)
            yield _row(f"{name}, {costs_path}", index, flat, questions)


def vectors_made(folder: Path, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors (N, DIM) of a size and the cluster of each (N,); made here, unless they were."""
    path = folder / f"{size}.npy"
    if not path.exists():
        clustered(size, DIM, folder / f"part-{size}.npy")
        (folder / f"part-{size}.clusters.npy").rename(path.with_suffix(".clusters.npy"))
        (folder / f"part-{size}.npy").rename(path)
    return np.load(path, mmap_mode="r"), np.load(folder / f"{size}.clusters.npy")


def _built(folder: Path, size: int, vectors: np.ndarray) -> dict[str, float]:
    """Costs of building the index, which is built here unless it exists."""
    costs_path = folder / f"{size}.built.json"
    if not costs_path.exists():
        shutil.rmtree(folder / str(size), ignore_errors=True)
        used = time.process_time()
        with _peak_mib() as mib:
            open_index(folder / str(size), dim=DIM).build(np.arange(size), vectors)
        spent = time.process_time() - used
        costs_path.write_text(json.dumps({"used_s": spent, "mib": mib[0]}))
    data: dict[str, float] = json.loads(costs_path.read_text())
    return data


@contextmanager
def _peak_mib() -> Iterator[list[float]]:
    """Measure the peak of this process's private memory above its start, in [0]."""
    before, peak, ended = _own_mib(), [0.0], threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_S):
            peak[0] = max(peak[0], _own_mib() - before)

    watching = threading.Thread(target=look)
    watching.start()
    try:
        yield peak
    finally:
        ended.set()
        watching.join()


def _own_mib() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) / 1024


@dataclass(frozen=True)
class _Asked:
    """Vectors (N, D), queries (Q, D), the row of each, and the rows that may be found."""

    vectors: np.ndarray
    queries: np.ndarray
    own: np.ndarray
    permitted: np.ndarray | None


def _row(name: str, index: FaissIndex, flat: Any, questions: _Asked) -> Row:
    vectors, queries, permitted = questions.vectors, questions.queries, questions.permitted
    rows = questions.own
    size, rng = len(vectors), np.random.default_rng(7)
    left_out = [np.unique(np.r_[row, rng.integers(0, size, LEFT_OUT - 1)]) for row in rows]
    truth = exact_rows(vectors, queries, permitted, left_out)
    selection = None if permitted is None else Selection(permitted)
    mask = np.zeros(size, dtype=np.bool_)
    mask[slice(None) if permitted is None else permitted] = True
    bits = np.packbits(mask, bitorder="little")
    parameters = None
    if permitted is not None:
        parameters = faiss.SearchParameters(sel=faiss.IDSelectorBitmap(bits))

    def ours(n: int) -> np.ndarray:
        return index.search(queries[n], K, allowed=selection, excluded=left_out[n])[0]

    def theirs(n: int) -> None:
        flat.search(queries[n : n + 1], K, params=parameters)

    first = _spent(ours, 0).clock
    recall = [np.isin(truth[n], ours(n)).mean() for n in range(QUERIES)]
    theirs(0)
    ours_s, flat_s = [], []  # both warm: what they read is in memory
    for n in range(QUERIES):
        ours_s.append(_spent(ours, n))
        if n % (3 if size <= _MAX_EXHAUSTIVE else 10) == 0:  # the slow one: fewer times
            flat_s.append(_spent(theirs, n))
    memory = "" if selection is None else f", set {selection.nbytes / 2**20:.1f} MiB"
    used, flat_used = (np.array([usage.processor for usage in spent]) for spent in (ours_s, flat_s))
    clock, flat_clock = (np.array([usage.clock for usage in spent]) for spent in (ours_s, flat_s))
    return Row(
        f"{name}: recall {np.mean(recall):.4f}, elapsed p50 {median_ms(clock):.2f} and p95 "
        f"{p95_ms(clock):.2f} ms, first {first * 1e3:.1f} ms{memory}; processor time",
        median_ms(used),
        "ms",
        f"FAISS Flat, {median_ms(flat_used):.2f} ms, elapsed p50 {median_ms(flat_clock):.2f} "
        f"and p95 {p95_ms(flat_clock):.2f} ms; {median_ms(used) / median_ms(flat_used):.3f} of its "
        f"processor time, {median_ms(clock) / median_ms(flat_clock):.3f} of its elapsed time",
        median_ms(flat_used) / median_ms(used),
        "recall of at least .99 in .05 of Flat's time" if size >= 1_000_000 else "",
    )


@dataclass(frozen=True)
class _Spent:
    """Elapsed seconds of a call, and of this thread's processor time."""

    clock: float
    processor: float


def _spent(function: Callable[[int], object], n: int) -> _Spent:
    began, used = time.perf_counter(), time.thread_time()
    function(n)
    return _Spent(time.perf_counter() - began, time.thread_time() - used)


def exact_rows(
    vectors: np.ndarray,
    queries: np.ndarray,
    permitted: np.ndarray | None,
    left_out: list[np.ndarray],
) -> list[np.ndarray]:
    """The exact rows of each query, a chunk of the vectors at a time."""
    best: list[list[tuple[float, int]]] = [[] for _ in queries]
    rows = np.arange(len(vectors)) if permitted is None else permitted
    wanted = K + LEFT_OUT
    for start in range(0, len(rows), _CHUNK):
        some = rows[start : start + _CHUNK]
        part = np.asarray(vectors[some], dtype=np.float64)
        squared = np.square(part).sum(axis=1) - 2 * queries.astype(np.float64) @ part.T
        last = min(wanted, len(some)) - 1
        for n, near in enumerate(np.argpartition(squared, last, axis=1)[:, : last + 1]):
            best[n] += zip(squared[n, near].tolist(), some[near].tolist(), strict=True)
    return [
        np.array([row for _, row in sorted(result) if row not in set(gone.tolist())][:K])
        for result, gone in zip(best, left_out, strict=True)
    ]


def _of(row: Row) -> str:
    """The size that a row is of, in words."""
    return row.what.partition(" vectors")[0] + " vectors"


def main() -> int:
    """Measure, print, write the section into the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ten-million", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--no-report", action="store_true")
    parser.add_argument("--folder", type=Path, help="keep what is made here, and go on with it")
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    sizes = (*options.sizes, 10_000_000) if options.ten_million else tuple(options.sizes)
    from tests.bench import report

    with tempfile.TemporaryDirectory() as name:
        section = index_against_flat(options.folder or Path(name), sizes)
    if not options.no_report:
        measured = {f"{size:,} vectors" for size in sizes}
        standing = [row for row in report.rows_of(section.title) if _of(row) not in measured]
        rows = [*standing, *section.rows]
        section.rows = sorted(rows, key=lambda row: int(_of(row).split()[0].replace(",", "")))
        report.replace(section, after="Similar cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
