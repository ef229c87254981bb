"""OpenTelemetry: spans of requests and jobs, sent where ``OTEL_EXPORTER_OTLP_ENDPOINT`` is set.

The exporter is the extra ``traces``; without it the API's spans record nothing. Spans have
patterns, kinds, codes and ids, like log lines. OpenTelemetry's own ``OTEL_`` variables set the
rest (service name, sampling, headers).
"""

from __future__ import annotations

import os

from django.core.exceptions import ImproperlyConfigured
from opentelemetry import propagate, trace

VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"
tracer = trace.get_tracer("tessera")


def traces_start(service: str) -> None:
    """Send this process's spans to the collector, where one is set. Call after any fork.

    Args:
        service: Its name where ``OTEL_SERVICE_NAME`` has none.
    Raises:
        ImproperlyConfigured: a collector is set, and the extra is not installed.
    """
    if not os.environ.get(VARIABLE):
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise ImproperlyConfigured(
            f"{VARIABLE} is set, but the libraries are not installed: pip install 'tessera[traces]'"
        ) from None
    name = os.environ.get("OTEL_SERVICE_NAME") or service
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


def traceparent() -> str:
    """The current span as W3C ``traceparent``; empty where nothing is traced."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier.get("traceparent", "")
