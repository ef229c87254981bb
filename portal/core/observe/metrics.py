"""Metrics of this process. Several processes of a portal add up in a shared folder
(``PROMETHEUS_MULTIPROC_DIR``, which ``serve`` and the image set); see
``portal.operations.metrics``.
"""

from __future__ import annotations

from prometheus_client import Counter, Histogram

REQUEST_SECONDS = Histogram(
    "tessera_request_seconds",
    "Time from request to answer, by the pattern of the URL.",
    ("method", "route", "status"),
    # The budgets of docs/benchmarks.md lie between 10 ms and 300 ms; above it is slow or broken.
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.3, 1, 3, 10, 30),
)
_TILES = Counter(
    "tessera_tiles_total",
    "Tiles answered, by source: the memory of the process, or a file.",
    ("origin",),
)
TILES_FROM_MEMORY = _TILES.labels("memory")
TILES_FROM_FILE = _TILES.labels("file")
