"""A case that another lab shares can be read by its members, and nothing more, until it ends.

The stranger of the matrix, a manager of the other lab, becomes its reader here. Every URL of the
table is requested: those not listed as readings respond as they did before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import transaction
from django.http.response import HttpResponseBase

from portal.annotations.services.rois import roi_create
from portal.archive.models import Case, CaseShare
from portal.archive.models.shares import today
from portal.archive.services.cases import case_create
from portal.archive.services.sharing import share_accept, share_end, share_offer
from portal.archive.tiles.server import TILES
from portal.audit.models import AuditEntry, Outcome
from portal.core.errors import ForbiddenError
from portal.core.models import Event
from portal.labs.models import ApiToken
from portal.operations.audit_middleware import RECENT
from tests.portal.access.actors import answer_of, send
from tests.portal.access.conftest import Scene
from tests.portal.access.endpoints import audit_rules, by_area, endpoints, filled
from tests.portal.access.rules import RULES
from tests.portal.access.rules.dicom import DICOM_READS
from tests.portal.access.rules.kinds import Rule

pytestmark = pytest.mark.slow

ENDPOINTS = dict(endpoints())
AUDITED = audit_rules()
CELLS = [(name, method) for name, rules in sorted(RULES.items()) for method in rules]
AREAS = by_area(name for name, rules in RULES.items() if "GET" in rules)
WRITES = [(name, method) for name, method in CELLS if method != "GET"]
READS = DICOM_READS | {
    "annotations:case_measurements",
    "annotations:measurements",
    "annotations:roi_open",
    "archive:compare",
    "archive:compare_choices",
    "api:canvas-annotations",
    "api:canvas-detail",
    "api:canvas-frame",
    "api:canvas-filmstrip",
    "api:canvas-image",
    "api:canvas-image-base",
    "api:canvas-image-info",
    "api:canvas-live",
    "api:canvas-manifest",
    "api:canvas-roi-file",
    "api:canvas-thumbnail",
    "api:canvas-tile",
    "api:case-detail",
    "api:case-fhir",
    "api:case-manifest",
    "api:case-shares",  # those with one's own lab
    "api:label-detail",  # of a region there
    "api:mosaic-detail",
    "api:mosaic-estimate",
    "api:mosaic-frames",
    "api:mosaic-frames-at-point",
    "api:mosaic-image",
    "api:mosaic-layer",
    "api:mosaic-manifest",
    "api:mosaic-outlines",
    "api:mosaic-preview",
    "api:mosaic-projected-rois",
    "api:mosaic-pyramid",
    "api:roi-detail",
    "api:roi-revisions",
    "api:slide-detail",
    "api:video-detail",
    "api:video-event-detail",
    "api:video-event-list",
    "api:video-event-names",
    "api:video-event-revisions",
    "api:video-frames",
    "api:video-media",
    "archive:case_detail",
    "archive:item_card",
    "archive:slide_open",
    "archive:tile",
    "archive:video_open",
    "archive:viewer",
    "archive:tray",
    "mosaics:case_mosaics",
    "mosaics:mosaic_detail",
    "mosaics:video_mosaics",
    "search:similar",
    "search:thumbnail",
}
"""Addresses of a shared case that members of the other lab may GET; no follow-ups."""
SEARCHES = {"api:roi-similar", "api:search"}
"""Answered by their own lab's regions; here the region has no vector, and they submit no job."""
SECRET = ("W-77", "pseudonym-7", "W-9", "Second opinion wanted", "Slides are with")
"""Never shared: another case of the patient, the pseudonym, items in the trash, notes."""


@contextmanager
def _shared(scene: Scene) -> Iterator[CaseShare]:
    """The case is shared with the stranger's lab; all of it is rolled back."""
    manager, reader = scene.cast.users["manager"], scene.cast.users["stranger"]
    cache.clear()
    TILES.clear()
    RECENT.clear()
    with transaction.atomic():
        case = scene.world.case
        Case.objects.filter(pk=case.pk).update(
            patient_key="pseudonym-7",
            clinical_question="Second opinion wanted",
            notes="Slides are with Dr. Berg.",
        )
        case_create(lab=case.lab, user=manager, accession="W-77", patient_key="pseudonym-7")
        until = today() + timedelta(days=9)
        share = share_offer(case=case, with_lab="south", until=until, user=manager)
        yield share_accept(share=share, user=reader)
        transaction.set_rollback(True)
    TILES.clear()


