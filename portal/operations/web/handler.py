"""Django behind an ASGI server, in reused threads.

Django's own ``ASGIHandler`` writes each body to a temporary file before it calls a view, gathers
responses of synchronous iterators in memory, and gives every request a thread of its own, with a
new connection to the database. This handler streams both ways and reuses threads and connections.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any, cast

from django.core import signals
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.base import BaseHandler
from django.db import connections
from django.http.response import HttpResponseBase, StreamingHttpResponse
from django.urls import set_script_prefix

from portal.core.connections import connection_refresh
from portal.operations.web.bodies import Scope, StreamedBody

STREAMS = 256  # concurrent streamed responses, each in a thread


class DjangoHandler(ASGIHandler):
    """Call Django in a thread, and send its responses from the event loop."""

    def __init__(self) -> None:
        BaseHandler.__init__(self)
        self.load_middleware(is_async=False)
        self._streams = asyncio.Semaphore(STREAMS)

    def respond(self, scope: Scope, body: io.BytesIO | StreamedBody) -> HttpResponseBase:
        """Django's response to a request. Call it in a thread."""
        set_script_prefix("/")
        signals.request_started.send(sender=self.__class__, scope=scope)
        try:
            # Django uses only ``read`` of a file.
            request, refused = self.create_request(scope, cast("IO[bytes]", body))
            if request is None:
                return cast("HttpResponseBase", refused)
            if isinstance(body, StreamedBody):
                body.request = request
            response: HttpResponseBase = self.get_response(request)
            return response
        finally:
            connection_refresh()

    async def answer(self, response: HttpResponseBase, send: Any) -> None:
        """Send a response; no thread waits for a slow client."""
        if not isinstance(response, StreamingHttpResponse) or response.is_async:
            await self.send_response(response, send)
            return
        async with self._streams:
            response.streaming_content = _parts_in_thread(iter(response))
            await self.send_response(response, send)


async def _parts_in_thread(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Run an iterator in one thread, which may hold a connection to the database."""
    loop = asyncio.get_running_loop()
    thread = ThreadPoolExecutor(1, thread_name_prefix="stream")
    try:
        while (part := await loop.run_in_executor(thread, next, parts, None)) is not None:
            yield part
    finally:
        thread.submit(_close_parts, parts)
        thread.shutdown(wait=False)


def _close_parts(parts: Any) -> None:
    getattr(parts, "close", lambda: None)()
    connections.close_all()
