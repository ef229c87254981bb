"""A browser's own EventSource hears of ROIs, again and again, over answers that end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portal.annotations.services.rois import roi_create
from tests.live_servers import DATABASE

pytestmark = pytest.mark.browser
LISTEN = """() => {
  window.heard = [];
  const source = window.source = new EventSource('/api/v1/events/?types=roi.saved');
  source.addEventListener('roi.saved', (event) => window.heard.push([
    event.lastEventId, JSON.parse(event.data).data.id,
  ]));
  return new Promise((done) => { source.onopen = () => done(source.readyState); });
}"""


def test_an_event_source_receives_each_event_once(
    open_viewer: Callable[..., Any],
    ingest: Callable[[Path], Any],
    slide_file: Path,
    annotator: Any,
) -> None:
    canvas = ingest(slide_file)
    page = open_viewer(canvas).page
    answers: list[str | None] = []
    page.on(
        "request",
        lambda item: "/events/" in item.url and answers.append(item.headers.get("last-event-id")),
    )
    assert page.evaluate(LISTEN) == 1
    drawn = [_drawn(canvas, annotator, 10)]
    page.wait_for_function("() => window.heard.length === 1", timeout=15_000)
    drawn += [_drawn(canvas, annotator, left) for left in (20, 30)]
    page.wait_for_function("() => window.heard.length === 3", timeout=15_000)
    heard = page.evaluate("() => { window.source.close(); return window.heard; }")
    assert [roi for _, roi in heard] == drawn
    ids = [int(event) for event, _ in heard]
    assert ids == sorted(set(ids)) and len(answers) >= 3


def _drawn(canvas: Any, user: Any, left: int) -> str:
    ring = [[left, 10], [left + 90, 10], [left + 90, 90], [left, 10]]
    with DATABASE:
        geometry = {"type": "Polygon", "coordinates": [ring]}
        return str(roi_create(canvas=canvas, user=user, geometry=geometry).roi.pk)
