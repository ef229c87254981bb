"""Request ids, log lines, durations and spans of requests."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from opentelemetry import propagate

from portal.core.observe import ids, traces
from portal.core.observe.metrics import REQUEST_SECONDS

logger = logging.getLogger("portal.request")

HEADER = "X-Request-ID"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
UNKNOWN_ROUTE = "unknown"  # all unknown URLs share one label


class RequestMiddleware:
    """Outermost middleware, so that all log lines carry the request's id."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle a request and record it; its URL is not logged, since it may contain a secret."""
        name = ids.request_id_of(request.headers.get(HEADER, ""))
        start_s = time.perf_counter()
        parent = propagate.extract(request.headers)
        with (
            ids.log_ids(request=name),
            traces.tracer.start_as_current_span("request", parent) as span,
        ):
            response = self.get_response(request)
            seconds = time.perf_counter() - start_s
            self._record(request, response, seconds)
            span.update_name(f"{method_of(request)} {route_of(request)}")
            span.set_attributes(
                {
                    "http.request.method": method_of(request),
                    "http.route": route_of(request),
                    "http.response.status_code": response.status_code,
                    "tessera.request_id": name,
                }
            )
        response[HEADER] = name
        return response

    def _record(self, request: HttpRequest, response: HttpResponse, seconds: float) -> None:
        route, status = route_of(request), response.status_code
        REQUEST_SECONDS.labels(method_of(request), route, str(status)).observe(seconds)
        fields = {"method": request.method, "route": route, "status": status}
        logger.log(
            logging.WARNING if status >= 500 else logging.INFO,
            "%s %s %d in %.0f ms",
            request.method,
            route,
            status,
            1000 * seconds,
            extra={"fields": fields | {"duration_ms": round(1000 * seconds, 1)}},
        )


def method_of(request: HttpRequest) -> str:
    """HTTP method, or ``other`` for unknown ones, which must not become labels."""
    return str(request.method) if request.method in METHODS else "other"


def route_of(request: HttpRequest) -> str:
    """URL pattern of the request, such as ``cases/<uuid:case_id>/``."""
    match = request.resolver_match
    return match.route if match is not None else UNKNOWN_ROUTE
