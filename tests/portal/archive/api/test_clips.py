"""Clips of a video: ordered, written by a job, downloaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rest_framework.test import APIClient

from ml.imaging.sandbox.parent import run_limited
from ml.imaging.videos.video import iter_frames, probe_video
from portal.archive import inspection
from portal.archive.models import Video
from portal.archive.services import clips
from portal.archive.storage import files as storage
from portal.audit.models import AuditEntry
from portal.core.text import stem_of
from portal.jobs.models import Job
from tests.portal.archive.support import files_below, run_job

pytestmark = pytest.mark.django_db


def url_of(video: Video) -> str:
    return f"/api/v1/videos/{video.pk}/clip/"


def order(api: APIClient, video: Video, first: int, last: int) -> Any:
    span = {"first_index": first, "last_index": last}
    return api.post(url_of(video), span, format="json")


def download(api: APIClient, video: Video, first: int, last: int) -> Any:
    return api.get(url_of(video), {"first_index": first, "last_index": last})


def written(answer: Any) -> Job:
    assert answer.status_code == 202, answer.content
    job = run_job(Job.objects.get(pk=answer.json()["id"]))
    assert job.state == "succeeded", job.error_message + job.traceback
    return job


def test_a_clip_has_exactly_the_frames_of_its_span(
    api: APIClient, video: Video, video_file: Path, tmp_path: Path
) -> None:
    assert download(api, video, 7, 18).status_code == 404
    job = written(order(api, video, 7, 18))
    assert (job.result["frames"], job.progress_total) == (12, 12)
    assert (job.result["first_index"], job.result["first_time_s"]) == (7, pytest.approx(7 / 25))
    answer = download(api, video, 7, 18)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "video/mp4")
    assert f"{stem_of(video.name)} frames 8-19.mp4" in answer.headers["Content-Disposition"]
    path = tmp_path / "clip.mp4"
    path.write_bytes(b"".join(answer.streaming_content))
    assert probe_video(path).frames.time_s == pytest.approx(np.arange(12) / 25, abs=1e-9)
    source = [rgb.astype(int) for _, _, rgb in iter_frames(video_file)]
    frames = [rgb.astype(int) for _, _, rgb in iter_frames(path)]
    assert len(frames) == 12
    for index, rgb in enumerate(frames, 7):
        nearest = min(range(30), key=lambda at: float(np.abs(source[at] - rgb).mean()))
        assert nearest == index
        assert np.abs(source[index] - rgb).mean() < 3


def test_a_clip_is_resumed_and_written_once(api: APIClient, video: Video) -> None:
    first = order(api, video, 0, 4)
    assert order(api, video, 0, 4).json()["id"] == first.json()["id"]  # under way
    written(first)
    part: Any = api.get(
        url_of(video),
        {"first_index": 0, "last_index": 4},
        headers={"Range": "bytes=4-7"},
    )
    assert (part.status_code, b"".join(part.streaming_content)) == (206, b"ftyp")
    etag = part.headers["ETag"]
    written(order(api, video, 0, 4))
    assert download(api, video, 0, 4).headers["ETag"] == etag


def test_frames_that_are_not_there_or_too_many_are_refused(
    api: APIClient, video: Video, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clips, "MAX_CLIP_FRAMES", 20)
    for first, last, reason in (
        (5, 4, "frame 4 is before the first frame, 5"),
        (3, 30, "it has frames 0 to 29"),
        (0, 29, "a clip has 20 frames at most; these are 30"),
        (-1, 4, ""),
    ):
        answer = order(api, video, first, last)
        assert answer.status_code == 400
        assert reason in str(answer.json())
    assert not Job.objects.filter(kind=clips.CLIP_KIND).exists()


def test_a_clip_is_in_the_audit_log(api: APIClient, video: Video) -> None:
    written(order(api, video, 0, 4))
    download(api, video, 0, 4)
    for action in ("video.clip_requested", "video.clip_downloaded"):
        entry = AuditEntry.objects.get(action=action)
        assert (str(entry.object_id), entry.lab_id) == (str(video.pk), video.lab_id)


def test_a_clip_of_a_deleted_video_ends_with_a_reason(api: APIClient, video: Video) -> None:
    answer = order(api, video, 0, 4)
    Video.objects.filter(pk=video.pk).delete()
    job = run_job(Job.objects.get(pk=answer.json()["id"]))
    assert (job.state, job.error_message) == (
        "failed",
        "The video was deleted before the clip was written.",
    )


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Real children; the list has what each was started for and may open."""
    started: list[dict[str, Any]] = []

    def run(target: str, arguments: Any, **options: Any) -> dict[str, Any]:
        started.append({"target": target, **arguments, **options})
        return run_limited(target, arguments, **options)

    monkeypatch.setattr(inspection, "run_limited", run)
    return started


@pytest.mark.slow
def test_a_clip_is_written_in_a_child_that_opens_only_the_video_and_scratch(
    api: APIClient, video: Video, children: list[dict[str, Any]]
) -> None:
    assert video.canvas is not None
    written(order(api, video, 7, 18))
    (child,) = children
    assert child["target"] == "ml.imaging.ingest:make_clip"
    source, frames = (
        storage.resolve(path) for path in (video.canvas.pixels_path, video.frames_path)
    )
    assert child["reads"] == (source, frames)
    assert child["writes"] == (Path(child["out_dir"]),)
    assert not Path(child["out_dir"]).exists()
    assert download(api, video, 7, 18).status_code == 200


def _truncated(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _zeroed(data: bytes) -> bytes:
    """All pictures are zero, the lists of frames are not."""
    start, end = data.index(b"mdat") + 4, data.index(b"moov") - 4
    return data[:start] + bytes(end - start) + data[end:] if start < end else bytes(len(data))


def _naming_others(data: bytes) -> bytes:
    return b"ffconcat version 1.0\nfile /etc/hostname\n"


@pytest.mark.slow
@pytest.mark.parametrize("harm", [_truncated, _zeroed, _naming_others])
def test_a_clip_of_a_damaged_or_hostile_video_fails_with_a_reason_and_leaves_nothing(
    api: APIClient, video: Video, children: list[dict[str, Any]], harm: Callable[[bytes], bytes]
) -> None:
    assert video.canvas is not None
    answer = order(api, video, 7, 18)
    path = storage.resolve(video.canvas.pixels_path)
    data = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(harm(data))
    before = files_below(storage.resolve(""))
    job = run_job(Job.objects.get(pk=answer.json()["id"]))
    assert (job.state, job.traceback) == ("failed", "")
    assert job.error_code and "hostname" not in job.error_message
    assert not Path(children[0]["out_dir"]).exists()
    assert files_below(storage.resolve("")) == before
    assert download(api, video, 7, 18).status_code == 404


def test_a_clip_costs_the_same_queries_for_one_frame_and_for_thirty(
    api: APIClient, video: Video, django_assert_max_num_queries: Any
) -> None:
    written(order(api, video, 1, 1))  # what a process reads once
    counts = []
    for last in (0, 29):
        with django_assert_max_num_queries(20) as queries:
            answer = order(api, video, 0, last)
        written(answer)
        with django_assert_max_num_queries(4):  # the first of a minute is audited
            assert download(api, video, 0, last).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]
