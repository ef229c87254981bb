"""Slides and videos over REST."""

from __future__ import annotations

import io
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image
from rest_framework.test import APIClient

from portal.archive.models import Case, Slide, Video
from tests.ml.imaging.videos.sample_files import MATRICES, corners, write_video
from tests.portal.archive.support import picture, png, run_job

pytestmark = pytest.mark.django_db


def test_an_uploaded_slide_is_accepted_with_its_job(api: APIClient, case: Case) -> None:
    sent = {"case": str(case.pk), "file": png(), "name": "Left"}
    answer = api.post("/api/v1/slides/", sent, format="multipart")
    assert answer.status_code == 202
    body = answer.json()
    assert answer.headers["Location"].endswith(f"/api/v1/jobs/{body['job']['id']}/")
    assert (body["name"], body["state"], body["canvas"]) == ("Left", "preparing", None)


@pytest.mark.slow
def test_the_same_file_again_is_the_same_slide(api: APIClient, case: Case) -> None:
    first = api.post("/api/v1/slides/", {"case": case.pk, "file": png()}, format="multipart")
    again = api.post("/api/v1/slides/", {"case": case.pk, "file": png()}, format="multipart")
    assert again.json()["id"] == first.json()["id"]
    assert again.json()["job"]["id"] == first.json()["job"]["id"]
    run_job(_job(first))
    later = api.post("/api/v1/slides/", {"case": case.pk, "file": png()}, format="multipart")
    assert later.status_code == 200
    assert (case.slides.count(), case.uploads.count()) == (1, 1)


def _job(answer: Any) -> Any:
    from portal.jobs.models import Job

    return Job.objects.get(pk=answer.json()["job"]["id"])


def test_a_video_is_no_slide_and_a_slide_no_video(
    api: APIClient, case: Case, video_file: Path, storage: Path
) -> None:
    sent = {"case": case.pk, "file": SimpleUploadedFile("v.mp4", video_file.read_bytes())}
    answer = api.post("/api/v1/slides/", sent, format="multipart")
    assert (answer.status_code, answer.json()["code"]) == (400, "unexpected-kind")
    answer = api.post("/api/v1/videos/", {"case": case.pk, "file": png()}, format="multipart")
    assert "the file is an image; expected a video" in answer.json()["detail"]
    assert not [path for path in storage.rglob("*") if path.is_file()]


@pytest.mark.parametrize("sent", [{}, {"case": "x"}, {"file": "text"}])
def test_an_upload_without_file_or_case_is_refused(
    api: APIClient, sent: dict[str, str], case: Case
) -> None:
    assert api.post("/api/v1/slides/", sent, format="multipart").status_code == 400


def test_an_upload_beyond_the_limit_is_refused(
    api: APIClient, case: Case, settings: Any, storage: Path
) -> None:
    settings.TESSERA_UPLOAD_MAX_BYTES = 500
    sent = {"case": case.pk, "file": png()}
    answer = api.post("/api/v1/slides/", sent, format="multipart")
    assert (answer.status_code, answer.json()["limit_bytes"]) == (413, 500)
    assert "the limit is 500 bytes" in answer.json()["detail"]
    assert not [path for path in storage.rglob("*") if path.is_file()]


def test_a_body_that_announces_too_much_is_not_read(
    api: APIClient, case: Case, settings: Any
) -> None:
    settings.TESSERA_UPLOAD_MAX_BYTES = 10
    big = SimpleUploadedFile("a.png", b"x" * (2 * 2**20))
    answer = api.post("/api/v1/slides/", {"case": case.pk, "file": big}, format="multipart")
    assert answer.status_code == 413


def test_a_slide_names_no_vendor_metadata_beyond_the_list(api: APIClient, slide: Slide) -> None:
    body = api.get(f"/api/v1/slides/{slide.pk}/").json()
    assert body["state"] == "ready"
    assert set(body["properties"]) <= {"openslide.mpp-x", "openslide.mpp-y"}


def test_a_slide_without_work_is_deleted(api: APIClient, still: Slide) -> None:
    assert api.delete(f"/api/v1/slides/{still.pk}/").status_code == 204
    assert not Slide.objects.exists()


def test_the_frame_table_is_paged(api: APIClient, video: Video) -> None:
    path = f"/api/v1/videos/{video.pk}/frames/"
    page = api.get(f"{path}?start=10&limit=5").json()
    assert [frame["index"] for frame in page["frames"]] == [10, 11, 12, 13, 14]
    assert page["frames"][0]["time_s"] == pytest.approx(0.4)
    assert page["next"] == f"http://testserver{path}?limit=5&start=15"
    on = api.get(f"{path}?limit=9&fields=next").json()["next"]
    assert on == f"http://testserver{path}?fields=next&limit=9&start=9"
    start = api.get(f"{path}?limit=2").json()["frames"]
    assert [frame["key"] for frame in start] == [True, False]
    assert api.get(f"{path}?start=25").json()["next"] is None
    assert api.get(f"{path}?start=99").json()["frames"] == []


