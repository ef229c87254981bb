"""Files sent in pieces while the sender or the portal is killed at random points.

``python -m tests.killing.uploads --files 100`` does it at length; a test does it briefly.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import http.client
import io
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import Any

from PIL import Image

from tests import services
from tests.killing.harness import Portal
from tests.polling import wait_until

CONTROL = "tests.killing.uploads_control"
PIECE_BYTES = 64 * 2**10  # of a request's body, between which the axe may fall
PATIENCE_S = 240.0  # for the portal to be back after a kill, and for one more file to be stored
_GONE = (OSError, http.client.HTTPException)


@dataclass
class Sender:
    """A client that remembers nothing but the address of its transfer, as one that was killed."""

    port: int
    token: str
    rng: random.Random
    start: Callable[[], subprocess.Popen[bytes]]
    done: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.tree = self.start()

    def send(self, name: str, content: bytes, case: str) -> None:
        """The whole file, with about two deaths on the way."""
        data = {"filename": name, "case": case, "sha256": hashlib.sha256(content).hexdigest()}
        meta = ",".join(f"{k} {base64.b64encode(v.encode()).decode()}" for k, v in data.items())
        headers = {"Upload-Length": str(len(content)), "Upload-Metadata": meta}
        # One whose answer was lost is left behind; the sweep takes it.
        address = self._header("POST", "/api/v1/uploads/", headers, "Location")
        deaths = sorted(self.rng.sample(range(len(content)), 2))
        while (at := self._offset(address)) < len(content):
            cut = next((death for death in deaths if death > at), None)
            deaths = [death for death in deaths if cut is not None and death > cut]
            self._piece(address, content, at, cut)

    def _offset(self, address: str) -> int:
        return int(self._header("HEAD", address, {}, "Upload-Offset"))

    def _header(self, method: str, path: str, headers: dict[str, str], name: str) -> str:
        """Header of the answer, requested until the portal is back."""

        def value() -> str:
            answer = self._ask(method, path, headers)
            if answer is not None and name in answer:
                return str(answer[name])
            self.keep_up()
            return ""

        return wait_until(
            value, "the portal", within_s=PATIENCE_S, every_s=0.2, detail=lambda: self.done
        )

    def keep_up(self) -> None:
        """Start the portal where it has ended: six deaths of a role within half a minute end it."""
        if self.tree.poll() is not None:
            self.done["starts by the service manager"] += 1
            self.tree = self.start()

    def _piece(self, address: str, content: bytes, at: int, cut: int | None) -> None:
        """Send the remaining bytes, or those before a process dies."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest("PATCH", address)
            for key, value in self._headers().items():
                connection.putheader(key, value)
            connection.putheader("Content-Type", "application/offset+octet-stream")
            connection.putheader("Upload-Offset", str(at))
            connection.putheader("Content-Length", str(len(content) - at))
            connection.endheaders()
            for start in range(at, len(content), PIECE_BYTES):
                connection.send(content[start : start + PIECE_BYTES])
                if cut is not None and start + PIECE_BYTES > cut:
                    self._strike()
                    return
            connection.getresponse().read()
        except _GONE:
            self.done["connections lost"] += 1
        finally:
            connection.close()

    def _strike(self) -> None:
        """The client dies (its connection ends), or a process of the portal does, by kill -9."""
        victim = self.rng.choice(["client", "web", "worker"])
        self.done[f"kills of {victim}"] += 1
        if victim != "client":
            for pid in self._processes(f"manage.py\0{victim}" if victim == "web" else victim)[:1]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _processes(self, word: str) -> list[int]:
        result, open_ones = [], [self.tree.pid]
        while open_ones:
            pid = open_ones.pop()
            with suppress(FileNotFoundError, ProcessLookupError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                if pid != self.tree.pid and word.encode() in command:
                    result.append(pid)
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
                open_ones += [int(child) for child in children.split()]
        self.rng.shuffle(result)
        return result

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Tus-Resumable": "1.0.0"}

    def _ask(self, method: str, path: str, headers: dict[str, str]) -> Message | None:
        """The headers of the answer; None where there was none, or a passing refusal."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, headers=self._headers() | headers)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status >= 500:
                return None
            assert answer.status < 400, (method, path, answer.status, body[:500])
            return answer.headers
        except _GONE:
            self.done["calls lost"] += 1
            return None
        finally:
            connection.close()


def send_among_kills(portal: Portal, *, files: int, port: int, seed: int) -> dict[str, Any]:
    """Send so many files of 1 to 6 MB, kill on the way, and compare every byte.

    Raises:
        AssertionError: a file is not stored, differs, or was made a slide more than once.
    """
    rng = random.Random(seed)
    serve = [sys.executable, "manage.py", "serve", "--port", str(port)]
    place = portal.ask(CONTROL, "seat", f"seat-{seed}")
    sender = Sender(port, place["token"], rng, lambda: portal.start(serve))
    sent = {}
    for number in range(files):
        content = _picture(rng.randbytes(rng.randrange(10**6, 6 * 10**6)))
        name = f"{number}.png"
        sent[name] = hashlib.sha256(content).hexdigest()
        sender.send(name, content, place["case"])
    stored = _all_stored(portal, sender, place["case"], set(sent))
    for name, sha256 in sent.items():
        row = stored[name]
        assert (row["sha256"], row["on_disk"], row["slides"]) == (sha256, sha256, 1), row
    return {"files": files, **sender.done}


def _all_stored(
    portal: Portal, sender: Sender, case: str, sent: set[str]
) -> dict[str, dict[str, Any]]:
    """Wait until all files are stored, while more arrive, and return their states."""
    acknowledged: dict[str, dict[str, Any]] = {}

    def waiting() -> set[str]:
        sender.keep_up()
        rows = portal.ask(CONTROL, "stored", case)
        acknowledged.update((name, row) for name, row in rows.items() if name in sent)
        return {name for name in sent if acknowledged.get(name, {}).get("state") != "stored"}

    def detail() -> object:
        return {name: acknowledged.get(name) for name in waiting()}, dict(sender.done)

    left = waiting()
    while left:  # each further file has the whole time
        count = len(left)
        wait_until(
            lambda count=count: len(waiting()) < count,  # type: ignore[misc]
            "the next file",
            within_s=PATIENCE_S,
            every_s=0.3,
            detail=detail,
        )
        left = waiting()
    return acknowledged


def _picture(values: bytes) -> bytes:
    """A PNG as long as its values: bytes behind a picture's end would be taken off at ingest."""
    width, buffer = 1000, io.BytesIO()
    size = (width, len(values) // (3 * width))
    picture = Image.frombytes("RGB", size, values[: 3 * size[0] * size[1]])
    picture.save(buffer, "PNG", compress_level=0)
    return buffer.getvalue()


def main() -> None:
    """Print what was done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--port", type=int, default=8797)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--servers", choices=["files", "postgresql-redis"], default="files")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tessera-uploads-"))
    with _servers(given.servers, folder) as (database_url, broker_url):
        portal = Portal(folder, database_url, broker_url, lambda: None)
        try:
            print(send_among_kills(portal, files=given.files, port=given.port, seed=given.seed))
        finally:
            portal.ask_no_more()
            portal.close()
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _servers(name: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Addresses of the database and the broker: SQLite and files, or the servers' own."""
    if name == "files":
        yield f"sqlite:///{folder / 'db.sqlite3'}", "filesystem://"
        return
    with services.own_database() as database_url, services.own_redis() as (broker_url, _):
        yield database_url, broker_url


if __name__ == "__main__":
    main()
