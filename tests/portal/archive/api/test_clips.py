"""Clips of a video: ordered, written by a job, downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rest_framework.test import APIClient

from ml.imaging.videos.video import iter_frames, probe_video
from portal.archive.models import Video
from portal.archive.services import clips
from portal.audit.models import AuditEntry
from portal.jobs.models import Job
from tests.portal.archive.support import run_job

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
    answer = download(api, video, 7, 18)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "video/mp4")
    assert f"{video.name} frames 8 to 19.mp4" in answer.headers["Content-Disposition"]
    path = tmp_path / "clip.mp4"
    path.write_bytes(b"".join(answer.streaming_content))
    assert probe_video(path).frames.time_s == pytest.approx(np.arange(12) / 25, abs=1e-9)
    source = [rgb.astype(int) for _, _, rgb in iter_frames(video_file)]
    found = [rgb.astype(int) for _, _, rgb in iter_frames(path)]
    assert len(found) == 12
    for index, rgb in enumerate(found, 7):
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
    for action in ("video.clip_ordered", "video.clip_downloaded"):
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
