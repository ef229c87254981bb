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
from portal.annotations.models import Label, LabelMerge, Roi, RoiImport, VideoEvent
from portal.annotations.services.labels import label_create
from portal.annotations.services.merges import label_merge
from portal.annotations.services.rois import roi_create, roi_delete
from portal.annotations.services.video_events import video_event_create, video_event_delete
from portal.archive.models import Canvas, RedactionTemplate, TrashEntry, Upload, VocabularyTerm
from portal.archive.models.shares import today
from portal.archive.services.cases import case_create, case_delete
from portal.archive.services.sharing import share_offer
from portal.archive.services.transfers.arriving import upload_begin
from portal.archive.storage import files as storage
from portal.core.observe.metrics import REQUEST_SECONDS
from portal.erasure.models import Erasure
from portal.inbox.models import Notification, NotificationKind
from portal.labs.models import BrowserSession, Lab, Membership, Role, TokenScope, User
from portal.labs.services.invitations import invitation_create
from portal.labs.services.service_accounts import service_account_create
from portal.labs.services.tokens import token_create
from portal.mosaics.build_cache import build_cache_preview
from portal.reader_studies.models import Assignment, Study
from portal.reader_studies.services.assignments import ReadingPlan, work_assign
from portal.reader_studies.services.studies import readings_assign, study_create
from portal.webhooks.models import Webhook, WebhookDelivery
from portal.webhooks.services import webhook_create, webhook_ping
from tests import world
from tests.portal.access.actors import Cast, cast_of


@dataclass
class Scene:
    """Data and users of the requests."""

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
        yield scene_build(folder)


@pytest.fixture(autouse=True)
def _apart(db: None) -> Iterator[None]:
    """Counters of one request must not refuse the next, nor make ``/metrics`` long."""
    cache.clear()
    REQUEST_SECONDS.clear()
    yield
    cache.clear()


def scene_build(folder: Path) -> Scene:
    """Create the world, the cast and the objects that addresses name."""
    lab = Lab.objects.create(name="North", slug="north")
    other = Lab.objects.create(name="South", slug="south")
    cast = cast_of(lab, other)
    made = world.build(lab, cast.users["manager"], folder)
    _pictures(made)
    viewer = Membership.objects.get(user=cast.users["viewer"])
    token, _ = token_create(
        cast.users["manager"], name="own", scope=TokenScope.READ, expires_in=timedelta(days=1)
    )
    invitation, _ = invitation_create(
        lab, email="invited@access.example", role=Role.VIEWER, by=cast.users["manager"]
    )
    service_account = service_account_create(
        lab, name="LIS", role=Role.VIEWER, by=cast.users["manager"]
    )
    entry, deleted = _deleted(made, cast)
    Lab.objects.create(name="East", slug="east")
    share = share_offer(
        case=made.case,
        with_lab=Lab.objects.create(name="West", slug="west").slug,
        until=today() + timedelta(days=9),
        user=cast.users["manager"],
    )
    Client().force_login(cast.users["manager"])  # in another browser
    session = BrowserSession.objects.filter(user=cast.users["manager"]).latest("created_at")
    study, work = _assigned_reading(made, cast)
    hook, delivery = _hook(lab, cast)
    ids = made.ids() | {
        "webhooks": str(hook.pk),
        "deliveries": str(delivery.pk),
        "notifications": str(_notification(made, cast).pk),
        "studies": str(study.pk),
        "assignments": str(work.pk),
        "entries": str(entry.pk),
        "deleted_rois": str(deleted.pk),
        "service_accounts": str(service_account.pk),
        "sessions": str(session.pk),
        "shares": str(share.pk),
        "erasures": str(Erasure.objects.create(lab=lab, certificate={"format": 1}).pk),
        "passkeys": "918273645546",  # there is none
        "instances": str(instance_id(made.canvas.pk, 1)),
        "invitations": str(invitation.pk),
        "labs": str(lab.pk),
        "memberships": str(viewer.pk),
        "tokens": str(token.pk),
        "label-merges": str(_merge(made, cast).pk),
        "spare_labels": str(_label(made, cast, "Spare").pk),
        "roi-imports": str(RoiImport.objects.create(lab=lab, canvas=made.canvas).pk),
        "vocabulary": str(
            VocabularyTerm.objects.create(lab=lab, field="organ", term="Rectum", code="C20.9").pk
        ),
        "quarantine": str(world.quarantined(made, cast.users["manager"]).pk),
        "redaction_templates": str(_template(made).pk),
        "originals": str(world.withheld(made, cast.users["manager"]).pk),
        "uploads": str(_transfer(made, cast).pk),
        "video_canvases": str(made.video.canvas_id),
        "deleted_video_events": str(_deleted_video_event(made, cast).pk),
        "video_events": str(_video_event(made, cast).pk),
    }
    return Scene(world=made, cast=cast, ids=ids, folder=folder)


