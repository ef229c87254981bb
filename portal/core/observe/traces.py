"""OpenTelemetry traces of requests and jobs: off unless ``OTEL_EXPORTER_OTLP_ENDPOINT`` is set.

The libraries are the extra ``traces``. Spans have patterns, kinds, codes and ids, like log lines;
everything else (sampling, headers, resource) is set by OpenTelemetry's own ``OTEL_`` variables.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from django.core.exceptions import ImproperlyConfigured

VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"
_state: dict[str, Any] = {"tracer": None}


class Span:
    """What is told of a piece of work; nothing where traces are off."""

    def __init__(self, inner: Any = None) -> None:
        self._inner = inner

    @property
    def is_on(self) -> bool:
        """Whether anybody listens."""
        return self._inner is not None

    def tell(self, *, name: str = "", **attributes: str | int) -> None:
        """Name and attributes that are known only at its end; ``__`` stands for a dot."""
        if self._inner is None:
            return
        if name:
            self._inner.update_name(name)
        for key, value in attributes.items():
            self._inner.set_attribute(key.replace("__", "."), value)


def traces_start(service: str) -> bool:
    """Send what this process does to the collector, where one is set. Call after any fork.

    Raises:
        ImproperlyConfigured: a collector is set, and the extra is not installed.
    """
    if not os.environ.get(VARIABLE):
        return False
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter") is None:
        raise ImproperlyConfigured(
            f"{VARIABLE} is set, but the libraries are not installed: pip install 'tessera[traces]'"
        )
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    traces_use(provider)
    return True


def traces_use(provider: Any) -> None:
    """Take spans to this provider; None: nowhere."""
    _state["tracer"] = provider.get_tracer("tessera") if provider is not None else None


@contextmanager
def span(name: str, *, headers: Mapping[str, str] | None = None) -> Iterator[Span]:
    """A piece of work; below the caller's own where its ``traceparent`` is among the headers."""
    tracer = _state["tracer"]
    if tracer is None:
        yield Span()
        return
    from opentelemetry import propagate

    sent = {key.lower(): value for key, value in (headers or {}).items()}
    with tracer.start_as_current_span(name, context=propagate.extract(sent)) as inner:
        yield Span(inner)
