"""Who reads and writes the archive over REST."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.archive.models import Case, Slide, Video
from portal.labs.models import Lab, User
from tests.portal.archive.support import png

pytestmark = pytest.mark.django_db

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
    assert api.patch(case, {"organ": "x"}, headers={"If-Match": "*"}).status_code == 404
    assert api.put(case, {"accession": "x"}, headers={"If-Match": "*"}).status_code == 404
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
def test_lists_do_not_contain_another_lab(api: APIClient, foreign_slide: Slide, path: str) -> None:
    assert len(api.get(path).json()["results"]) == 0


@pytest.mark.parametrize("path", [*READS, *LISTS])
def test_anonymous_readers_are_refused(still: Slide, path: str) -> None:
    answer = APIClient().get(filled(path, still))
    assert answer.status_code == 401
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_viewer_reads_and_does_not_write(api_as: Any, viewer: User, still: Slide) -> None:
    client = api_as(viewer)
    for path in (*READS[:5], *LISTS):
        assert client.get(filled(path, still)).status_code == 200
    assert client.post("/api/v1/cases/", {"accession": "x"}).status_code == 403
    assert (
        client.patch(
            f"/api/v1/cases/{still.case_id}/", {"organ": "x"}, headers={"If-Match": "*"}
        ).status_code
        == 403
    )
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