@pytest.mark.parametrize("area", AREAS)
def test_another_lab_reads_only_the_shared_case(scene: Scene, area: str) -> None:
    wrong = {}
    with _shared(scene):
        for name in AREAS[area]:
            rule = RULES[name]["GET"]
            response = _sent(scene, "stranger", name, "GET", rule)
            actual, usual = answer_of(response), rule.answers["stranger"]
            if name in READS:
                allowed = {rule.answers["manager"]}
            elif name in SEARCHES:
                allowed = {409}
            else:  # 403: a page that takes a role in the lab of the case
                allowed = {usual, 403} if usual == 404 else {usual}
            reported = [word for word in SECRET if word in _text(response)]
            if actual not in allowed or reported:
                wrong[name] = (actual, allowed, reported)
    assert wrong == {}, "answered, allowed, told"


def test_every_reading_ends_with_the_share(scene: Scene) -> None:
    answers, usual = {}, {}
    with _shared(scene) as share:
        share_end(share=share, user=scene.cast.users["stranger"])
        for name in READS:
            rule = RULES[name]["GET"]
            usual[name] = rule.answers["stranger"]
            answers[name] = answer_of(_sent(scene, "stranger", name, "GET", rule))
    assert answers == usual


@pytest.mark.parametrize(
    "actor", ["stranger", pytest.param("stranger_token", marks=pytest.mark.endurance)]
)
def test_another_lab_cannot_write_to_a_shared_case(scene: Scene, actor: str) -> None:
    """Refused as an outsider is, or because the lab is not theirs; the lab hears of no write."""
    wrong = {}
    with _shared(scene):
        written = Event.objects.filter(lab_id=scene.ids["labs"])
        before = written.count()
        for name, method in WRITES:
            rule = RULES[name][method]
            actual, usual = answer_of(_sent(scene, actor, name, method, rule)), rule.answers[actor]
            allowed = {409} if name in SEARCHES else {403, 404} if usual == 404 else {usual}
            if actual not in allowed or written.count() != before:
                wrong[name, method] = (actual, allowed, written.count() - before)
    assert wrong == {}, "answered, allowed, events"


def test_reads_are_in_the_logs_of_both_labs(scene: Scene) -> None:
    """With the name of the other lab, so that each can say who of which lab it was."""
    audited = [name for name in READS if "GET" in AUDITED.get(name, {})]
    assert len(audited) > 20
    for name in audited:
        audit_rule = AUDITED[name]["GET"]
        with _shared(scene) as share:
            newest = AuditEntry.objects.latest("id").pk
            rule = RULES[name]["GET"]
            answer = _sent(scene, "stranger_token", name, "GET", rule)
            if answer.status_code >= 400 or name == "archive:tile" or answer.status_code == 302:
                continue
            noted = AuditEntry.objects.filter(pk__gt=newest, action=audit_rule.action)
            assert {entry.lab_id for entry in noted} == {share.lab_id, share.with_lab_id}, name
            for entry in noted:
                assert entry.actor_id == scene.cast.users["stranger"].pk
                assert (entry.details["owner"], entry.details["with"]) == ("north", "south")


def test_refused_writes_are_in_the_logs_of_both_labs(scene: Scene) -> None:
    with _shared(scene) as share:
        newest = AuditEntry.objects.latest("id").pk
        rule = RULES["api:case-detail"]["PATCH"]
        assert _sent(scene, "stranger", "api:case-detail", "PATCH", rule).status_code == 403
        noted = AuditEntry.objects.filter(pk__gt=newest)
        assert {entry.lab_id for entry in noted} == {share.lab_id, share.with_lab_id}
        assert {entry.outcome for entry in noted} == {Outcome.REFUSED}


