"""Around every request: its id, one log line, its duration."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from portal.core.observe import ids
from portal.core.observe.metrics import REQUEST_SECONDS
from portal.core.observe.traces import span

logger = logging.getLogger("portal.request")

HEADER = "X-Request-ID"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
UNKNOWN_ROUTE = "unknown"  # no address of ours: never a label of its own


class RequestMiddleware:
    """The outermost middleware: what is inside logs with the request's id."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Name, measure, tell. The address itself is not logged: it may hold a link's secret."""
        name = ids.request_id_of(request.headers.get(HEADER, ""))
        began = time.perf_counter()
        with ids.named(request=name), span("request", headers=request.headers) as trace:
            response = self.get_response(request)
            seconds = time.perf_counter() - began
            self._tell(request, response, seconds)
            trace.tell(
                name=f"{method_of(request)} {route_of(request)}",
                http__request__method=method_of(request),
                http__route=route_of(request),
                http__response__status_code=response.status_code,
                tessera__request_id=name,
            )
        response[HEADER] = name
        return response

    def _tell(self, request: HttpRequest, response: HttpResponse, seconds: float) -> None:
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
    """The method, ``other`` for what nobody uses: a stranger must not make labels."""
    return str(request.method) if request.method in METHODS else "other"


def route_of(request: HttpRequest) -> str:
    """The pattern that the address matched, the same for every id: ``cases/<uuid:case_id>/``."""
    match = request.resolver_match
    return match.route if match is not None else UNKNOWN_ROUTE
