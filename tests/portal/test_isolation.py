"""Ids of another lab in a request body are not found.

``access/test_matrix.py`` has a stranger ask every address with the lab's ids.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

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
