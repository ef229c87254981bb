"""What people and lab systems do meanwhile, and what the portal acknowledged to them."""

from __future__ import annotations

import hashlib
import io
import json
import random
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import av
import numpy as np
from PIL import Image

TIMEOUT_S = 20


@dataclass
class Journal:
    """What was acknowledged: this must be in the books afterwards."""

    slides: dict[str, str] = field(default_factory=dict)  # id: SHA-256 of what was sent
    videos: dict[str, str] = field(default_factory=dict)
    edits: dict[str, dict[int, str]] = field(default_factory=dict)  # ROI: version: name
    mosaics: list[str] = field(default_factory=list)
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
        form: tuple[dict[str, str], str, bytes] | None = None,
    ) -> tuple[int, Any]:
        """Status and JSON. Raises NoAnswer."""
        sent = {"Authorization": f"Bearer {self.token}"} | (headers or {})
        data = None
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
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            try:
                status, text = error.code, error.read()
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
            return status, json.loads(text) if text else None
        except ValueError as error:
            if status < 300:
                raise NoAnswer from error
            return status, None


@dataclass
class Person:
    """Runs one habit again and again until told to stop."""

    call: Caller
    case: str
    rng: random.Random
    stop: threading.Event

    def run(self, habit: Callable[[], None], pause_s: float) -> None:
        """What is not answered is not acknowledged: go on with something else."""
        while not self.stop.wait(pause_s * self.rng.uniform(0.5, 1.5)):
            try:
                habit()
            except NoAnswer:
                continue

    def upload(self) -> None:
        """A new still."""
        data = _still(self.rng)
        form = ({"case": self.case}, f"{uuid.uuid4().hex}.png", data)
        status, body = self.call("POST", "/slides/", form=form)
        if status in (200, 202):
            self.call.journal.slides[body["id"]] = hashlib.sha256(data).hexdigest()

    def draw(self) -> None:
        """A new ROI on some still, then a few edits of it; a lost answer is asked for again."""
        canvas = self._some_canvas()
        if canvas is None:
            return
        roi = str(uuid.uuid4())
        body = {"id": roi, "canvas": canvas, "name": f"{roi}-1", "geometry": _square(self.rng)}
        status, _ = self._again("POST", "/rois/", body)
        if status not in (200, 201):
            return
        self.call.journal.edits[roi] = {1: f"{roi}-1"}
        for number in range(2, 2 + self.rng.randrange(4)):
            self._edit(roi, number)

    def _edit(self, roi: str, number: int) -> None:
        version = max(self.call.journal.edits[roi])
        body = {"name": f"{roi}-{number}", "geometry": _square(self.rng)}
        try:
            status, found = self.call(
                "PATCH", f"/rois/{roi}/", body, headers={"If-Match": f'"{version}"'}
            )
        except NoAnswer:
            status, found = self._again("GET", f"/rois/{roi}/")
        if status == 200 and found["version"] > version:
            self.call.journal.edits[roi][found["version"]] = found["name"]

    def _again(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Until there is an answer that says something, or the run is over."""
        while True:
            try:
                status, found = self.call(method, path, body)
            except NoAnswer:
                status, found = 0, None
            if 0 < status < 500 or self.stop.wait(1.0):
                return status, found

    def search(self) -> None:
        """Similar cases for an ROI that was saved."""
        known = list(self.call.journal.edits)
        if known:
            self.call("POST", "/search/", {"roi": self.rng.choice(known), "k": 5})

    def stitch(self) -> None:
        """A mosaic of another span of the video."""
        videos = list(self.call.journal.videos)
        if not videos:
            data = _video()
            form = ({"case": self.case}, "sweep.mp4", data)
            status, body = self.call("POST", "/videos/", form=form)
            if status in (200, 202):
                self.call.journal.videos[body["id"]] = hashlib.sha256(data).hexdigest()
            return
        start = round(self.rng.uniform(0, 0.3), 2)
        config = {"start_s": start, "end_s": round(start + self.rng.uniform(0.4, 0.7), 2)}
        status, body = self.call("POST", "/mosaics/", {"video": videos[0], "config": config})
        if status in (200, 202) and body["id"] not in self.call.journal.mosaics:
            self.call.journal.mosaics.append(body["id"])

    def _some_canvas(self) -> str | None:
        slides = list(self.call.journal.slides)
        if not slides:
            return None
        status, body = self.call("GET", f"/slides/{self.rng.choice(slides)}/")
        return body.get("canvas") if status == 200 else None


def _square(rng: random.Random) -> dict[str, Any]:
    left, top, side = rng.randrange(100), rng.randrange(100), rng.randrange(80, 140)
    right, bottom = left + side, top + side
    ring = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
    return {"type": "Polygon", "coordinates": [ring]}


def _still(rng: random.Random) -> bytes:
    blocks = np.random.default_rng(rng.getrandbits(32)).integers(0, 255, (16, 16, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(np.kron(blocks, np.ones((16, 16, 1), np.uint8))).save(file, "PNG")
    return file.getvalue()


def _video() -> bytes:
    """A camera that moves over a texture: 1.2 s."""
    texture = np.random.default_rng(5).integers(0, 255, (40, 90, 3), np.uint8)
    scene = np.asarray(Image.fromarray(texture).resize((720, 320), Image.Resampling.BICUBIC))
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream: Any = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        for step in range(30):
            view = np.ascontiguousarray(scene[step : step + 240, 6 * step : 6 * step + 320])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(view, format="rgb24")))
        container.mux(stream.encode())
    return file.getvalue()


def _multipart(fields: dict[str, str], filename: str, data: bytes) -> tuple[bytes, str]:
    mark = uuid.uuid4().hex
    parts = [
        f'--{mark}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    head = f'Content-Disposition: form-data; name="file"; filename="{filename}"'
    parts.append(f"--{mark}\r\n{head}\r\n\r\n".encode() + data + f"\r\n--{mark}--\r\n".encode())
    return b"".join(parts), f"multipart/form-data; boundary={mark}"
