"""Requests: retries where they are safe, errors as exceptions, pages of lists, downloads."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx2 as httpx

from tessera_client import asking
from tessera_client.files import Download, OpenTransfers
from tessera_client.problems import UnreachableError
from tessera_client.reading import made
from tessera_client.waiting import a_call, a_sleep

T = TypeVar("T")


class Requests:
    """Requests to a portal; ``AsyncClient`` describes the arguments."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout_s: float = 60.0,
        transfers: Path | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._transfers = OpenTransfers(transfers)
        self._http = httpx.AsyncClient(
            base_url=f"{self.url}/api/v1/",
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            timeout=timeout_s,
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Make any request below ``/api/v1/``. A POST takes effect once, even if sent again."""
        sent = asking.named(method, headers or {})
        known = {k: v for k, v in (params or {}).items() if v is not None}
        request = self._http.build_request(
            method, path, params=known, json=json, content=content, headers=sent
        )
        return await self._answered(request)

    async def _answered(
        self, request: httpx.Request, into: Download | None = None
    ) -> httpx.Response:
        """Send a request until it is answered; the body goes into the download, if there is one."""
        for tried in range(1, asking.TRIES + 1):
            last = tried == asking.TRIES or not asking.is_repeatable(
                request.method, request.headers
            )
            try:
                answer = await self._carried(request, into)
            except httpx.TransportError as error:
                if last:
                    raise UnreachableError(
                        f"{self.url}: {error or type(error).__name__}"
                    ) from error
                await a_sleep(asking.pause_s(tried))
                continue
            if answer.is_success:
                return answer
            if last or not asking.may_pass(answer):
                raise asking.error_of(answer)
            await a_sleep(asking.pause_s(tried, answer))
        raise AssertionError("the last try returns or raises")

    async def _carried(self, request: httpx.Request, into: Download | None) -> httpx.Response:
        if into is None:
            return await self._http.send(request)
        answer = await self._http.send(request, stream=True)
        try:
            if not answer.is_success:
                await answer.aread()
                return answer
            into.take_name(answer.headers.get("Content-Disposition", ""))
            with into as file:
                async for chunk in answer.aiter_bytes():
                    await a_call(file.write, chunk)
        finally:
            await answer.aclose()
        return answer

    async def get(self, path: str, **params: Any) -> Any:
        """The JSON at an address below ``/api/v1/``."""
        return (await self.ask("GET", path, params=params)).json()

    async def read(self, path: str) -> asking.Seen:
        """Read an object to change it with ``change``: ``cases/<id>/`` and so on.

        Raises:
            TesseraError: the portal sent no ETag, so a change could overwrite another person's.
        """
        return asking.seen_of(path, await self.ask("GET", path))

    async def change(self, seen: asking.Seen, **fields: Any) -> asking.Seen:
        """Change an object that was read, unless somebody else has changed it since.

        Raises:
            ConflictError: somebody has; ``said["current"]`` is the object as it is now.
        """
        headers = {"If-Match": seen.tag}
        answer = await self.ask("PATCH", seen.path, json=fields, headers=headers)
        return asking.seen_of(seen.path, answer)

    async def _one(self, kind: type[T], path: str) -> T:
        return made(kind, await self.get(path))

    async def _all(self, kind: type[T], path: str, params: Mapping[str, Any]) -> AsyncIterator[T]:
        place: Mapping[str, str] = {}
        while True:
            said = await self.get(path, **params, **place)
            for row in said["results"]:
                yield made(kind, row)
            if not said["next"]:
                return
            place = asking.place_of(said["next"])

    async def _write(
        self, method: str, path: str, json: Any, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Write ROIs; takes effect once, however often it is sent."""
        named = {"Idempotency-Key": str(uuid.uuid4()), **(headers or {})}
        answer = await self.ask(method, path, json=json, headers=named)
        return answer.json() if answer.content else None

    async def _download(self, address: str, path: str | Path, params: Mapping[str, Any]) -> Path:
        download = Download(path)
        await self._answered(self._http.build_request("GET", address, params=params), download)
        return download.path