def test_lists_and_facets_leave_it_out_unless_its_case_is_named(scene: Scene) -> None:
    reader = scene.cast.client("stranger")
    case = scene.ids["cases"]
    with _shared(scene):
        for kind in ("cases", "slides", "videos", "mosaics", "rois", "labels"):
            rows = reader.get(f"/api/v1/{kind}/").json()
            assert not {row["id"] for row in rows["results"]} & set(scene.ids.values()), kind
        for kind in ("slides", "videos", "mosaics"):
            assert len(reader.get(f"/api/v1/{kind}/?case={case}").json()["results"]) == 1
        rois = reader.get(f"/api/v1/rois/?canvas={scene.ids['canvases']}").json()["results"]
        assert [row["id"] for row in rois] == [scene.ids["rois"]]
        labels = reader.get(f"/api/v1/labels/?canvas={scene.ids['canvases']}").json()["results"]
        assert [row["id"] for row in labels] == [scene.ids["labels"]]
        page = reader.get("/cases/").content.decode()
        assert "W-1" not in page and "Shared with us" in page


def test_the_viewer_of_a_shared_case_links_to_a_search_in_the_readers_lab(scene: Scene) -> None:
    path = f"/canvases/{scene.ids['canvases']}/"
    with _shared(scene):
        assert "Similar cases of ours" in scene.cast.client("stranger").get(path).content.decode()
        assert "of ours" not in scene.cast.client("manager").get(path).content.decode()


def test_regions_that_are_deleted_are_not_shared(scene: Scene) -> None:
    reader = scene.cast.client("stranger")
    with _shared(scene):
        assert reader.get(f"/api/v1/rois/{scene.ids['deleted_rois']}/").status_code == 404
        requested = f"/api/v1/rois/?canvas={scene.ids['canvases']}&deleted=true"
        assert len(reader.get(requested).json()["results"]) == 0


def test_items_in_the_trash_are_not_shared(scene: Scene) -> None:
    reader = scene.cast.client("stranger")
    with _shared(scene):
        path = f"/api/v1/slides/{scene.ids['slides']}/"
        assert reader.get(path).status_code == 200
        deleted = scene.cast.client("manager").delete(path)
        assert (deleted.status_code, reader.get(path).status_code) == (204, 404)


def test_a_token_for_one_lab_sees_what_is_shared_with_that_lab(scene: Scene) -> None:
    with _shared(scene) as share:
        reader = scene.cast.users["stranger"]
        path = f"/api/v1/cases/{scene.ids['cases']}/"
        for lab_id, expected in ((share.with_lab_id, 200), (share.lab_id, 404)):
            ApiToken.objects.filter(user=reader).update(lab=lab_id)
            answer = scene.cast.client("stranger_token").get(path)
            assert answer.status_code == expected


def test_an_annotators_regions_stay_out_of_a_shared_canvas(scene: Scene) -> None:
    """Even by the service itself: the role in the owning lab decides."""
    with _shared(scene), pytest.raises(ForbiddenError):
        ring = [[1, 1], [9, 1], [9, 9], [1, 1]]
        roi_create(
            canvas=scene.world.canvas,
            user=scene.cast.users["stranger"],
            geometry={"type": "Polygon", "coordinates": [ring]},
        )


def _sent(scene: Scene, actor: str, name: str, method: str, rule: Rule) -> HttpResponseBase:
    cache.clear()
    TILES.clear()
    path = rule.path(scene, actor) if rule.path else filled(name, ENDPOINTS[name], scene.ids)
    with transaction.atomic():
        client = scene.cast.client(actor)
        answer = send(client, method, path, body=rule.body(scene), headers=rule.headers)
        answer.read_here = _text(answer)  # type: ignore[attr-defined]
        if method != "GET" and answer.status_code < 400:
            transaction.set_rollback(True)
    return answer


def _text(answer: HttpResponseBase) -> str:
    if hasattr(answer, "read_here"):
        return str(answer.read_here)
    data = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return data.decode("utf-8", "replace")
