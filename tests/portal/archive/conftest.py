"""Fixtures of the archive's tests: small files with known content, cases, ready items."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from portal.archive.models import Case, Slide, Video
from portal.labs.models import Lab, User
from tests.portal.archive.support import make_video, picture, run_job
from tests.world import in_process


@pytest.fixture(autouse=True)
def _own_storage(storage: Path) -> None:
    """Every test of the archive has a storage root of its own, and forgets cached files."""

    from portal.archive.tiles.cache import SOURCES
    from portal.archive.tiles.server import TILES

    TILES.clear()
    SOURCES.clear()


@pytest.fixture(scope="session")
def slide_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiled JPEG pyramid of 1200 x 900 px with 0.5 um per pixel."""
    from ml.imaging.slides.pyramids import write_pyramid

    rng = np.random.default_rng(1)
    low = rng.integers(0, 255, (30, 40, 3), dtype=np.uint8)
    image = np.asarray(Image.fromarray(low).resize((1200, 900), Image.Resampling.BICUBIC))
    path = tmp_path_factory.mktemp("slides") / "sample.tif"
    write_pyramid(image, path, mpp=0.5)
    return path


@pytest.fixture(scope="session")
def video_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An h264 mp4 of 30 frames of 160 x 120 px."""
    return make_video(tmp_path_factory.mktemp("videos") / "sample.mp4", codec="libx264")


@pytest.fixture(scope="session")
def odd_video_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An mpeg4 AVI, which no browser plays."""
    return make_video(tmp_path_factory.mktemp("videos") / "sample.avi", codec="mpeg4")


@pytest.fixture
def case(lab: Lab, annotator: User) -> Case:
    """An empty case of the lab."""
    from portal.archive.services.cases import case_create

    return case_create(lab=lab, user=annotator, accession="S-1", organ="colon", tags=["urgent"])


@pytest.fixture
def foreign_case(other_lab: Lab, stranger: User) -> Case:
    """A case of the other lab."""
    from portal.archive.services.cases import case_create

    return case_create(lab=other_lab, user=stranger, accession="X-1", organ="lung")


Receive = Callable[..., Any]


@pytest.fixture
def receive(annotator: User) -> Receive:
    """``receive(case, bytes or path, name, user=...)``: as an upload form does; runs no job."""
    from portal.archive.services.items import item_receive

    def run(case: Case, content: bytes | Path, name: str, user: User = annotator) -> Any:
        data = content.read_bytes() if isinstance(content, Path) else content
        return item_receive(case=case, file=io.BytesIO(data), filename=name, user=user)

    return run


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ingest in this process. A child costs a second; ``test_tasks`` uses real ones."""
    in_process(monkeypatch)


@pytest.fixture
def still(case: Case, receive: Receive, quick: None) -> Slide:
    """A ready still."""
    return _ready(receive(case, picture(), "still.png"))


@pytest.fixture
def slide(case: Case, receive: Receive, slide_file: Path, quick: None) -> Slide:
    """A ready slide of two levels."""
    return _ready(receive(case, slide_file, "sample.tif"))


@pytest.fixture
def video(case: Case, receive: Receive, video_file: Path, quick: None) -> Video:
    """A ready video."""
    return _ready(receive(case, video_file, "sample.mp4"))


@pytest.fixture
def foreign_slide(foreign_case: Case, receive: Receive, stranger: User, quick: None) -> Slide:
    """A ready still of the other lab."""
    return _ready(receive(foreign_case, picture(seed=9), "theirs.png", user=stranger))


def _ready(received: Any) -> Any:
    job = run_job(received.job)
    assert job.state == "succeeded", job.error_message + job.traceback
    received.item.refresh_from_db()
    return received.item
