"""Server-sent events of the portal."""

from __future__ import annotations

from collections.abc import AsyncIterator

from tessera_client import request_rules
from tessera_client.aio.requests import Requests
from tessera_client.concurrency import a_sleep
from tessera_client.errors import BusyError, UnreachableError
from tessera_client.models import Canvas, id_of
from tessera_client.streams import Event, parse_events


class Events(Requests):
    """Methods for the portal's server-sent events."""

    async def events(
        self,
        *types: str,
        canvas: Canvas | str | None = None,
        after: str | None = None,
        follow: bool = True,
    ) -> AsyncIterator[Event]:
        """Yield events in order, each once, without end; waits while the portal is unavailable.

        Args:
            types: ``roi.saved``, ``job.ended`` and so on; by default all.
            canvas: only events about this canvas.
            after: id of the last event received; by default events from now on.
            follow: wait for further events; if False, stop after those that have already happened.

        Raises:
            UnreachableError, BusyError: the portal never answered; without ``follow`` also later.
        """
        has_answered = False
        params = {"types": ",".join(types) or None, "canvas": id_of(canvas) if canvas else None}
        while True:
            headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
            try:
                answer = await self.request("GET", "events/", params=params, headers=headers)
            except (BusyError, UnreachableError):
                if not follow or not has_answered:
                    raise
                await a_sleep(request_rules.LONGEST_PAUSE_S)
                continue
            has_answered = True
            batch = parse_events(answer.text)
            for event in batch.events:
                after = event.id
                yield event
            after = batch.last_id or after
            if not follow and not batch.events:
                return
            await a_sleep(batch.retry_s)
