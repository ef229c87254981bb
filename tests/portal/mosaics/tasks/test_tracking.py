"""The job that follows an ROI over the frames of its video."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_create, roi_delete, roi_update
from portal.archive.models import Video
from portal.core.errors import ConflictError, ForbiddenError, InvalidInputError, StaleVersionError
from portal.jobs.models import Job
from portal.labs.models import User
from portal.mosaics.services.tracking import roi_track
from tests.portal.archive.support import run_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def roi(video: Video, annotator: User) -> Roi:
    """In the middle of the sweep's sixth frame; the fifth is black."""
    canvas: Any = video.canvas
    x, y = canvas.width_px / 2, canvas.height_px / 2
    ring = [[x - 30, y - 20], [x + 30, y - 20], [x + 30, y + 20], [x - 30, y + 20]]
    geometry = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
    return roi_create(canvas=canvas, user=annotator, geometry=geometry, frame_index=5).roi


def _followed(roi: Roi, user: User, **how: Any) -> Job:
    roi.refresh_from_db()
    job = roi_track(roi=roi, user=user, expected_version=roi.version, **how)
    run_job(job)
    roi.refresh_from_db()
    return job


def test_an_outline_is_followed_both_ways_as_one_version_each(roi: Roi, annotator: User) -> None:
    job = _followed(roi, annotator, frames=3)
    assert (job.state, job.result["frames"], job.result["last"]) == ("succeeded", 3, 8)
    assert roi.version == 2
    assert {key["by"] for key in roi.track} == {"tracking"}
    assert max(key["index"] for key in roi.track) == 8
    assert all(key["drift_px"] > 0 for key in roi.track)
    _followed(roi, annotator, backward=True)
    assert (roi.version, min(key["index"] for key in roi.track)) == (3, 0)
    run_job(job)  # a second time: nothing more
    roi.refresh_from_db()
    assert roi.version == 3


def test_tracking_again_replaces_tracked_outlines_and_preserves_manual_ones(
    roi: Roi, annotator: User
) -> None:
    by_hand = {"index": 8, "geometry": roi.geometry}
    roi_update(roi=roi, user=annotator, expected_version=1, changes={"track": [by_hand]})
    _followed(roi, annotator)
    assert max(key["index"] for key in roi.track) == 8
    assert next(key for key in roi.track if key["index"] == 8)["by"] == "hand"
    tracked = [key for key in roi.track if key["by"] == "tracking"]
    assert [key["index"] for key in tracked][-1] == 7  # up to the one before it
    _followed(roi, annotator)
    assert [key for key in roi.track if key["by"] == "tracking"] == tracked


def test_a_concurrent_change_is_not_overwritten(roi: Roi, annotator: User) -> None:
    job = roi_track(roi=roi, user=annotator, expected_version=1)
    roi_update(roi=roi, user=annotator, expected_version=1, changes={"name": "mine"})
    assert run_job(job).error_code == "changed"
    roi.refresh_from_db()
    assert (roi.version, roi.track) == (2, [])


def test_a_deleted_roi_ends_the_job_in_words(roi: Roi, annotator: User) -> None:
    job = roi_track(roi=roi, user=annotator, expected_version=1)
    roi_delete(roi=roi, user=annotator, expected_version=1)
    assert run_job(job).error_code == "gone"


def test_permissions_and_valid_targets_of_tracking(roi: Roi, annotator: User, viewer: User) -> None:
    with pytest.raises(ForbiddenError):
        roi_track(roi=roi, user=viewer, expected_version=1)
    with pytest.raises(StaleVersionError):
        roi_track(roi=roi, user=annotator, expected_version=9)
    with pytest.raises(InvalidInputError, match="key frame"):
        roi_track(roi=roi, user=annotator, expected_version=1, from_index=7)
    roi_update(roi=roi, user=annotator, expected_version=1, changes={"is_locked": True})
    with pytest.raises(ConflictError):
        roi_track(roi=roi, user=annotator, expected_version=2)
    assert not Job.objects.filter(kind="roi_track").exists()


def test_rest_answers_with_the_job(
    roi: Roi, api: APIClient, django_assert_max_num_queries: Any
) -> None:
    url = f"/api/v1/rois/{roi.pk}/track/"
    assert api.post(url, {}, format="json").status_code == 428
    with django_assert_max_num_queries(20):
        answer = api.post(url, {"frames": 2}, format="json", headers={"If-Match": '"1"'})
    assert (answer.status_code, answer.json()["kind"]) == (202, "roi_track")
    assert answer.headers["Location"].endswith(f"/api/v1/jobs/{answer.json()['id']}/")
    other = api.post(
        f"/api/v1/rois/{uuid.uuid4()}/track/", {}, format="json", headers={"If-Match": '"1"'}
    )
    assert other.status_code == 404
