"""Which requests carry a large piece of an upload, and its landing as the event loop sees it."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from portal.archive.services.transfers.held import Allowed, Landed
from portal.config.front.landing import Landing
from portal.config.front.messages import Request
from portal.config.front.shared import Client, Front

PIECE_TYPE = "application/offset+octet-stream"
_TARGET = re.compile(rb"/api/v1/uploads/([0-9a-f-]{36})/\Z")


def transfer_named(request: Request) -> str:
    """The transfer whose piece a request brings, if the front may write it; else empty."""
    found = _TARGET.match(request.target) if request.method == b"PATCH" else None
    is_piece = request.field(b"content-type") == PIECE_TYPE and request.body.length is not None
    try:
        return str(uuid.UUID(found[1].decode())) if found and is_piece else ""
    except ValueError:
        return ""


class PieceLanding:
    """The body of one request, which lands in stretches."""

    def __init__(self, front: Front, connection: Client, request: Request) -> None:
        number, early = connection.take_over()
        self._front, self._connection = front, connection
        self._is_given_up = False
        self._landing = Landing(
            number,
            early,
            request.body.length or 0,
            limits=front.limits,
            given_up=lambda: self._is_given_up or front.is_stopping,
        )
        self._under_way: asyncio.Future[Landed] | None = None

    @property
    def rest(self) -> int:
        """Bytes that are still to land."""
        return self._landing.rest

    async def land(self, transfer: str, stretch: Allowed) -> Landed:
        """Write a stretch in a thread."""
        self._under_way = asyncio.get_running_loop().run_in_executor(
            self._front.landings, self._landing.land, transfer, stretch
        )
        landed = await asyncio.shield(self._under_way)
        if not self.rest:
            self._connection.taken_over()
        return landed

    def close(self) -> None:
        """Give the socket back, once no thread reads from it any more."""
        self._is_given_up = True
        if self._under_way is None or self._under_way.done():
            self._landing.close()
        else:
            self._under_way.add_done_callback(lambda _: self._landing.close())


@asynccontextmanager
async def landing_of(
    front: Front, connection: Client, request: Request
) -> AsyncIterator[PieceLanding]:
    """The body, read past the parser until the block ends."""
    landing = PieceLanding(front, connection, request)
    try:
        yield landing
    finally:
        landing.close()
