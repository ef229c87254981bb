"""ASGI application of the portal: tiles in the event loop, other requests by Django in threads."""

from __future__ import annotations

import io
import json
import logging
import time
from http import HTTPStatus
from typing import Any

from portal.archive.tiles.server import PREFIX, in_thread, send_answer, tile_application
from portal.operations.web.bodies import (
    TRANSFERS,
    ClientLeftError,
    NoLengthError,
    Receive,
    Scope,
    StreamedBody,
    body_of,
)
from portal.operations.web.handler import DjangoHandler
from portal.operations.web.live import LiveAnswers, live_question
from portal.operations.web.thread_pool import BusyError, Threads

logger = logging.getLogger(__name__)


class WebApplication:
    """Route requests, and pass them to Django once a thread is free.

    Args:
        threads: Threads for requests with small bodies. Large bodies have threads of their own.
        access_log: Log each request, without queries and headers, which may hold secrets.
    """

    def __init__(self, *, threads: int, access_log: bool = False) -> None:
        self._django = DjangoHandler()
        self._calls = Threads(threads, "call")
        self._transfers = Threads(TRANSFERS, "transfer")
        self._live = LiveAnswers(in_thread)
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Any) -> None:
        """ASGI entry point."""
        if self._access_log:
            send = _log_requests(scope, send)
        if scope["path"].startswith(PREFIX):
            await tile_application(scope, receive, send)
            return
        question = live_question(scope)
        if question is not None and (answer := await self._live.answer(question)) is not None:
            await send_answer(answer, send)
            return
        try:
            body = await body_of(scope, receive)
        except ClientLeftError:
            return
        except NoLengthError:
            await _refuse(send, 411, "length-required", "Send a large body with a Content-Length.")
            return
        try:
            await self._answer(scope, body, send)
        finally:
            body.close()

    async def _answer(self, scope: Scope, body: io.BytesIO | StreamedBody, send: Any) -> None:
        threads = self._transfers if isinstance(body, StreamedBody) else self._calls
        try:
            response = await threads.run(self._django.respond, scope, body)
        except BusyError:
            await _refuse(send, 503, "busy", "The portal is busy. Try again in a moment.")
            return
        try:
            await self._django.answer(response, send)
        finally:
            response.close()


async def _refuse(send: Any, status: int, code: str, detail: str) -> None:
    """Send a problem document (RFC 9457) without Django."""
    title = HTTPStatus(status).phrase
    problem = {"type": "about:blank", "title": title, "status": status, "code": code}
    body = json.dumps(problem | {"detail": detail}).encode()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        (b"retry-after", b"5"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _log_requests(scope: Scope, send: Any) -> Any:
    """Wrap ``send`` to log the request when its response starts."""
    began = time.monotonic()

    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            took_ms = (time.monotonic() - began) * 1e3
            client = (scope.get("client") or ("",))[0]
            path = scope["raw_path"].decode("latin-1")
            status = message["status"]
            logger.info("%s %s %s %s %.0f ms", client, scope["method"], path, status, took_ms)
        await send(message)

    return sending
