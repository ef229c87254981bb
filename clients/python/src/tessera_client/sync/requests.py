# Written by unasync.py from aio/requests.py: change that one.
"""Requests: retries where they are safe, errors as exceptions, pages of lists, downloads."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx2 as httpx

from tessera_client import request_rules
from tessera_client.concurrency import call, sleep
from tessera_client.errors import UnreachableError
from tessera_client.files import Download, OpenTransfers
from tessera_client.parsing import parse

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

    def request(
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
        sent = request_rules.request_headers(method, headers or {})
        query = {k: v for k, v in (params or {}).items() if v is not None}
        request = self._http.build_request(
            method, path, params=query, json=json, content=content, headers=sent
        )
        return self._send_with_retries(request)

    def _send_with_retries(
        self, request: httpx.Request, target: Download | None = None
    ) -> httpx.Response:
        """Send a request with retries; the body is written to the download, if there is one."""
        for attempt in range(1, request_rules.MAX_ATTEMPTS + 1):
            last = attempt == request_rules.MAX_ATTEMPTS or not request_rules.is_repeatable(
                request.method, request.headers
            )
            try:
                answer = self._send_once(request, target)
            except httpx.TransportError as error:
                if last:
                    raise UnreachableError(
                        f"{self.url}: {error or type(error).__name__}"
                    ) from error
                sleep(request_rules.pause_s(attempt))
                continue
            if answer.is_success:
                return answer
            if last or not request_rules.is_transient(answer):
                raise request_rules.error_of(answer)
            sleep(request_rules.pause_s(attempt, answer))
        raise AssertionError("the last try returns or raises")

    def _send_once(self, request: httpx.Request, target: Download | None) -> httpx.Response:
        if target is None:
            return self._http.send(request)
        answer = self._http.send(request, stream=True)
        try:
            if not answer.is_success:
                answer.read()
                return answer
            target.set_name(answer.headers.get("Content-Disposition", ""))
            with target as file:
                for chunk in answer.iter_bytes():
                    call(file.write, chunk)
        finally:
            answer.close()
        return answer

    def get(self, path: str, **params: Any) -> Any:
        """Read the JSON at an address below ``/api/v1/``."""
        return (self.request("GET", path, params=params)).json()

    def read(self, path: str) -> request_rules.VersionedObject:
        """Read an object to change it with ``change``: ``cases/<id>/`` and so on.

        Raises:
            TesseraError: the portal sent no ETag, so a change could overwrite another person's.
        """
        return request_rules.versioned_object(path, self.request("GET", path))

    def change(
        self, item: request_rules.VersionedObject, **fields: Any
    ) -> request_rules.VersionedObject:
        """Change an object that was read, unless somebody else has changed it since.

        Raises:
            ConflictError: somebody has; ``data["current"]`` is the object as it is now.
        """
        headers = {"If-Match": item.tag}
        answer = self.request("PATCH", item.path, json=fields, headers=headers)
        return request_rules.versioned_object(item.path, answer)

    def _one(self, kind: type[T], path: str) -> T:
        return parse(kind, self.get(path))

    def _all(self, kind: type[T], path: str, params: Mapping[str, Any]) -> Iterator[T]:
        cursor: Mapping[str, str] = {}
        while True:
            page = self.get(path, **params, **cursor)
            for row in page["results"]:
                yield parse(kind, row)
            if not page["next"]:
                return
            cursor = request_rules.cursor_params(page["next"])

    def _write(
        self, method: str, path: str, json: Any, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Write ROIs; takes effect once, however often it is sent."""
        request_headers = {"Idempotency-Key": str(uuid.uuid4()), **(headers or {})}
        answer = self.request(method, path, json=json, headers=request_headers)
        return answer.json() if answer.content else None

    def _download(self, address: str, path: str | Path, params: Mapping[str, Any]) -> Path:
        download = Download(path)
        self._send_with_retries(self._http.build_request("GET", address, params=params), download)
        return download.path