def _template(made: world.World) -> RedactionTemplate:
    """For the scope of the file in quarantine."""
    return RedactionTemplate.objects.create(
        lab=made.case.lab, **world.HELD_SCOPE, boxes=[[0.02, 0.02, 0.3, 0.06]]
    )


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


def _deleted(made: world.World, cast: Cast) -> tuple[TrashEntry, Roi]:
    """A case in the trash, and a region that was deleted by itself."""
    manager = cast.users["manager"]
    case = case_create(lab=made.case.lab, user=manager, accession="W-9")
    ring = [[1, 1], [9, 1], [9, 9], [1, 1]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    roi = roi_create(canvas=made.canvas, user=manager, geometry=geometry).roi
    deleted = roi_delete(roi=roi, user=manager, expected_version=1)
    return case_delete(case=case, user=manager), deleted


def _merge(made: world.World, cast: Cast) -> LabelMerge:
    """Merge an unused label into the label of the world's region."""
    source = _label(made, cast, "Sweep")
    return label_merge(source=source, target=made.label, user=cast.users["manager"])


def _assigned_reading(made: world.World, cast: Cast) -> tuple[Study, Assignment]:
    """A study of the manager's, read by two without blinding, and an image for the manager."""
    manager, lab = cast.users["manager"], made.case.lab
    study = study_create(lab=lab, user=manager, name="Grades", blind_until="open")
    readers = [cast.users["annotator"], cast.users["deactivated"]]
    User.objects.filter(pk=readers[1].pk).update(is_active=True)
    readings_assign(
        study=study,
        user=manager,
        plan=ReadingPlan(canvases=[_video_canvas(made)], people=readers),
    )
    User.objects.filter(pk=readers[1].pk).update(is_active=False)
    plan = ReadingPlan(canvases=[made.canvas], people=[manager])
    return study, work_assign(lab=lab, user=manager, plan=plan)[0]


def _notification(made: world.World, cast: Cast) -> Notification:
    """The manager's own, of a comment on the region."""
    return Notification.objects.create(
        lab=made.case.lab,
        recipient=cast.users["manager"],
        kind=NotificationKind.COMMENTED,
        actor=cast.users["annotator"],
        roi=made.roi,
    )


def _video_event(made: world.World, cast: Cast) -> VideoEvent:
    return video_event_create(
        canvas=_video_canvas(made),
        user=cast.users["manager"],
        name="Caecum",
        first_index=0,
        last_index=3,
    ).event


def _deleted_video_event(made: world.World, cast: Cast) -> VideoEvent:
    manager = cast.users["manager"]
    event = video_event_create(
        canvas=_video_canvas(made), user=manager, name="Washing", first_index=1
    ).event
    return video_event_delete(event=event, user=manager, expected_version=1)


def _video_canvas(made: world.World) -> Canvas:
    assert made.video.canvas is not None
    return made.video.canvas


def _label(made: world.World, cast: Cast, name: str) -> Label:
    return label_create(lab=made.case.lab, user=cast.users["manager"], name=name)


def _pictures(made: world.World) -> None:
    """Write pictures for the follow-up and for the mosaic that is being built."""
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
