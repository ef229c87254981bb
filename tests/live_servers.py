"""Live servers whose threads share one in-memory SQLite connection: one request at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler

DATABASE = threading.RLock()
"""Held during each request, and by tests that query while a page is open."""


class OneAtATime:
    """WSGI application that answers requests one after the other.

    Args:
        application: WSGI application that answers.
        is_open: While it is not set, requests get 503. None: always open.
    """

    def __init__(self, application: Any, is_open: threading.Event | None) -> None:
        self.application = application
        self.is_open = is_open

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        """WSGI."""
        with DATABASE:
            if self.is_open is not None and not self.is_open.is_set():
                start_response("503 Service Unavailable", [])
                return []
            answer = self.application(environ, start_response)
            try:
                return [bytes(part) for part in answer]
            finally:
                getattr(answer, "close", lambda: None)()


def one_at_a_time_server(is_open: threading.Event | None = None) -> Iterator[Any]:
    """Yield pytest-django's live server with ``OneAtATime`` around Django's handler."""
    from pytest_django.live_server_helper import LiveServer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "django.test.testcases.WSGIHandler", lambda: OneAtATime(WSGIHandler(), is_open)
        )
        # With an empty MEDIA_URL this handler would answer all requests, several at a time.
        patch.setattr("django.test.testcases._MediaFilesHandler", lambda application: application)
        server = LiveServer("127.0.0.1")
    yield server
    server.stop()
