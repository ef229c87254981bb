# Written by unasync.py from aio/requests.py: change that one.
"""Requests: retries where they are safe, errors as exceptions, pages of lists, downloads."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx2 as httpx

from tessera_client import asking
from tessera_client.files import Download, OpenTransfers
from tessera_client.problems import UnreachableError
from tessera_client.reading import made
from tessera_client.waiting import call, sleep

T = TypeVar("T")


class Requests:
    """Requests to a portal; ``Client`` describes the arguments."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout_s: float = 60.0,
        transfers: Path | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._transfers = OpenTransfers(transfers)
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1/",
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            timeout=timeout_s,
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def ask(
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
        return self._answered(request)

    def _answered(self, request: httpx.Request, into: Download | None = None) -> httpx.Response:
        """Send a request until it is answered; the body goes into the download, if there is one."""
        for tried in range(1, asking.TRIES + 1):
            last = tried == asking.TRIES or not asking.is_repeatable(
                request.method, request.headers
            )
            try:
                answer = self._carried(request, into)
            except httpx.TransportError as error:
                if last:
                    raise UnreachableError(
                        f"{self.url}: {error or type(error).__name__}"
                    ) from error
                sleep(asking.pause_s(tried))
                continue
            if answer.is_success:
                return answer
            if last or not asking.may_pass(answer):
                raise asking.error_of(answer)
            sleep(asking.pause_s(tried, answer))
        raise AssertionError("the last try returns or raises")

    def _carried(self, request: httpx.Request, into: Download | None) -> httpx.Response:
        if into is None:
            return self._http.send(request)
        answer = self._http.send(request, stream=True)
        try:
            if not answer.is_success:
                answer.read()
                return answer
            into.take_name(answer.headers.get("Content-Disposition", ""))
            with into as file:
                for chunk in answer.iter_bytes():
                    call(file.write, chunk)
        finally:
            answer.close()
        return answer

    def get(self, path: str, **params: Any) -> Any:
        """The JSON at an address below ``/api/v1/``."""
        return (self.ask("GET", path, params=params)).json()

    def read(self, path: str) -> asking.Seen:
        """Read an object to change it with ``change``: ``cases/<id>/`` and so on.

        Raises:
            TesseraError: the portal sent no ETag, so a change could overwrite another person's.
        """
        return asking.seen_of(path, self.ask("GET", path))

    def change(self, seen: asking.Seen, **fields: Any) -> asking.Seen:
        """Change an object that was read, unless somebody else has changed it since.

        Raises:
            ConflictError: somebody has; ``said["current"]`` is the object as it is now.
        """
        headers = {"If-Match": seen.tag}
        answer = self.ask("PATCH", seen.path, json=fields, headers=headers)
        return asking.seen_of(seen.path, answer)

    def _one(self, kind: type[T], path: str) -> T:
        return made(kind, self.get(path))

    def _all(self, kind: type[T], path: str, params: Mapping[str, Any]) -> Iterator[T]:
        place: Mapping[str, str] = {}
        while True:
            said = self.get(path, **params, **place)
            for row in said["results"]:
                yield made(kind, row)
            if not said["next"]:
                return
            place = asking.place_of(said["next"])

    def _write(
        self, method: str, path: str, json: Any, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Write ROIs; takes effect once, however often it is sent."""
        named = {"Idempotency-Key": str(uuid.uuid4()), **(headers or {})}
        answer = self.ask(method, path, json=json, headers=named)
        return answer.json() if answer.content else None

    def _download(self, address: str, path: str | Path, params: Mapping[str, Any]) -> Path:
        download = Download(path)
        self._answered(self._http.build_request("GET", address, params=params), download)
        return download.path
