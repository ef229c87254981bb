"""A build that was stopped goes on, and a longer one continues a shorter one."""

from __future__ import annotations

from typing import Any

import pytest

from portal.annotations.services.rois import roi_create
from portal.archive.models import Video
from portal.jobs.models import Job
from portal.labs.models import User
from portal.mosaics.build_cache import build_cache_claim, build_cache_exists
from portal.mosaics.models import Mosaic
from portal.mosaics.services.mosaics import mosaic_create
from tests.portal.mosaics.conftest import run_job


@pytest.mark.slow
def test_a_stopped_build_resumes_from_its_finished_stages(
    video: Video, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ml.mosaic as engine

    build, phases = engine.build_mosaic, []

    def watched(*args: Any, progress: Any, **kwargs: Any) -> Any:
        def note(done: int, total: int, phase: str) -> None:
            if not phases or phases[-1] != phase:
                phases.append(phase)
            if phase == "blend" and not is_going_on:
                Job.objects.update(cancel_requested=True)
            progress(done, total, phase)

        return build(*args, progress=note, **kwargs)

    monkeypatch.setattr(engine, "build_mosaic", watched)
    is_going_on = False
    requested = mosaic_create(video=video, user=annotator)
    assert run_job(requested.job).state == "cancelled"
    assert phases[:2] == ["survey", "register"]
    assert build_cache_exists(requested.mosaic)
    is_going_on = True
    phases.clear()
    assert run_job(mosaic_create(video=video, user=annotator).job).state == "succeeded"
    assert "survey" not in phases
    assert "register" not in phases
    assert phases[-1] == "write"


@pytest.mark.slow
def test_a_longer_span_processes_only_its_new_frames(
    video: Video, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ml.mosaic as engine

    build, surveyed = engine.build_mosaic, []

    def watched(*args: Any, progress: Any, **kwargs: Any) -> Any:
        def note(done: int, total: int, phase: str) -> None:
            if phase == "survey":
                surveyed.append(done)
            progress(done, total, phase)

        return build(*args, progress=note, **kwargs)

    monkeypatch.setattr(engine, "build_mosaic", watched)
    short = mosaic_create(video=video, user=annotator, config={"end_s": 0.24})
    assert run_job(short.job).state == "succeeded"
    roi = roi_create(
        canvas=Mosaic.objects.get().canvas,  # type: ignore[arg-type]
        user=annotator,
        geometry={"type": "Polygon", "coordinates": [[[5, 5], [50, 5], [50, 50], [5, 50]]]},
    ).roi
    first, surveyed[:] = max(surveyed), []
    longer = mosaic_create(video=video, user=annotator)
    assert run_job(longer.job).state == "succeeded"
    assert min(surveyed) >= first
    longer.mosaic.refresh_from_db()
    assert (longer.mosaic.frame_count, Mosaic.objects.count()) == (10, 2)
    roi.refresh_from_db()
    assert (roi.deleted_at, roi.version) == (None, 1), "the shorter one is left as it was"


def test_a_build_concurrent_to_a_lost_one_works_without_its_stages(
    video: Video, annotator: User
) -> None:
    requested = mosaic_create(video=video, user=annotator)
    with build_cache_claim(requested.mosaic) as mine:
        assert mine is not None
        with build_cache_claim(requested.mosaic) as other:
            assert other is None
        assert run_job(requested.job).state == "succeeded"
