"""Calls of the API over HTTP, and the journal of what was acknowledged."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections import Counter
from dataclasses import dataclass, field
from email.message import Message
from typing import Any

TIMEOUT_S = 20


@dataclass
class Journal:
    """Journal of acknowledged writes, all of which must be stored at the end."""

    slides: dict[str, str] = field(default_factory=dict)  # id: SHA-256 of what was sent
    videos: dict[str, str] = field(default_factory=dict)
    edits: dict[str, dict[int, str]] = field(default_factory=dict)  # ROI: version: name
    mosaics: list[str] = field(default_factory=list)
    deleted: dict[str, bool | None] = field(default_factory=dict)  # ROI: None while in doubt
    trashed: dict[str, bool | None] = field(default_factory=dict)  # slide: None while in doubt
    shares: dict[str, str] = field(default_factory=dict)  # id: the last state
    faults: list[str] = field(
        default_factory=list
    )  # a habit broke: an answer was not as it should be
    shown: list[str] = field(default_factory=list)  # what another lab saw and must not, or not
    answers: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, what: str, seconds: float) -> None:
        """One answer, or none."""
        with self.lock:
            self.answers[what] += 1
            self.slowest_s = max(self.slowest_s, seconds)


class NoAnswer(Exception):
    """The connection broke: nobody knows whether it was carried out."""


@dataclass
class Caller:
    """Calls the API with a token."""

    url: str
    token: str
    journal: Journal

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        data: bytes | None = None,
        form: tuple[dict[str, str], str, bytes] | None = None,
    ) -> tuple[int, Any]:
        """Status and JSON. Raises NoAnswer."""
        status, content, _ = self.answer(method, path, body, headers=headers, data=data, form=form)
        return status, content

    def answer(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        data: bytes | None = None,
        form: tuple[dict[str, str], str, bytes] | None = None,
    ) -> tuple[int, Any, Message]:
        """Status, JSON and headers. Raises NoAnswer."""
        sent = {"Authorization": f"Bearer {self.token}"} | (headers or {})
        if form is not None:
            data, sent["Content-Type"] = _multipart(*form)
        elif body is not None:
            data, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
        request = urllib.request.Request(
            f"{self.url}/api/v1{path}", data=data, headers=sent, method=method
        )
        began = time.monotonic()
        what = f"{method} /{path.split('/')[1]}/"
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                status, text, answer_headers = answer.status, answer.read(), answer.headers
        except urllib.error.HTTPError as error:
            try:
                status, text, answer_headers = error.code, error.read(), error.headers
            except OSError as broken:
                self.journal.note(f"{what} none", time.monotonic() - began)
                raise NoAnswer from broken
        except (OSError, urllib.error.URLError, ValueError) as error:
            self.journal.note(f"{what} none", time.monotonic() - began)
            raise NoAnswer from error
        except Exception as error:  # http.client's own, of an answer cut short
            self.journal.note(f"{what} none", time.monotonic() - began)
            raise NoAnswer from error
        self.journal.note(f"{what} {status}", time.monotonic() - began)
        try:
            return status, json.loads(text) if text else None, answer_headers
        except ValueError as error:
            if status < 300:
                raise NoAnswer from error
            return status, None, answer_headers


def _multipart(fields: dict[str, str], filename: str, data: bytes) -> tuple[bytes, str]:
    mark = uuid.uuid4().hex
    parts = [
        f'--{mark}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    head = f'Content-Disposition: form-data; name="file"; filename="{filename}"'
    parts.append(f"--{mark}\r\n{head}\r\n\r\n".encode() + data + f"\r\n--{mark}--\r\n".encode())
    return b"".join(parts), f"multipart/form-data; boundary={mark}"
