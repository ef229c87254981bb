"""Server-sent events: what happens in the portal."""

from __future__ import annotations

from collections.abc import AsyncIterator

from tessera_client import asking
from tessera_client.aio.requests import Requests
from tessera_client.problems import BusyError, UnreachableError
from tessera_client.streams import Happened, stream_read
from tessera_client.things import Canvas, id_of
from tessera_client.waiting import a_sleep


class Events(Requests):
    """Listens to the portal's server-sent events."""

    async def events(
        self,
        *types: str,
        canvas: Canvas | str | None = None,
        after: str | None = None,
        once: bool = False,
    ) -> AsyncIterator[Happened]:
        """Events in order, each once, without end; a portal that goes away is waited for.

        Args:
            types: ``roi.saved``, ``job.ended`` and so on; by default all.
            canvas: only events about this canvas.
            after: id of the last event received; by default events from now on.
            once: stop after the events that have already happened.

        Raises:
            UnreachableError, BusyError: the portal never answered; with ``once`` also later.
        """
        has_answered = False
        params = {"types": ",".join(types) or None, "canvas": id_of(canvas) if canvas else None}
        while True:
            said = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
            try:
                answer = await self.ask("GET", "events/", params=params, headers=said)
            except (BusyError, UnreachableError):
                if once or not has_answered:
                    raise
                await a_sleep(asking.LONGEST_PAUSE_S)
                continue
            has_answered = True
            stretch = stream_read(answer.text)
            for event in stretch.events:
                after = event.id
                yield event
            after = stretch.last_id or after
            if once and not stretch.events:
                return
            await a_sleep(stretch.retry_s)
