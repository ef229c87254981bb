"""Another lab's ids in every endpoint and on every page: not found, and nothing changed.

The endpoints are taken from the schema and the URL configuration, so that a new one is swept too.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator

from ml.imaging.dicom.uids import instance_id, uid_of
from portal.annotations.models import LabelMerge, RoiImport
from portal.archive.serializers import tile_url
from portal.archive.services import case_create, case_delete, share_offer, upload_begin
from portal.hooks.services import webhook_create
from portal.keeping.models import Erasure
from portal.labs.models import Lab, Membership, Role, User
from portal.labs.services import invitation_create, program_create
from portal.reading.services import WantedReadings, study_create, work_assign
from tests import world

pytestmark = pytest.mark.django_db

# Rows that belong to a person or to nobody: swept by tests of their own.
NOT_OF_A_LAB = {"tokens", "encoders"}
FRAME_PTS = "0"
PARTS = {
    "{region}": "full",
    "{size}": "max",
    "{rotation}": "0",
    "{quality}": "default",
    "{extension}": "jpg",
    "{digest}": "0" * 32,
    "{frame}": "1",
    "{frames}": "1",
}


@dataclass
class Scene:
    """A world, what stands in a path by its first word, and a manager of another lab."""

    world: world.World
    ids: dict[str, str]
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
        made = world.build(lab, manager, folder)
        yield Scene(made, _ids(made, lab, manager), stranger)


@pytest.fixture
def swept(scene: Scene, db: None) -> world.World:
    return scene.world


@pytest.fixture
def ids(scene: Scene, db: None) -> dict[str, str]:
    return scene.ids


@pytest.fixture
def stranger(scene: Scene, db: None) -> User:
    return scene.stranger


def _ids(swept: world.World, lab: Lab, manager: User) -> dict[str, str]:
    """A deleted case lies in the bin. One case is shared, with a lab that is not the stranger's."""
    case = case_create(lab=lab, user=manager, accession="W-9")
    imported = RoiImport.objects.create(lab=lab, canvas=swept.canvas)
    deleted = case_delete(case=case, user=manager)
    Lab.objects.create(name="Third", slug="third")
    until = timezone.localdate() + timedelta(days=30)
    share = share_offer(case=swept.case, with_lab="third", until=until, user=manager)
    invitation, _ = invitation_create(lab, email="new@ours.example", role=Role.VIEWER, by=manager)
    study = study_create(lab=lab, user=manager, name="Grades")
    wanted = WantedReadings(canvases=[swept.canvas], people=[manager])
    (work,) = work_assign(lab=lab, user=manager, wanted=wanted)
    url = "https://lis.north.example/"
    hook, _ = webhook_create(lab=lab, user=manager, name="LIS", url=url)
    rows = {
        "assignments": work,
        "bin": deleted,
        "dicomweb": swept.case,
        "erasures": Erasure.objects.create(lab=lab, requested_by=manager),
        "invitations": invitation,
        "members": Membership.objects.get(lab=lab, user=manager),
        "label-merges": LabelMerge.objects.create(
            lab=lab, source=swept.label, target=swept.label, author=manager
        ),
        "iiif": swept.canvas,
        "intake-rules": lab,
        "programs": program_create(lab, name="LIS", role=Role.VIEWER, by=manager),
        "quarantine": world.quarantined(swept, manager),
        "review-rules": lab,
        "roi-imports": imported,
        "shares": share,
        "studies": study,
        "uploads": upload_begin(case=swept.case, filename="a.svs", size_bytes=9, user=manager),
        "webhooks": hook,
    }
    return swept.ids() | {word: str(row.pk) for word, row in rows.items()}


def _operations() -> Iterator[tuple[str, str]]:
    document = SchemaGenerator().get_schema(request=None, public=True)
    for path, methods in document["paths"].items():
        if "{" in path and path.split("/")[3] not in NOT_OF_A_LAB:
            yield from ((method, path) for method in methods)


def _filled(path: str, ids: dict[str, str]) -> str:
    found = re.sub(r"\{(id|roi_id|other_id|import_id|delivery_id)\}", ids[path.split("/")[3]], path)
    found = found.replace("{pts}", FRAME_PTS).replace("{rank}", "1").replace("{name}", "time")
    for word, row in (("{case_id}", "cases"), ("{canvas_id}", "canvases")):
        found = found.replace(word, uid_of(uuid.UUID(ids[row])))
    first_level = instance_id(uuid.UUID(ids["canvases"]), 1)
    found = found.replace("{instance_id}", uid_of(first_level))
    for word, part in PARTS.items():
        found = found.replace(word, part)
    return re.sub(r"\{[zxy]\}", "0", found)


@pytest.mark.parametrize(("method", "path"), list(_operations()))
def test_the_api_knows_nothing_of_another_labs_objects(
    ids: dict[str, str], stranger: User, api_as: Any, method: str, path: str
) -> None:
    answer = getattr(api_as(stranger), method)(
        _filled(path, ids), {}, format="json", headers={"If-Match": '"1"'}
    )
    assert answer.status_code == 404, answer.content[:300]
    assert answer["Content-Type"] == "application/problem+json"


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
def test_nothing_is_uploaded_into_another_labs_case(
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
def test_lists_show_nothing_of_another_lab(
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


def _pages(patterns: Any = None, prefix: str = "") -> Iterator[str]:
    for entry in patterns if patterns is not None else get_resolver().url_patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from _pages(entry.url_patterns, route)
        elif isinstance(entry, URLPattern) and "<uuid:" in route and not route.startswith("api/"):
            yield route


def _page_filled(route: str, ids: dict[str, str]) -> str:
    word = route.split("/", 1)[0]
    found = re.sub(r"<uuid:\w+>", ids.get(word, str(uuid.uuid4())), route)
    return "/" + re.sub(r"<int:\w+>", "0", found)


@pytest.mark.parametrize("route", sorted(set(_pages())))
def test_pages_know_nothing_of_another_labs_objects(
    swept: world.World, stranger: User, client: Client, route: str
) -> None:
    client.force_login(stranger)
    url = _page_filled(route, swept.ids())
    assert client.get(url).status_code in {404, 405}, url
    assert client.post(url).status_code in {404, 405}, url


@pytest.mark.parametrize("route", sorted(set(_pages())))
def test_pages_send_the_anonymous_to_the_sign_in(
    swept: world.World, client: Client, route: str
) -> None:
    url = _page_filled(route, swept.ids())
    answer = client.get(url)
    if answer.status_code == 405:
        answer = client.post(url)
    assert answer.status_code in {302, 401, 403}, url
    if answer.status_code == 302:
        assert "/accounts/login/" in answer["Location"]


def test_a_tile_address_opens_nothing_to_a_stranger(
    swept: world.World, stranger: User, client: Client
) -> None:
    address = tile_url(swept.canvas).format(z=0, x=0, y=0)
    assert client.get(address).status_code == 403
    client.force_login(stranger)
    assert client.get(address).status_code == 404
