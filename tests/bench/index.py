"""The index against FAISS Flat: recall, time, memory; plain and filtered.

``python -m tests.bench.index`` measures 10,000 to 1,000,000 vectors and writes the section;
``--ten-million`` adds 10,000,000 (some 20 GB of disk), ``--sizes`` names others.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from ml.index import FaissIndex, Selection, open_index
from tests.bench.measure import Row, Section, median_ms, p95_ms
from tests.bench.vectors import clustered

DIM, K, QUERIES = 144, 25, 100
SIZES = (10_000, 100_000, 1_000_000)
SHARES = (None, 0.1, 0.01, 0.0001)
LEFT_OUT = 20  # the query itself and the rest of its patient
_CHUNK = 131_072


def index_against_flat(folder: Path, sizes: tuple[int, ...] = SIZES) -> Section:
    """Each query is asked of both in turn, so that what else the machine does falls on both."""
    section = Section(
        "Index of vectors",
        f"{K} nearest of vectors of {DIM} values, clustered as real ones are; {QUERIES} queries, "
        f"which are rows of the index with noise, {LEFT_OUT} ids left out of each. Filters permit "
        "rows by chance, or whole clusters. The alternative is FAISS Flat with its own "
        "filter (a bitmap made beforehand) and one thread; both are asked in turn. The ratio is "
        "that of the median times a call. Recall is against exact search; "
        "the filter's set is kept, as the portal keeps it. The first search with a set costs more, "
        "and is given. Flat is what the index itself does up to 500,000 vectors.",
    )
    for size in sizes:
        _measure(section, folder, size)
    return section


def _measure(section: Section, folder: Path, size: int) -> None:
    vectors = clustered(size, DIM, folder / f"{size}.npy")
    clusters = np.load(folder / f"{size}.clusters.npy")
    index = open_index(folder / str(size), dim=DIM)
    began, used = time.perf_counter(), time.process_time()
    index.build(np.arange(size), vectors)
    built, used = time.perf_counter() - began, time.process_time() - used
    flat = faiss.read_index(
        str(folder / str(size) / "base-000001" / "flat.faiss"), faiss.IO_FLAG_MMAP_IFC
    )
    rng = np.random.default_rng(2)
    rows = rng.integers(0, size, QUERIES)
    queries = vectors[rows] + rng.standard_normal((QUERIES, DIM)).astype(np.float32) * 0.02
    name = f"{size:,} vectors"
    on_disk = sum(file.stat().st_size for file in (folder / str(size)).rglob("*") if file.is_file())
    section.rows += [
        Row(f"{name}: build ({used:.0f} s of processor time), {index.stats.kind}", built, "s"),
        Row(f"{name}: files, mapped and shared", on_disk / 2**20, "MiB"),
    ]
    filters: list[tuple[str, np.ndarray | None]] = []
    for share in SHARES:
        told = "plain" if share is None else f"filter {share:.2%}"
        filters.append((told, None if share is None else np.flatnonzero(rng.random(size) < share)))
    few = np.isin(clusters, rng.choice(clusters.max() + 1, 200, replace=False))
    filters.append((f"filter of clusters {few.mean():.1%}", np.flatnonzero(few)))
    for told, permitted in filters:
        if permitted is None or len(permitted) > K:
            asked = _Asked(vectors, queries, rows, permitted)
            section.rows.append(_row(f"{name}, {told}", index, flat, asked))


@dataclass(frozen=True)
class _Asked:
    """Vectors (N, D), queries (Q, D), the row of each, and the rows that may be found."""

    vectors: np.ndarray
    queries: np.ndarray
    own: np.ndarray
    permitted: np.ndarray | None


def _row(name: str, index: FaissIndex, flat: Any, asked: _Asked) -> Row:
    vectors, queries, permitted = asked.vectors, asked.queries, asked.permitted
    own = asked.own
    size, rng = len(vectors), np.random.default_rng(7)
    left_out = [np.unique(np.r_[row, rng.integers(0, size, LEFT_OUT - 1)]) for row in own]
    truth = _exact(vectors, queries, permitted, left_out)
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

    first = _seconds(ours, 0)
    ours(1), ours(2), theirs(0)
    ours_s, flat_s, recall = [], [], []
    for n in range(QUERIES):
        began = time.perf_counter()
        found = ours(n)
        ours_s.append(time.perf_counter() - began)
        if n % 3 == 0:  # the slow one: fewer times
            flat_s.append(_seconds(theirs, n))
        recall.append(np.isin(truth[n], found).mean())
    ours_array, flat_array = np.array(ours_s), np.array(flat_s)
    memory = "" if selection is None else f", set {selection.nbytes / 2**20:.1f} MiB"
    return Row(
        f"{name}: recall {np.mean(recall):.4f}, p95 {p95_ms(ours_array):.2f} ms, first "
        f"{first * 1e3:.1f} ms{memory}; median",
        median_ms(ours_array),
        "ms",
        f"FAISS Flat, median {median_ms(flat_array):.2f} ms "
        f"({median_ms(ours_array) / median_ms(flat_array):.3f} of its time)",
        median_ms(flat_array) / median_ms(ours_array),
        "recall of at least .99 in .05 of Flat's time" if size >= 1_000_000 else "",
    )


def _seconds(function: Callable[[int], object], n: int) -> float:
    began = time.perf_counter()
    function(n)
    return time.perf_counter() - began


def _exact(
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
        kept = min(wanted, len(some)) - 1
        for n, near in enumerate(np.argpartition(squared, kept, axis=1)[:, : kept + 1]):
            best[n] += zip(squared[n, near].tolist(), some[near].tolist(), strict=True)
    return [
        np.array([row for _, row in sorted(found) if row not in set(gone.tolist())][:K])
        for found, gone in zip(best, left_out, strict=True)
    ]


def main() -> int:
    """Measure, print, write the section into the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ten-million", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--no-report", action="store_true")
    asked = parser.parse_args()
    faiss.omp_set_num_threads(1)
    sizes = (*asked.sizes, 10_000_000) if asked.ten_million else tuple(asked.sizes)
    from tests.bench import report

    with tempfile.TemporaryDirectory() as name:
        section = index_against_flat(Path(name), sizes)
    for row in section.rows:
        print(f"{row.what:<90} {row.value:10.3f} {row.unit}  {row.against}")
    if not asked.no_report:
        report.replace(section, after="Similar cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
