"""Actions of people and lab systems, and what the portal acknowledged."""

from __future__ import annotations

import hashlib
import random
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.chaos.http_calls import Caller, NoAnswer
from tests.chaos.sample_data import square, still, video

GUESTS = "Chaos guests"
DELETED, RESTORED = (
    0.3,
    0.7,
)  # how often a region is deleted at last, and how often things come back


@dataclass
class Person:
    """Runs one action again and again until stopped."""

    call: Caller
    guest: Caller  # of the other lab
    case: str
    rng: random.Random
    stop: threading.Event

    def run(self, habit: Callable[[], None], pause_s: float) -> None:
        """Repeat the action; an unanswered request is not acknowledged and does not end it."""
        while not self.stop.wait(pause_s * self.rng.uniform(0.5, 1.5)):
            try:
                habit()
            except NoAnswer:
                continue
            except Exception as error:  # noqa: BLE001  # a wrong answer, or a fault here
                self.call.journal.faults.append(f"{habit.__name__}: {error!r}")

    def upload(self) -> None:
        """A new still."""
        data = still(self.rng)
        form = ({"case": self.case}, f"{uuid.uuid4().hex}.png", data)
        status, body = self.call("POST", "/slides/", form=form)
        if status in (200, 202):
            self.call.journal.slides[body["id"]] = hashlib.sha256(data).hexdigest()

    def draw(self) -> None:
        """A new ROI on some still, then a few edits of it; a lost answer is requested again."""
        canvas = self._some_canvas()
        if canvas is None:
            return
        roi = str(uuid.uuid4())
        body = {"id": roi, "canvas": canvas, "name": f"{roi}-1", "geometry": square(self.rng)}
        status, _ = self._again("POST", "/rois/", body)
        if status not in (200, 201):
            return
        self.call.journal.edits[roi] = {1: f"{roi}-1"}
        for number in range(2, 2 + self.rng.randrange(4)):
            self._edit(roi, number)
        if self.rng.random() < DELETED:
            self._delete(roi)
            if self.rng.random() < RESTORED:
                self._restore(roi)

    def _edit(self, roi: str, number: int) -> None:
        version = max(self.call.journal.edits[roi])
        body = {"name": f"{roi}-{number}", "geometry": square(self.rng)}
        try:
            status, result = self.call(
                "PATCH", f"/rois/{roi}/", body, headers={"If-Match": f'"{version}"'}
            )
        except NoAnswer:
            status, result = self._again("GET", f"/rois/{roi}/")
        if status == 200 and result["version"] > version:
            self.call.journal.edits[roi][result["version"]] = result["name"]

    def _delete(self, roi: str) -> None:
        journal = self.call.journal
        version, name = max(journal.edits[roi].items())
        journal.deleted[roi] = None
        headers = {"If-Match": f'"{version}"'}
        status, _ = self._again("DELETE", f"/rois/{roi}/", headers=headers)
        if status == 204:
            journal.edits[roi][version + 1] = name
            journal.deleted[roi] = True
        elif status == 412:  # the answer to an earlier try was lost
            self._note(roi, *self._again("GET", f"/rois/{roi}/"))

    def _restore(self, roi: str) -> None:
        """Restore an ROI; repeated, it changes nothing."""
        if self.call.journal.deleted[roi]:
            self.call.journal.deleted[roi] = None
            self._note(roi, *self._again("POST", f"/rois/{roi}/restore/"))

    def _note(self, roi: str, status: int, found: Any) -> None:
        if status == 200:
            self.call.journal.edits[roi][found["version"]] = found["name"]
            self.call.journal.deleted[roi] = found["deleted_at"] is not None

    def _again(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        caller: Caller | None = None,
    ) -> tuple[int, Any]:
        """Until there is an answer that says something, or the run is over: then 0."""
        while True:
            try:
                status, result = (caller or self.call)(method, path, body, headers=headers)
            except NoAnswer:
                status, result = 0, None
            if 0 < status < 500:
                return status, result
            if self.stop.wait(1.0):
                return 0, None

    def search(self) -> None:
        """Similar cases for an ROI that was saved."""
        known = list(self.call.journal.edits)
        if known:
            self.call("POST", "/search/", {"roi": self.rng.choice(known), "k": 5})

    def stitch(self) -> None:
        """A mosaic of another span of the video."""
        videos = list(self.call.journal.videos)
        if not videos:
            data = video()
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

    def tidy(self) -> None:
        """A slide into the trash with all that was drawn on it, and most times back."""
        journal = self.call.journal
        live = [slide for slide in list(journal.slides) if journal.trashed.get(slide) is not True]
        if not live:
            return
        slide = self.rng.choice(live)
        before = journal.trashed.get(slide, False)
        journal.trashed[slide] = None
        status, _ = self._again("DELETE", f"/slides/{slide}/")
        if status in (204, 404):  # 404: it was carried out, and the answer was lost
            journal.trashed[slide] = True
        elif status == 409:  # still being prepared
            journal.trashed[slide] = before
        if journal.trashed[slide] and self.rng.random() < RESTORED:
            self.stop.wait(self.rng.uniform(0, 3))
            self._from_trash(slide)

    def _from_trash(self, slide: str) -> None:
        status, page = self._again("GET", "/trash/?page_size=200")
        entries = page["results"] if status == 200 else []
        for entry in (entry["id"] for entry in entries if entry["target"] == slide):
            self.call.journal.trashed[slide] = None
            status, _ = self._again("POST", f"/trash/{entry}/restore/")
            if status in (204, 404):
                self.call.journal.trashed[slide] = False

    def share(self) -> None:
        """Offer the case to another lab, which accepts and reads it; end it: it reads no more."""
        journal = self.call.journal
        share = self._offered()
        if share is None:
            return
        before = journal.shares.get(share, "offered")
        for state, caller in (("accepted", self.guest), ("ended", None)):
            word = {"accepted": "accept", "ended": "end"}[state]
            journal.shares[share] = f"{before} {state}"  # without an answer it may be any of them
            status, _ = self._again("POST", f"/shares/{share}/{word}/", caller=caller)
            if status != 200:
                return
            journal.shares[share] = before = state
            status, _ = self._again("GET", f"/cases/{self.case}/", caller=self.guest)
            if status not in (0, 200 if state == "accepted" else 404):
                journal.shown.append(f"{status} to the other lab after the share was {state}")

    def _offered(self) -> str | None:
        day = datetime.now(UTC) + timedelta(days=7)  # clocks jump by hours only
        body = {"with_lab": GUESTS, "until": day.date().isoformat()}
        status, result = self._again("POST", f"/cases/{self.case}/shares/", body)
        if status == 409:  # offered before the answer was lost
            status, page = self._again("GET", "/shares/")
            result = next(iter(page["results"]), None) if status == 200 else None
        return result["id"] if result and status in (200, 201) else None

    def _some_canvas(self) -> str | None:
        slides = list(self.call.journal.slides)
        if not slides:
            return None
        status, body = self.call("GET", f"/slides/{self.rng.choice(slides)}/")
        return body.get("canvas") if status == 200 else None
