"""A real chromium on a live server: synthetic slides and videos, and a driver of the viewer."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.conf import settings as django_settings

from tests.browser.chromium import FLAGS, executable
from tests.clients import client_of
from tests.live_servers import DATABASE, one_at_a_time_server
from tests.world import moving_video_file

SLIDE_SIZE = (2000, 1500)
FRAME_SIZE = (256, 192)
FRAME_BITS = 6
OPEN = threading.Event()
"""Set while a test lasts: what pages still ask for afterwards must not meet emptying tables."""


EXPECTED_MS = 30_000
"""Timeout of each ``expect``, equal to that of Playwright's other calls."""


@pytest.fixture(scope="session", autouse=True)
def _expect_timeout() -> None:
    """Set the timeout of each ``expect``."""
    from playwright.sync_api import expect

    expect.set_options(timeout=EXPECTED_MS)


@pytest.fixture(scope="session")
def live_server() -> Iterator[Any]:
    """pytest-django's, with requests one at a time."""
    if not (django_settings.ROOT / "static" / "dist" / "viewer.js").exists():
        pytest.skip("static/dist is not built: run `npm run build`")
    yield from one_at_a_time_server(OPEN)


@pytest.fixture
def open_server(live_server: Any, transactional_db: None) -> Iterator[Any]:
    """The live server for one test: closed after the pages are, and before tables are emptied."""
    OPEN.set()
    yield live_server
    with DATABASE:  # whoever is being answered is answered wholly
        OPEN.clear()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's chromium; skips where it is missing."""
    chromium = executable()
    if chromium is None:
        if os.environ.get("TESSERA_REQUIRE_BROWSER") == "1":
            pytest.fail("chromium must be here")
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # playwright's loop runs in this thread
    with sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield instance
        instance.close()
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="session")
def slide_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pyramid of 2000 x 1500 px with 0.5 um per pixel: pale, with dark blots."""
    from ml.imaging.slides.pyramids import write_pyramid

    width, height = SLIDE_SIZE
    y, x = np.mgrid[0:height, 0:width]
    blots = (np.sin(x / 90) * np.sin(y / 70) > 0.6)[..., None]
    image = np.where(blots, (150, 80, 150), (240, 225, 235)).astype(np.uint8)
    path = tmp_path_factory.mktemp("slides") / "blots.tif"
    write_pyramid(image, path, mpp=0.5)
    return path


@pytest.fixture(scope="session")
def video_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 frames; six vertical stripes, white for a set bit, write the index of each frame."""
    import av

    width, height = FRAME_SIZE
    path = tmp_path_factory.mktemp("videos") / "numbered.mp4"
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt, stream.gop_size = width, height, "yuv420p", 12
        for index in range(40):
            bits = [(index >> bit) & 1 for bit in range(FRAME_BITS)]
            row = np.repeat(np.array(bits, np.uint8) * 255, -(-width // FRAME_BITS))[:width]
            image = np.repeat(np.repeat(row[None, :, None], height, 0), 3, 2)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode(None))
    return path


@pytest.fixture(scope="session")
def sweep_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """See ``moving_video_file``."""
    return moving_video_file(tmp_path_factory.mktemp("videos"))


def run_job(job: Any) -> None:
    """Run a submitted job now; the test fails with the job's own words where it does."""
    from portal.jobs.worker.runner import job_run

    with DATABASE:
        job_run(job.pk)
        job.refresh_from_db()
    if job.state != "succeeded":
        pytest.fail(f"{job.title}: {job.error_message}\n{job.traceback}", pytrace=False)


def run_queued() -> None:
    """Run what is queued, and what that queues, as ``run_job`` does."""
    from portal.jobs.models import Job, JobState

    while True:
        with DATABASE:
            waiting = list(Job.objects.filter(state=JobState.QUEUED).order_by("created_at", "pk"))
        if not waiting:
            return
        for job in waiting:
            run_job(job)


def wait_for_jobs(kind: str, count: int = 1) -> list[Any]:
    """Wait until the page's requests have queued ``count`` jobs of a kind; returns them.

    The page's ``route`` handlers do not run during the wait.
    """
    from django.db.models.signals import post_save

    from portal.jobs.models import Job, JobState

    saved = threading.Event()

    def note(**_: Any) -> None:
        saved.set()

    post_save.connect(note, sender=Job)
    try:
        while True:
            saved.clear()
            with DATABASE:  # the request that saved a job is over, and its transaction with it
                queued = Job.objects.filter(kind=kind, state=JobState.QUEUED)
                jobs = list(queued.order_by("created_at", "pk"))
            if len(jobs) >= count:
                return jobs
            if not saved.wait(timeout=60):
                pytest.fail(f"{len(jobs)} of {count} jobs {kind} were queued")
    finally:
        post_save.disconnect(note, sender=Job)


@pytest.fixture
def ingest(storage: Path, annotator: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Any]:
    """``ingest(path)``: upload and process a file; returns the canvas.

    Files are opened in this process: a child costs half a second.
    """
    from portal.archive.services.cases import case_create
    from portal.archive.services.items import item_receive
    from portal.archive.tiles.cache import SOURCES
    from portal.archive.tiles.server import TILES
    from tests import world

    world.in_process(monkeypatch)
    TILES.clear()
    SOURCES.clear()

    def run(path: Path) -> Any:
        lab = annotator.memberships.get().lab
        case = case_create(lab=lab, user=annotator, accession=path.stem)
        with path.open("rb") as file:
            received = item_receive(case=case, file=file, filename=path.name, user=annotator)
        run_job(received.job)
        received.item.refresh_from_db()
        return received.item.canvas

    return run


@pytest.fixture
def open_context(browser: Any, open_server: Any) -> Iterator[Callable[..., Any]]:
    """``open_context(user, **options)``: a context of chromium, signed in as that user."""

    contexts: list[Any] = []

    def run(user: Any, **options: Any) -> Any:
        with DATABASE:
            client = client_of(user)
        context = browser.new_context(**{"viewport": {"width": 1366, "height": 768}} | options)
        contexts.append(context)
        cookie = client.cookies[django_settings.SESSION_COOKIE_NAME].value
        context.add_cookies([{"name": "sessionid", "value": cookie, "url": open_server.url}])
        return context

    yield run
    for context in contexts:
        context.close()


@pytest.fixture
def open_page(
    open_context: Callable[..., Any], open_server: Any, annotator: Any
) -> Callable[..., Any]:
    """``open_page(path, user=..., **options)``: a page as the annotator or that user.

    Its ``complaints`` are the errors of its scripts. Pages of one user and options share a context.
    """
    contexts: dict[str, Any] = {}

    def run(path: str, *, user: Any = None, **options: Any) -> Any:
        user = user or annotator
        key = f"{user.pk} {options}"
        if key not in contexts:
            contexts[key] = open_context(user, **options)
        page = contexts[key].new_page()
        page.complaints = []
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(open_server.url + path)
        return page

    return run


@pytest.fixture
def open_viewer(
    open_context: Callable[..., Any], open_server: Any, annotator: Any
) -> Callable[..., Any]:
    """``open_viewer(canvas, query="x=..", user=...)``: the viewer, ready, as a ``ViewerPage``."""
    from tests.browser.viewer_page import ViewerPage

    def run(canvas: Any, query: str = "", user: Any = None) -> ViewerPage:
        context = open_context(user or annotator)
        viewer = ViewerPage(context.new_page(), open_server.url, canvas, DATABASE)
        viewer.open(query)
        return viewer

    return run
