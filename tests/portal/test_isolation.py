"""Another lab's ids in a body, in a list and in a tile's address: not found, and nothing changed.

``access/test_matrix.py`` has a stranger ask every address with the lab's ids.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from portal.archive.serializers.canvases import tile_url
from portal.labs.models import Lab, Membership, Role, User
from tests import world

pytestmark = pytest.mark.django_db


@dataclass
class Scene:
    """A world and a manager of another lab."""

    world: world.World
    stranger: User


@pytest.fixture(scope="module")
def scene(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """Built once: it decodes a slide and a video."""
    folder = tmp_path_factory.mktemp("isolation")
    with django_db_blocker.unblock(), world.rolled_back(folder):
        lab = Lab.objects.create(name="Ours", slug="ours")
        manager = User.objects.create_user("manager@ours.example", "correct horse battery")
        Membership.objects.create(user=manager, lab=lab, role=Role.MANAGER)
        stranger = User.objects.create_user("manager@theirs.example", "correct horse battery")
        theirs = Lab.objects.create(name="Theirs", slug="theirs")
        Membership.objects.create(user=stranger, lab=theirs, role=Role.MANAGER)
        yield Scene(world.build(lab, manager, folder), stranger)


@pytest.fixture
def swept(scene: Scene, db: None) -> world.World:
    return scene.world


@pytest.fixture
def stranger(scene: Scene, db: None) -> User:
    return scene.stranger


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/search/", lambda w: {"roi": str(w.roi.pk)}),
        ("/api/v1/mosaics/", lambda w: {"video": str(w.video.pk)}),
        (
            "/api/v1/followups/",
            lambda w: {"roi": str(w.roi.pk), "target": str(w.video.canvas_id)},
        ),
        (
            "/api/v1/rois/",
            lambda w: {
                "canvas": str(w.canvas.pk),
                "geometry": {
                    "type": "Polygon",
                    "coordinates": [[[0, 0], [9, 0], [9, 9], [0, 0]]],
                },
            },
        ),
    ],
)
def test_another_labs_ids_in_a_body_are_not_found(
    swept: world.World, stranger: User, api_as: Any, path: str, body: Any
) -> None:
    answer = api_as(stranger).post(path, body(swept), format="json")
    assert answer.status_code in {400, 404}, answer.content[:300]
    unknown = body(swept)
    key = next(iter(unknown))
    unknown[key] = str(uuid.uuid4())
    same = api_as(stranger).post(path, unknown, format="json")
    assert same.status_code == answer.status_code  # an id of another lab looks like no id at all
    assert same.json()["code"] == answer.json()["code"]


@pytest.mark.parametrize("path", ["/api/v1/slides/", "/api/v1/videos/"])
def test_uploading_into_another_labs_case_is_refused(
    swept: world.World, stranger: User, api_as: Any, path: str, tmp_path: Path
) -> None:
    source = world.slide_file(tmp_path) if "slides" in path else world.video_file(tmp_path)
    with source.open("rb") as file:
        answer = api_as(stranger).post(
            path, {"case": str(swept.case.pk), "file": file}, format="multipart"
        )
    assert answer.status_code in {400, 404}
    assert swept.case.slides.count() == 1 and swept.case.videos.count() == 1


@pytest.mark.parametrize(
    "path",
    ["cases", "slides", "videos", "rois", "jobs", "mosaics", "followups", "labels", "reviews"],
)
def test_lists_do_not_contain_another_lab(
    swept: world.World, stranger: User, api_as: Any, path: str
) -> None:
    answer = api_as(stranger).get(
        f"/api/v1/{path}/", {"state": "draft"} if path == "reviews" else {}
    )
    rows = answer.json()
    if isinstance(rows, dict):
        rows = rows["results"]
    named = {"reviews": "rois"}.get(path, path)
    assert swept.ids()[named] not in str(rows)


def test_a_tile_address_is_not_accessible_to_another_lab(
    swept: world.World, stranger: User, client: Client
) -> None:
    address = tile_url(swept.canvas).format(z=0, x=0, y=0)
    assert client.get(address).status_code == 403
    client.force_login(stranger)
    assert client.get(address).status_code == 404