@pytest.mark.parametrize("query", ["start=-1", "limit=0", "limit=5001", "start=x", "start=1.5"])
def test_a_bad_page_of_frames_is_refused(api: APIClient, video: Video, query: str) -> None:
    assert api.get(f"/api/v1/videos/{video.pk}/frames/?{query}").status_code == 400


def test_media_answers_ranges(api: APIClient, video: Video, video_file: Path) -> None:
    answer = api.get(f"/api/v1/videos/{video.pk}/media/", headers={"Range": "bytes=4-7"})
    assert answer.status_code == 206
    assert b"".join(answer.streaming_content) == video_file.read_bytes()[4:8]
    complete = api.get(f"/api/v1/videos/{video.pk}/media/", headers={"Accept": "video/mp4"})
    assert (complete.status_code, complete.headers["Content-Type"]) == (200, "video/mp4")


def test_a_video_reports_how_its_file_stores_frames(
    api: APIClient, case: Case, receive: Any, quick: None, tmp_path: Path
) -> None:
    """Shown with square pixels and upright: PAL, mirrored and turned."""
    stored = av.VideoFrame.from_ndarray(corners((180, 144)), format="rgb24")
    path = write_video(
        tmp_path / "a.mp4",
        stored.reformat(format="yuv420p"),
        "libx264",
        matrix=MATRICES["transposed"],
        aspect=Fraction(64, 45),
    )
    received = receive(case, path, "a.mp4")
    job = run_job(received.job)
    assert job.state == "succeeded", job.error_message
    body = api.get(f"/api/v1/videos/{received.item.pk}/").json()
    expected = {
        "stored_width": 180,
        "stored_height": 144,
        "sample_aspect_ratio": "64:45",
        "is_mirrored": True,
        "rotation_deg": 270,
    }
    assert {key: body[key] for key in expected} == expected
    canvas = api.get(f"/api/v1/canvases/{body['canvas']}/").json()
    assert {key: canvas["video"][key] for key in expected} == expected
    assert (canvas["width"], canvas["height"]) == (144, 256)
    rows = api.get(f"/api/v1/videos/{received.item.pk}/frames/").json()["frames"]
    for url in (
        canvas["video"]["frame_url"].replace("{pts}", str(rows[1]["pts"])),
        canvas["thumbnail_url"],
    ):
        picture = Image.open(io.BytesIO(b"".join(_pieces(api.get(url)))))
        assert picture.size == (144, 256)


def test_a_video_that_is_not_ready_has_no_stored_size(api: APIClient, video: Video) -> None:
    Video.objects.filter(pk=video.pk).update(geometry=None)
    body = api.get(f"/api/v1/videos/{video.pk}/").json()
    assert (body["stored_width"], body["sample_aspect_ratio"]) == (None, None)


def _pieces(response: Any) -> Any:
    return response.streaming_content if response.streaming else [response.content]


@pytest.mark.parametrize(
    ("field", "named"),
    [
        ('name="file"; filename="{}.png"'.format("x" * 2_000), "1,024 bytes"),
        ('name="file"; filename="a.png"\r\nX-More: {}'.format("x" * 2_000), "1,024 bytes"),
        ('name="name"\r\n\r\n{}\r\n--b--'.format("x" * 2**21), "short fields"),
        (
            "\r\n\r\n1\r\n--b\r\nContent-Disposition: form-data; ".join(
                f'name="n{number}"' for number in range(2_000)
            ),
            "few",
        ),
    ],
)
def test_an_unreadable_form_is_refused_with_advice(
    api: APIClient, case: Case, storage: Path, field: str, named: str
) -> None:
    answer = _sent(api, case, field, b"x")
    assert answer["Content-Type"] == "application/problem+json"
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid-form")
    assert named in answer.json()["detail"]
    assert not [path for path in storage.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", [".", "..", "a/", "\u202e", "&#46;", "C:\\"])
def test_a_file_with_a_name_that_cannot_be_used_is_received_all_the_same(
    api: APIClient, case: Case, name: str
) -> None:
    data = picture(400, 300)
    assert len(data) > 2**16
    answer = _sent(api, case, f'name="file"; filename="{name}"', data)
    assert answer.status_code == 202, answer.json()
    assert (answer.json()["name"], answer.json()["size_bytes"]) == ("unnamed", len(data))


def _sent(api: APIClient, case: Case, field: str, data: bytes) -> Any:
    body = f"--b\r\nContent-Disposition: form-data; {field}\r\n\r\n".encode() + data
    return api.generic(
        "POST",
        f"/api/v1/slides/?case={case.pk}",
        body + b"\r\n--b--\r\n",
        content_type="multipart/form-data; boundary=b",
    )
