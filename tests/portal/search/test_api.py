"""REST: answers, refusals, other labs, query counts."""

from __future__ import annotations

import uuid

import pytest

from ml.errors import EmptyRegionError, ShapeError
from portal.annotations.services.rois import roi_delete
from portal.archive.models import Modality
from portal.embeddings.models import Encoder
from portal.search.selectors.similar_cases import SimilarQuery
from portal.search.services import similar_cases

URL = "/api/v1/search/"


@pytest.fixture
def pair(world):
    query = world.embedded(world.canvas(world.case("A1", "p1")), 100, 100)
    hit = world.embedded(world.canvas(world.case("A2", "p2", organ="Colon")), 130, 100)
    return query, hit


def test_a_search_returns_regions_and_their_places(api, pair):
    query, hit = pair
    answer = api.post(URL, {"roi": str(query.pk), "k": 5})
    assert answer.status_code == 200
    body = answer.json()
    (result,) = body["results"]
    assert result["roi"]["id"] == str(hit.pk)
    assert (result["rank"], result["distance"]) == (1, 30.0)
    assert result["case"]["accession"] == "A2"
    assert result["viewer_url"].endswith(f"/canvases/{hit.canvas_id}/?roi={hit.pk}")
    assert body["encoder"]["name"] == "box"
    assert body["index"]["version"] == 0
    assert body["votes"]["label"] == {"votes": [], "cases": 0, "silent": 1, "dissent": None}
    assert body["facets"] is None and result["also"] == []


def test_an_unknown_scale_is_shown_for_the_query_and_each_hit(api, page, world):
    query = world.embedded(world.canvas(world.case("A1", "p1")), 100, 100)
    known = world.canvas(world.case("A2", "p2"))
    known.mpp_x = known.mpp_y = 0.5
    known.save()
    hits = [
        world.embedded(known, 130, 100),
        world.embedded(world.canvas(world.case("A3")), 160, 100),
    ]
    data = {"roi": str(query.pk), "k": 5, "expand": 0, "diffuse": False}
    body = api.post(URL, data).json()
    assert body["scale_unknown"] is True
    unknown = {hit["roi"]["id"]: hit["canvas"]["scale_unknown"] for hit in body["results"]}
    assert unknown == {str(hits[0].pk): False, str(hits[1].pk): True}
    shown = page.get(f"/rois/{query.pk}/similar/").content.decode()
    assert "<strong>Scale unknown.</strong>" in shown and shown.count(">scale unknown</span>") == 1
    body = api.post(URL, data | {"roi": str(hits[0].pk)}).json()
    assert body["scale_unknown"] is False
    endoscopic = SimilarQuery(encoder=Encoder(kind=Modality.ENDOSCOPY), roi=query)
    assert not endoscopic.scale_unknown  # no endoscope tells a scale, and no search needs it


def test_get_gives_the_same_answer(api, pair):
    query, _ = pair
    posted = api.post(URL, {"roi": str(query.pk), "filters": {"organ": "Colon"}}).json()
    assert api.get(f"/api/v1/rois/{query.pk}/similar/", {"organ": "Colon"}).json() == posted
    assert api.get(f"/api/v1/rois/{query.pk}/similar/?organ=Lung").json()["results"] == []


@pytest.mark.parametrize(("least", "expanded"), [(23, 0), (4, 3)])
def test_a_result_records_its_options_and_can_be_repeated(
    api, world, pair, monkeypatch, least, expanded
):
    monkeypatch.setattr(similar_cases, "EXPAND_FROM", least)
    query, hit = pair
    for left in (140, 160, 180):
        world.embedded(hit.canvas, left, 100)
    body = api.post(URL, {"roi": str(query.pk)}).json()
    assert body["expand"] == len(body["expanded_by"]) == expanded and body["diffuse"]
    again = {"roi": str(query.pk), "encoder": body["encoder"]["id"]}
    again |= {name: body[name] for name in ("expand", "diffuse")}
    assert api.post(URL, again).json() == body
    plain = api.get(f"/api/v1/rois/{query.pk}/similar/", {"expand": 0}).json()
    assert (plain["expand"], plain["expanded_by"], plain["diffuse"]) == (0, [], False)
    distances = [result["distance"] for result in plain["results"]]
    assert distances == sorted(distances)
    assert sorted(result["distance"] for result in body["results"]) == distances


def test_an_roi_being_embedded_returns_its_job(api, world, pair):
    fresh = world.roi(pair[0].canvas, 300, 300)
    answer = api.post(URL, {"roi": str(fresh.pk)})
    assert answer.status_code == 202
    job = answer.json()["job"]
    assert (job["kind"], job["state"]) == ("roi_embed", "queued")
    assert answer["Location"].endswith(f"/api/v1/jobs/{job['id']}/")
    assert answer["Retry-After"] == "2"
    assert api.post(URL, {"roi": str(fresh.pk)}).json()["job"]["id"] == job["id"]
    world.run_jobs()
    assert api.post(URL, {"roi": str(fresh.pk)}).status_code == 200


def test_the_very_first_roi_is_answered_with_its_job(api, world):
    first = world.roi(world.canvas(world.case("A1")))
    assert api.post(URL, {"roi": str(first.pk)}).status_code == 202


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EmptyRegionError("it is blank"), "no-tissue"),
        (ShapeError("image", expected="RGB", actual="grey"), "embedding-failed"),
    ],
)
def test_an_roi_that_could_not_be_embedded_is_a_conflict_with_the_reason(
    api, world, encoder, error, code
):
    encoder.fails_with = error
    roi = world.embedded(world.canvas(world.case("A1")))
    answer = api.post(URL, {"roi": str(roi.pk)})
    assert (answer.status_code, answer.json()["code"]) == (409, code)
    assert answer.json()["job"] and answer.json().get("reason", "shape") == "shape"


def test_a_deleted_roi_is_a_conflict(api, world, pair):
    roi_delete(roi=pair[0], user=world.user, expected_version=1)
    answer = api.post(URL, {"roi": str(pair[0].pk)})
    assert (answer.status_code, answer.json()["code"]) == (409, "roi-deleted")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({}, "roi"),
        ({"roi": "x"}, "roi"),
        ({"k": 0}, "k"),
        ({"k": 10**9}, "k"),
        ({"expand": -1}, "expand"),
        ({"expand": 11}, "expand"),
        ({"filters": {"kind": "x"}}, "kind"),
        ({"filters": {"label": "x"}}, "label"),
    ],
)
def test_invalid_input_is_an_error(api, pair, body, text):
    answer = api.post(URL, ({"roi": str(pair[0].pk)} | body) if body else {})
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert text in answer.json()["detail"]


def test_an_unknown_encoder_or_label_is_404(api, pair):
    roi, unknown = str(pair[0].pk), str(uuid.uuid4())
    assert api.post(URL, {"roi": roi, "encoder": unknown}).status_code == 404
    assert api.post(URL, {"roi": roi, "filters": {"label": unknown}}).status_code == 404


def test_encoders_are_listed(api, pair):
    (encoder,) = api.get("/api/v1/encoders/").json()["results"]
    assert (encoder["name"], encoder["dim"], encoder["is_default"]) == ("box", 4, True)
    assert api.get(f"/api/v1/encoders/{encoder['id']}/").status_code == 200


def test_a_search_takes_few_queries(api, pair, django_assert_max_num_queries):
    api.post(URL, {"roi": str(pair[0].pk)})
    with django_assert_max_num_queries(15):  # three of them are the audit log's
        api.post(URL, {"roi": str(pair[0].pk)})
