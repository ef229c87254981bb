"""One world and one cast for the whole matrix; each request is rolled back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from ml.imaging.dicom.uids import instance_id
from portal.annotations.models import Label, LabelMerge, Roi, RoiImport
from portal.annotations.services import label_create, label_merge, roi_create, roi_delete
from portal.archive import storage
from portal.archive.models import BinEntry, Upload, today
from portal.archive.services import case_create, case_delete, share_offer, upload_begin
from portal.core.observe.metrics import REQUEST_SECONDS
from portal.hooks.models import Webhook, WebhookDelivery
from portal.hooks.services import webhook_create, webhook_ping
from portal.keeping.models import Erasure
from portal.labs.models import BrowserSession, Lab, Membership, Role, TokenScope, User
from portal.labs.services import invitation_create, program_create, token_create
from portal.mosaics.build_cache import build_cache_preview
from portal.reading.models import Assignment, Study
from portal.reading.services import WantedReadings, readings_assign, study_create, work_assign
from tests import world
from tests.portal.access.actors import Cast, cast_of


@dataclass
class Scene:
    """What the requests are sent to, and by whom."""

    world: world.World
    cast: Cast
    ids: dict[str, str]
    folder: Path


@pytest.fixture(scope="module")
def scene(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """Built once: it decodes a slide and a video."""
    folder = tmp_path_factory.mktemp("access")
    with django_db_blocker.unblock(), world.rolled_back(folder):
        yield _built(folder)


@pytest.fixture(autouse=True)
def _apart(db: None) -> Iterator[None]:
    """Counters of one request must not refuse the next, nor make ``/metrics`` long."""
    cache.clear()
    REQUEST_SECONDS.clear()
    yield
    cache.clear()


def _built(folder: Path) -> Scene:
    lab = Lab.objects.create(name="North", slug="north")
    other = Lab.objects.create(name="South", slug="south")
    cast = cast_of(lab, other)
    made = world.build(lab, cast.users["manager"], folder)
    _pictures(made)
    viewer = Membership.objects.get(user=cast.users["viewer"])
    own, _ = token_create(
        cast.users["manager"], name="own", scope=TokenScope.READ, expires_in=timedelta(days=1)
    )
    invitation, _ = invitation_create(
        lab, email="invited@access.example", role=Role.VIEWER, by=cast.users["manager"]
    )
    program = program_create(lab, name="LIS", role=Role.VIEWER, by=cast.users["manager"])
    entry, deleted = _deleted(made, cast)
    Lab.objects.create(name="East", slug="east")
    share = share_offer(
        case=made.case,
        with_lab=Lab.objects.create(name="West", slug="west").slug,
        until=today() + timedelta(days=9),
        user=cast.users["manager"],
    )
    Client().force_login(cast.users["manager"])  # in another browser
    elsewhere = BrowserSession.objects.filter(user=cast.users["manager"]).latest("created_at")
    study, work = _handed_out(made, cast)
    hook, delivery = _hook(lab, cast)
    ids = made.ids() | {
        "webhooks": str(hook.pk),
        "deliveries": str(delivery.pk),
        "studies": str(study.pk),
        "assignments": str(work.pk),
        "entries": str(entry.pk),
        "deleted_rois": str(deleted.pk),
        "programs": str(program.pk),
        "sessions": str(elsewhere.pk),
        "shares": str(share.pk),
        "erasures": str(Erasure.objects.create(lab=lab, certificate={"format": 1}).pk),
        "passkeys": "918273645546",  # there is none
        "instances": str(instance_id(made.canvas.pk, 1)),
        "invitations": str(invitation.pk),
        "labs": str(lab.pk),
        "memberships": str(viewer.pk),
        "tokens": str(own.pk),
        "label-merges": str(_merge(made, cast).pk),
        "spare_labels": str(_label(made, cast, "Spare").pk),
        "roi-imports": str(RoiImport.objects.create(lab=lab, canvas=made.canvas).pk),
        "quarantine": str(world.quarantined(made, cast.users["manager"]).pk),
        "uploads": str(_transfer(made, cast).pk),
        "video_canvases": str(made.video.canvas_id),
    }
    return Scene(world=made, cast=cast, ids=ids, folder=folder)


def _hook(lab: Lab, cast: Cast) -> tuple[Webhook, WebhookDelivery]:
    """With one message whose delivery failed."""
    url = "https://lis.access.example/"
    hook, _ = webhook_create(lab=lab, user=cast.users["manager"], name="LIS", url=url)
    delivery = webhook_ping(hook=hook, user=cast.users["manager"])
    WebhookDelivery.objects.filter(pk=delivery.pk).update(state="failed")
    return hook, delivery


def _transfer(made: world.World, cast: Cast) -> Upload:
    """A file of which nothing has arrived."""
    return upload_begin(case=made.case, filename="a.svs", size_bytes=9, user=cast.users["manager"])


def _deleted(made: world.World, cast: Cast) -> tuple[BinEntry, Roi]:
    """A case in the bin, and a region that was deleted by itself."""
    manager = cast.users["manager"]
    case = case_create(lab=made.case.lab, user=manager, accession="W-9")
    ring = [[1, 1], [9, 1], [9, 9], [1, 1]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    roi = roi_create(canvas=made.canvas, user=manager, geometry=geometry).roi
    deleted = roi_delete(roi=roi, user=manager, expected_version=1)
    return case_delete(case=case, user=manager), deleted


def _merge(made: world.World, cast: Cast) -> LabelMerge:
    """Of a label that nothing has, into the one of the world's region."""
    source = _label(made, cast, "Sweep")
    return label_merge(source=source, target=made.label, user=cast.users["manager"])


def _handed_out(made: world.World, cast: Cast) -> tuple[Study, Assignment]:
    """A study of the manager's, read by two without blinding, and an image for the manager."""
    manager, lab = cast.users["manager"], made.case.lab
    study = study_create(lab=lab, user=manager, name="Grades", blind_until="open")
    readers = [cast.users["annotator"], cast.users["deactivated"]]
    User.objects.filter(pk=readers[1].pk).update(is_active=True)
    readings_assign(
        study=study,
        user=manager,
        wanted=WantedReadings(canvases=[made.video.canvas], people=readers),
    )
    User.objects.filter(pk=readers[1].pk).update(is_active=False)
    own = WantedReadings(canvases=[made.canvas], people=[manager])
    return study, work_assign(lab=lab, user=manager, wanted=own)[0]


def _label(made: world.World, cast: Cast, name: str) -> Label:
    return label_create(lab=made.case.lab, user=cast.users["manager"], name=name)


def _pictures(made: world.World) -> None:
    """Of a follow-up and of a mosaic under way, so that their addresses have something to give."""
    preview = build_cache_preview(made.mosaic)
    picture = storage.derived_folder(made.followup.pk) / "1.jpg"
    for path in (preview, picture):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\xff\xd8\xff\xd9")
    made.followup.result = [
        {"rank": 1, "index": 0, "pts": 0, "outline": [[0, 0], [9, 0], [9, 9]]}
        | {"time_s": 0.0, "inliers": 40, "matches": 60, "picture": picture.name}
    ]
    made.followup.save()
