"""``/metrics`` for Prometheus.

Requests and tiles are counted by the web processes. Jobs, indexes and disk are read from the
database and the volume at each scrape, so that every machine reports the same.
"""

from __future__ import annotations

import hmac
import os
import shutil
from collections.abc import Iterator

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from portal.core.errors import ForbiddenError
from portal.core.http.audit_rules import not_audited
from portal.embeddings.selectors.index_files.snapshots import index_states
from portal.jobs.selectors.jobs import workers_alive
from portal.jobs.selectors.metrics import (
    ended_job_metrics,
    failure_counts,
    queue_lengths,
    running_counts,
)

LOCAL = ("127.0.0.1", "::1")
_FORWARDED = ("X-Forwarded-For", "Forwarded", "X-Real-IP")


@not_audited("no data of patients")
@require_GET
def metrics(request: HttpRequest) -> HttpResponse:
    """Metrics in Prometheus' text format."""
    require_reader(request)
    registry = CollectorRegistry()
    registry.register(Figures())
    text = generate_latest(_registry()) + generate_latest(registry)
    response = HttpResponse(text, content_type=CONTENT_TYPE_LATEST)
    response["Cache-Control"] = "no-store"
    return response


def require_reader(request: HttpRequest) -> None:
    """Raise ``ForbiddenError`` without the token; if none is set, for remote clients."""
    token = settings.TESSERA_METRICS_TOKEN
    if token:
        header = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if hmac.compare_digest(header.encode(), token.encode()):
            return
        raise ForbiddenError("Metrics need the token of TESSERA_METRICS_TOKEN.")
    passed_on = any(name in request.headers for name in _FORWARDED)
    if passed_on or request.META.get("REMOTE_ADDR") not in LOCAL:
        raise ForbiddenError(
            "Metrics are available only on this machine; to read them from elsewhere, set "
            "TESSERA_METRICS_TOKEN."
        )


def _registry() -> CollectorRegistry:
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


class Figures:
    """Collector that reads its figures at each scrape."""

    def collect(self) -> Iterator[Metric]:
        """Yield metrics of the volume and, if it answers, of the database."""
        free = GaugeMetricFamily("tessera_storage_free_bytes", "Free on the storage volume.")
        size = GaugeMetricFamily("tessera_storage_size_bytes", "Size of the storage volume.")
        try:
            usage = shutil.disk_usage(settings.TESSERA_STORAGE)
        except OSError:
            pass  # alerts check for missing metrics
        else:
            free.add_metric((), usage.free)
            size.add_metric((), usage.total)
        yield from (free, size)
        up = GaugeMetricFamily("tessera_database_up", "1 if the database answered.")
        try:
            metrics = [*_jobs(), *_workers(), *_indexes()]
        except DatabaseError:
            metrics = []
        up.add_metric((), 1.0 if metrics else 0.0)
        yield from (up, *metrics)


def _jobs() -> list[Metric]:
    waiting = GaugeMetricFamily(
        "tessera_jobs_waiting", "Jobs in the queue.", labels=("kind", "queue")
    )
    age = GaugeMetricFamily(
        "tessera_jobs_oldest_seconds",
        "How long the oldest job has waited.",
        labels=("kind", "queue"),
    )
    for row in queue_lengths():
        waiting.add_metric((row.kind, row.queue), row.count)
        age.add_metric((row.kind, row.queue), row.oldest_s)
    running = GaugeMetricFamily("tessera_jobs_running", "Running jobs.", labels=("kind",))
    ended = CounterMetricFamily("tessera_jobs_ended", "Ended jobs.", labels=("kind", "state"))
    spent = CounterMetricFamily(
        "tessera_job_seconds", "Sum of the times from first start to end.", labels=("kind", "state")
    )
    failures = CounterMetricFamily(
        "tessera_jobs_failed", "Failed jobs by reason.", labels=("kind", "code")
    )
    for kind, count in running_counts():
        running.add_metric((kind,), count)
    for end in ended_job_metrics():
        ended.add_metric((end.kind, end.state), end.count)
        spent.add_metric((end.kind, end.state), end.seconds)
    for kind, code, count in failure_counts():
        failures.add_metric((kind, code), count)
    return [waiting, age, running, ended, spent, failures]


def _workers() -> list[Metric]:
    gauge = GaugeMetricFamily("tessera_workers_alive", "Workers that have reported lately.")
    gauge.add_metric((), workers_alive().count())
    return [gauge]


def _indexes() -> list[Metric]:
    age = GaugeMetricFamily(
        "tessera_index_age_seconds",
        "Age of the newest index file, in the scope where it is oldest.",
        labels=("encoder",),
    )
    newer = GaugeMetricFamily(
        "tessera_index_newer_embeddings",
        "Embeddings that are not in an index file yet and are searched from the database.",
        labels=("encoder",),
    )
    vectors = GaugeMetricFamily(
        "tessera_index_vectors", "Vectors in the newest index files.", labels=("encoder",)
    )
    size = GaugeMetricFamily(
        "tessera_index_size_bytes", "Size of the newest index files.", labels=("encoder",)
    )
    recall = GaugeMetricFamily(
        "tessera_index_recall",
        (
            "Share of exact answers found in a sample when the file was written; the lowest of all"
            " files."
        ),
        labels=("encoder",),
    )
    for row in index_states():
        age.add_metric((row.encoder,), row.age_s)
        newer.add_metric((row.encoder,), row.newer)
        vectors.add_metric((row.encoder,), row.vectors)
        size.add_metric((row.encoder,), row.size_bytes)
        recall.add_metric((row.encoder,), row.recall)
    return [age, newer, vectors, size, recall]
