"""Traces: off by default; if enabled, a span for each request and job, without addresses."""

from __future__ import annotations

import sys
from collections.abc import Callable
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
def spans(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(traces, "tracer", provider.get_tracer("test"))
    return exporter.get_finished_spans


def test_without_a_collector_no_span_is_recorded() -> None:
    with traces.tracer.start_as_current_span("x") as span:
        assert not span.is_recording()
        assert traces.traceparent() == ""


def test_a_collector_without_the_libraries_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(traces.VARIABLE, "http://127.0.0.1:4318")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
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
def test_a_job_is_a_span_in_the_trace_of_its_request(lab: Lab, spans: Callable[[], Any]) -> None:
    from portal.core.tasks import REGISTRY, job_task

    def broken(context: Any) -> None:
        raise UserError("Miller.svs is empty.", code="empty")

    job_task("traced")(broken)
    try:
        with traces.tracer.start_as_current_span("request"):
            job = job_submit(kind="traced", args={}, lab=lab, user=None)
        job_run(job.pk)
    finally:
        REGISTRY.pop("traced")
    request, span = spans()
    assert span.name == "job traced"
    assert span.context.trace_id == request.context.trace_id
    assert span.parent.span_id == request.context.span_id
    assert span.attributes["tessera.job_id"] == str(job.pk)
    assert span.attributes["tessera.job_state"] == "failed"
    assert "Miller" not in str(span.attributes)
