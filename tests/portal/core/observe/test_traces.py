"""Traces: nothing unless asked for; then a span for each request and job, without addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from portal.core.observe import traces
from portal.core.tasks import UserError
from portal.jobs.services import job_submit
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab

pytest.importorskip("opentelemetry.sdk")


@pytest.fixture
def spans() -> Iterator[Callable[[], Any]]:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traces.traces_use(provider)
    yield exporter.get_finished_spans
    traces.traces_use(None)


def test_without_a_collector_nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(traces.VARIABLE, raising=False)
    assert traces.traces_start("web") is False
    with traces.span("x") as span:
        span.tell(name="y", a=1)


def test_a_collector_without_the_libraries_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(traces.VARIABLE, "http://127.0.0.1:4318")
    monkeypatch.setattr(traces, "find_spec", lambda name: None)
    with pytest.raises(ImproperlyConfigured, match=r"tessera\[traces\]"):
        traces.traces_start("web")


@pytest.mark.django_db
def test_a_request_is_a_span_below_the_callers(page: Client, spans: Callable[[], Any]) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    answer = page.get("/jobs/?q=Miller", headers={"traceparent": parent})
    (span,) = spans()
    assert span.name == "GET jobs/"
    assert f"{span.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert span.attributes["http.response.status_code"] == 200
    assert span.attributes["tessera.request_id"] == answer["X-Request-ID"]
    assert "Miller" not in str(span.attributes)


@pytest.mark.django_db
def test_a_job_is_a_span_with_its_kind_and_end(
    lab: Lab, spans: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from portal.core.tasks import REGISTRY, task

    def broken(context: Any) -> None:
        raise UserError("Miller.svs is empty.", code="empty")

    task("traced")(broken)
    try:
        job = job_submit(kind="traced", args={}, lab=lab, user=None)
        job_run(job.pk)
    finally:
        REGISTRY.pop("traced")
    (span,) = spans()
    assert span.name == "job traced"
    assert span.attributes["tessera.job_id"] == str(job.pk)
    assert span.attributes["tessera.job_state"] == "failed"
    assert "Miller" not in str(span.attributes)
