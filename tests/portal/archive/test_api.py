"""REST of the archive: what it answers, to whom, at what cost."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from portal.archive.models import Case, Slide, Video
from portal.archive.services import case_create
from portal.labs.models import Lab, Membership, User
from tests.portal.archive.support import picture, run_job

pytestmark = pytest.mark.django_db


def png(name: str = "a.png", seed: int = 0) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, picture(40, 30, seed=seed))


# --- cases -----------------------------------------------------------------------------------


def test_a_case_is_created_read_changed_and_deleted(api: APIClient, lab: Lab) -> None:
    made = api.post("/api/v1/cases/", {"accession": "S-9", "organ": "lung", "tags": ["a", "A"]})
    assert made.status_code == 201
    assert (made.json()["lab"], made.json()["tags"]) == (str(lab.pk), ["a"])
    path = f"/api/v1/cases/{made.json()['id']}/"
    assert api.patch(path, {"diagnosis": "Adenoma"}).json()["diagnosis"] == "Adenoma"
    assert api.get(path).json()["organ"] == "lung"
    assert api.put(path, {"accession": "S-10"}).json()["accession"] == "S-10"
    assert api.delete(path).status_code == 204
    assert api.get(path).status_code == 404


def test_an_accession_is_used_once_in_a_lab(api: APIClient, case: Case) -> None:
    answer = api.post("/api/v1/cases/", {"accession": "S-1"})
    assert (answer.status_code, answer.json()["code"]) == (409, "accession-taken")


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({}, "accession"),
        ({"accession": "   "}, "accession"),
        ({"accession": "x" * 65}, "accession"),
        ({"accession": "x", "sex": "robot"}, "sex"),
        ({"accession": "x", "tags": ["t" * 41]}, "tags"),
        ({"accession": "x", "tags": "red"}, "tags"),
        ({"accession": "x", "lab": "no-uuid"}, "lab"),
        ({"accession": "x\u0000"}, "accession"),
    ],
)
def test_a_bad_case_is_refused_by_the_name_of_its_field(
    api: APIClient, body: dict[str, Any], names: str
) -> None:
    answer = api.post("/api/v1/cases/", body)
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert names in answer.json()["detail"]


def test_who_writes_in_two_labs_names_one(api: APIClient, annotator: User, other_lab: Lab) -> None:
    Membership.objects.create(user=annotator, lab=other_lab, role="annotator")
    assert api.post("/api/v1/cases/", {"accession": "x"}).status_code == 400
    made = api.post("/api/v1/cases/", {"accession": "x", "lab": str(other_lab.pk)})
    assert made.json()["lab"] == str(other_lab.pk)
    moved = api.patch(f"/api/v1/cases/{made.json()['id']}/", {"lab": str(uuid.uuid4())})
    assert moved.status_code == 400


def test_another_labs_id_cannot_be_written_to(api: APIClient, other_lab: Lab) -> None:
    answer = api.post("/api/v1/cases/", {"accession": "x", "lab": str(other_lab.pk)})
    assert answer.status_code == 404


def test_cases_are_searched_filtered_and_sorted(api: APIClient, lab: Lab, annotator: User) -> None:
    for accession, organ in (("A", "colon"), ("B", "lung"), ("C", "colon")):
        case_create(lab=lab, user=annotator, accession=accession, organ=organ, tags=[organ[:2]])

    def found(query: str) -> list[str]:
        rows = api.get(f"/api/v1/cases/?{query}").json()["results"]
        return [row["accession"] for row in rows]

    assert found("organ=COLON&ordering=accession") == ["A", "C"]
    assert found("organ=colon&ordering=-accession") == ["C", "A"]
    assert found("q=lung") == ["B"]
    assert found("tag=lu") == ["B"]
    assert found("page_size=1&page=2&ordering=accession") == ["B"]
    assert api.get("/api/v1/cases/?sex=robot").status_code == 400


@pytest.mark.parametrize("count", [1, 30])
@pytest.mark.parametrize("path", ["cases", "slides"])
def test_lists_cost_the_same_for_one_row_and_thirty(
    api: APIClient, lab: Lab, annotator: User, case: Case, receive: Any, path: str, count: int,
    django_assert_max_num_queries: Any,
) -> None:  # fmt: skip
    for number in range(count):
        case_create(lab=lab, user=annotator, accession=f"N-{number}")
        receive(case, picture(8, 8, seed=number), f"{number}.png")
    with django_assert_max_num_queries(3):
        assert api.get(f"/api/v1/{path}/").json()["count"] >= count


# --- slides and videos -----------------------------------------------------------------------


def test_an_uploaded_slide_is_accepted_with_its_job(api: APIClient, case: Case) -> None:
    sent = {"case": str(case.pk), "file": png(), "name": "Left"}
    answer = api.post("/api/v1/slides/", sent, format="multipart")
    assert answer.status_code == 202
    body = answer.json()
    assert answer.headers["Location"].endswith(f"/api/v1/jobs/{body['job']['id']}/")
    assert (body["name"], body["state"], body["canvas"]) == ("Left", "preparing", None)


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
    assert page["next"] == f"{path}?start=15&limit=5"
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
    whole = api.get(f"/api/v1/videos/{video.pk}/media/", headers={"Accept": "video/mp4"})
    assert (whole.status_code, whole.headers["Content-Type"]) == (200, "video/mp4")


# --- canvases --------------------------------------------------------------------------------


def test_a_canvas_has_the_shape_of_the_contract(api: APIClient, slide: Slide) -> None:
    canvas = api.get(f"/api/v1/canvases/{slide.canvas_id}/").json()
    assert canvas["kind"] == "slide"
    assert canvas["case"] == {"id": str(slide.case_id), "accession": "S-1"}
    assert canvas["mpp_x"] == pytest.approx(0.5, rel=1e-3)
    assert set(canvas["levels"][0]) == {
        "width", "height", "downsample", "tile_width", "tile_height",
    }  # fmt: skip
    assert canvas["levels"][0]["downsample"] == 1.0
    assert "{z}/{x}/{y}.jpg" in canvas["tile_url"]
    assert (canvas["video"], canvas["can_annotate"]) == (None, True)


def test_a_video_canvas_names_its_frames(api: APIClient, video: Video) -> None:
    canvas = api.get(f"/api/v1/canvases/{video.canvas_id}/").json()
    assert (canvas["tile_url"], canvas["levels"]) == (None, [])
    shown = canvas["video"]
    assert shown["frame_count"] == 30
    first = api.get(shown["frames_url"]).json()["frames"][0]
    assert api.get(shown["frame_url"].replace("{pts}", str(first["pts"]))).status_code == 200
    assert api.get(shown["media_url"]).status_code == 200


def test_a_viewer_may_not_annotate(api_as: Any, viewer: User, slide: Slide) -> None:
    canvas = api_as(viewer).get(f"/api/v1/canvases/{slide.canvas_id}/").json()
    assert canvas["can_annotate"] is False


def test_an_unknown_pts_is_not_rounded(api: APIClient, video: Video) -> None:
    pts = [f["pts"] for f in api.get(f"/api/v1/videos/{video.pk}/frames/").json()["frames"]]
    answer = api.get(f"/api/v1/canvases/{video.canvas_id}/frames/{pts[3] + 1}.jpg")
    assert (answer.status_code, answer.json()["code"]) == (404, "frame-not-found")
    assert answer.json()["nearest"] == [pts[3], pts[4]]
    assert api.get(f"/api/v1/canvases/{video.canvas_id}/frames/-5.jpg").status_code == 404


def test_frames_and_thumbnails_have_etags(api: APIClient, video: Video) -> None:
    for path in ("frames/0.jpg", "thumbnail.jpg"):
        url = f"/api/v1/canvases/{video.canvas_id}/{path}"
        first = api.get(url)
        assert first.content.startswith(b"\xff\xd8")
        again = api.get(url, headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_a_slide_has_no_frames_and_a_video_no_tiles(
    api: APIClient, slide: Slide, video: Video
) -> None:
    assert api.get(f"/api/v1/canvases/{slide.canvas_id}/frames/0.jpg").status_code == 404
    assert api.get(f"/api/v1/canvases/{video.canvas_id}/tiles/0/0/0.jpg").status_code == 404


def test_an_image_element_is_served_and_its_errors_are_problems(
    api: APIClient, slide: Slide
) -> None:
    base = f"/api/v1/canvases/{slide.canvas_id}/tiles"
    assert api.get(f"{base}/0/0/0.jpg", headers={"Accept": "image/jpeg"}).status_code == 200
    lost = api.get(f"{base}/7/0/0.jpg", headers={"Accept": "image/jpeg"})
    assert (lost.status_code, lost.headers["Content-Type"]) == (404, "application/problem+json")


# --- who may ---------------------------------------------------------------------------------

READS = [
    "/api/v1/cases/{case}/",
    "/api/v1/slides/{slide}/",
    "/api/v1/canvases/{canvas}/",
    "/api/v1/canvases/{canvas}/tiles/0/0/0.jpg",
    "/api/v1/canvases/{canvas}/thumbnail.jpg",
    "/api/v1/canvases/{canvas}/frames/0.jpg",
]
LISTS = ["/api/v1/cases/", "/api/v1/slides/", "/api/v1/videos/"]


def filled(path: str, slide: Slide) -> str:
    return path.format(case=slide.case_id, slide=slide.pk, canvas=slide.canvas_id)


@pytest.mark.parametrize("path", READS)
def test_another_labs_ids_are_not_found(api: APIClient, foreign_slide: Slide, path: str) -> None:
    assert api.get(filled(path, foreign_slide)).status_code == 404


def test_another_labs_ids_are_not_found_by_writes(api: APIClient, foreign_slide: Slide) -> None:
    case, slide = f"/api/v1/cases/{foreign_slide.case_id}/", f"/api/v1/slides/{foreign_slide.pk}/"
    assert api.patch(case, {"organ": "x"}).status_code == 404
    assert api.put(case, {"accession": "x"}).status_code == 404
    assert api.delete(case).status_code == 404
    assert api.delete(slide).status_code == 404
    sent = {"case": foreign_slide.case_id, "file": png()}
    for kind in ("slides", "videos"):
        assert api.post(f"/api/v1/{kind}/", sent, format="multipart").status_code in (400, 404)


def test_another_labs_video_is_not_found(api_as: Any, stranger: User, video: Video) -> None:
    client = api_as(stranger)
    for path in ("", "frames/", "media/"):
        assert client.get(f"/api/v1/videos/{video.pk}/{path}").status_code == 404
    assert client.get(f"/api/v1/canvases/{video.canvas_id}/frames/0.jpg").status_code == 404


@pytest.mark.parametrize("path", LISTS)
def test_lists_show_nothing_of_another_lab(api: APIClient, foreign_slide: Slide, path: str) -> None:
    assert api.get(path).json()["count"] == 0


@pytest.mark.parametrize("path", [*READS, *LISTS])
def test_nobody_reads_without_signing_in(still: Slide, path: str) -> None:
    answer = APIClient().get(filled(path, still))
    assert answer.status_code == 401
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_viewer_reads_and_does_not_write(api_as: Any, viewer: User, still: Slide) -> None:
    client = api_as(viewer)
    for path in (*READS[:5], *LISTS):
        assert client.get(filled(path, still)).status_code == 200
    assert client.post("/api/v1/cases/", {"accession": "x"}).status_code == 403
    assert client.patch(f"/api/v1/cases/{still.case_id}/", {"organ": "x"}).status_code == 403
    assert client.delete(f"/api/v1/cases/{still.case_id}/").status_code == 403
    assert client.delete(f"/api/v1/slides/{still.pk}/").status_code == 403
    sent = {"case": still.case_id, "file": png(seed=3)}
    assert client.post("/api/v1/slides/", sent, format="multipart").status_code == 403


@pytest.mark.parametrize("role", ["annotator", "reviewer", "manager"])
def test_from_annotator_up_people_write(
    api_as: Any, request: pytest.FixtureRequest, case: Case, role: str
) -> None:
    client = api_as(request.getfixturevalue(role))
    assert client.post("/api/v1/cases/", {"accession": "x"}).status_code == 201
    sent = {"case": case.pk, "file": png()}
    assert client.post("/api/v1/slides/", sent, format="multipart").status_code == 202


@pytest.mark.parametrize("kind", ["cases", "slides", "videos", "canvases"])
def test_unknown_and_malformed_ids_are_not_found(api: APIClient, kind: str, lab: Lab) -> None:
    for name in (uuid.uuid4(), "1", "x" * 36, "-" * 36):
        assert api.get(f"/api/v1/{kind}/{name}/").status_code == 404
