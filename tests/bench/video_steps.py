"""Costs of a step through a video in a real browser: ``python -m tests.bench.video_steps``.

``--write`` puts it into the report.

A 1080p video of a sweep over real vessels is put into a portal; chromium opens it and
presses F, D and V at the pace of a person and of a held key. A step lasts from the key's event to
the redraw that shows the exact frame.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
from playwright.sync_api import Page

from ml.imaging.samples.packaged import packaged_image
from tests.bench import report
from tests.bench.browser import new_page, portal_in_chromium
from tests.bench.measure import Row, Section
from tests.bench.portal import BenchPortal, portal_open
from tests.browser.quiet import wait_until_quiet

SIZE = (1920, 1080)
FRAMES = 400
PERSON, HELD = "a person's pace", "a held key"
PACES_MS = {PERSON: 250, HELD: 66}
TITLE = "Steps through a video"
STEPS = 60
KEYS = {"f": "one on", "d": "one back", "v": "ten on"}

# the page's own counters: a key's time stamp, and the text of the frame that is drawn
_WATCH = """() => {
  window.steps = [];
  const text = document.querySelector('[data-frame-index]');
  let pressed = null;
  addEventListener('keydown', (event) => { pressed ??= event.timeStamp; }, { capture: true });
  new MutationObserver(() => {
    if (pressed === null) return;
    const from = pressed; pressed = null;
    requestAnimationFrame(() => window.steps.push(performance.now() - from));
  }).observe(text, { childList: true, characterData: true, subtree: true });
}"""


def main() -> None:
    """Film, serve, step, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gop", type=int, default=50, help="frames between key frames")
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    parser.add_argument("--json", type=Path, help="write the figures into this file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = _measured(Path(folder), args.gop)
    print(json.dumps(figures, indent=1))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n")
    if args.write:
        report.replace(section_of(figures), after="Mosaics")


def section_of(figures: dict[str, Any]) -> Section:
    """A row for each key and pace."""
    section = Section(
        TITLE,
        f"A video of {SIZE[0]} x {SIZE[1]} px and {FRAMES} frames, a key frame every "
        f"{figures['gop']}, in a real browser at the portal as `make serve` starts it: from the "
        "key's event to the redraw that shows the exact frame. A person presses every "
        f"{PACES_MS[PERSON]} ms; a key that is held, every {PACES_MS[HELD]} ms.",
    )
    for pace in PACES_MS:
        for key_name in KEYS.values():
            figure = figures[f"{key_name}, {pace}"]
            steps, median_ms = figure["steps"], figure["median_ms"]
            name = f"{key_name}, {pace}, p95 of {steps} (median {median_ms:.0f} ms)"
            section.rows.append(Row(name, figure["p95_ms"], "ms", budget="under 100 ms"))
    return section


def film(path: Path, gop: int, frames: int = FRAMES) -> Path:
    """A sweep over a real retina at 1080p, with noise as of a sensor."""
    picture = packaged_image("retina.jpg")
    big = cv2.resize(picture, None, fx=2.2, fy=2.2, interpolation=cv2.INTER_CUBIC)
    rng = np.random.default_rng(0)
    noise = [rng.normal(0, 3, (SIZE[1], SIZE[0], 3)).astype(np.int16) for _ in range(4)]
    room = np.array([big.shape[1] - SIZE[0], big.shape[0] - SIZE[1]])
    if (room < 0).any():
        big = cv2.resize(big, (SIZE[0] + 300, SIZE[1] + 300))
        room = np.array([300, 300])
    with av.open(str(path), "w") as container:
        options = {"preset": "veryfast", "crf": "20"}
        stream: Any = container.add_stream("libx264", rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        stream.gop_size = gop
        for index in range(frames):
            turn = 2 * np.pi * index / frames
            x, y = ((0.5 + 0.5 * np.array([np.sin(turn), np.cos(turn)])) * room).astype(int)
            view = big[y : y + SIZE[1], x : x + SIZE[0]]
            shown = np.clip(view.astype(np.int16) + noise[index % 4], 0, 255).astype(np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(shown, format="rgb24")))
        container.mux(stream.encode(None))
    return path


def _measured(folder: Path, gop: int) -> dict[str, Any]:
    portal = portal_open(folder)
    canvas = ingested(portal, film(folder / "sweep.mp4", gop))
    with portal_in_chromium(portal) as (browser, base, key):
        page = new_page(browser, base, key)
        page.goto(f"{base}/canvases/{canvas.pk}/")
        page.wait_for_selector("[data-viewer][data-ready]", timeout=60_000)
        return {"gop": gop, "size_px": SIZE, "frames": FRAMES, **_stepped(page)}


def ingested(portal: BenchPortal, path: Path) -> Any:
    """The canvas of a video, prepared here and now."""
    from portal.archive.services.cases import case_create
    from portal.archive.services.items import item_receive
    from portal.jobs.worker.runner import job_run

    case = case_create(lab=portal.lab, user=portal.user, accession="B-2", patient_key="p1")
    with path.open("rb") as file:
        received = item_receive(case=case, file=file, filename=path.name, user=portal.user)
    if received.job is not None:
        job_run(received.job.pk)
    received.item.refresh_from_db()
    if received.item.canvas is None:
        raise SystemExit(f"the video was not ingested: {received.item.error}")
    return received.item.canvas


def _stepped(page: Page) -> dict[str, Any]:
    page.evaluate(_WATCH)
    figures: dict[str, Any] = {}
    for pace, wait_ms in PACES_MS.items():
        for key, key_name in KEYS.items():
            wait_until_quiet(page)
            page.evaluate("window.steps = []")
            for _ in range(STEPS if key != "v" else STEPS // 4):
                page.keyboard.press(key)
                page.wait_for_timeout(wait_ms)  # the measured pace
            wait_until_quiet(page)
            steps = np.array(page.evaluate("window.steps"))
            figures[f"{key_name}, {pace}"] = {
                "steps": len(steps),
                "median_ms": round(float(np.median(steps)), 1),
                "p95_ms": round(float(np.percentile(steps, 95)), 1),
                "max_ms": round(float(steps.max()), 1),
            }
    return figures


if __name__ == "__main__":
    main()
