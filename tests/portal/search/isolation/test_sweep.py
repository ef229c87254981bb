"""Random searches: no response contains data of another lab."""

from __future__ import annotations

import random

import pytest

from portal.labs.models import Role
from tests.portal.search.isolation.conftest import signed_in

ROUNDS = 16  # searches: each role of each lab asks twice, and each source comes up
TABS = ("", "near-duplicates/", "unlike/", "unannotated/")
MAP_PARTS = ("", "points/", "near-duplicates/", "unlike/")


def _options(rng, own, other):
    """Filters by words of both labs: those of the other find nothing, as no word does."""
    words = rng.choice([own, other]).words
    chosen = {name: words[name] for name in ("organ", "stain", "tag") if rng.random() < 0.2}
    if rng.random() < 0.2:
        chosen["label"] = str(rng.choice([own, other]).label.pk)
    if rng.random() < 0.2:
        chosen["case"] = rng.choice(["only", "others"])
    for name in ("same_patient", "regions", "plain"):
        if rng.random() < 0.5:
            chosen[name] = "on"
    return chosen


@pytest.mark.endurance
def test_no_response_contains_data_of_another_lab(labs):
    rng = random.Random(21)
    seen = drawn = 0
    for number in range(ROUNDS):
        own, other = labs[number % 2], labs[1 - number % 2]
        page, api = signed_in(own.people[Role.values[number // 2 % len(Role.values)]])
        requested = _options(rng, own, other)
        roi, query = rng.choice(own.rois), rng.choice(own.queries)
        rest = {"facets": "true", "by_case": "true", "exclude_same_patient": "false"} | requested
        if rest.get("label") == str(other.label.pk):
            del rest["label"]  # refused, as a label that never was
        caseless = {name: value for name, value in rest.items() if name != "case"}
        answers = [
            page.get(f"/rois/{roi.pk}/similar/", requested),
            page.get(f"/queries/{query.pk}/", requested),
            page.get("/queries/"),
            api.get(f"/api/v1/rois/{roi.pk}/similar/", rest),
            api.get(f"/api/v1/queries/{query.pk}/similar/", caseless),
            api.get("/api/v1/queries/"),
            page.get(f"/rois/{own.rois[0].pk}/similar/explanation/{own.hit}/"),
            api.get(f"/api/v1/rois/{own.rois[0].pk}/similar/{own.hit}/"),
            page.get("/reports/"),
            page.get(f"/reports/{own.report.pk}/"),
            page.get(f"/reports/{own.report.pk}/again/"),
            api.get("/api/v1/reports/"),
            api.get(f"/api/v1/reports/{own.report.pk}/"),
            api.get(f"/api/v1/reports/{own.report.pk}/again/"),
            api.get(f"/api/v1/rois/{roi.pk}/judgements/"),
            *(page.get(f"/browse/{tab}") for tab in TABS),
            api.get("/api/v1/maps/"),
            api.get("/api/v1/unannotated/"),
            api.get("/api/v1/learnings/"),
            api.get("/api/v1/encoders/"),
            *(api.get(f"/api/v1/maps/{own.map.pk}/{part}") for part in MAP_PARTS),
        ]
        points = answers[-3].json()
        assert set(points["rois"]) <= {str(one.pk) for one in own.rois}
        drawn += len(points["rois"])
        for answer in answers:
            assert answer.status_code == 200, answer.content[:300]
            text = answer.content.decode()
            found = [
                word for word in other.secrets() if word in text and word not in requested.values()
            ]
            assert found == [], answer.request["PATH_INFO"]
        for answer in answers[3:5]:
            facets = answer.json()["facets"]
            assert facets["regions"] <= len(own.rois)
            for hit in answer.json()["results"]:
                seen += 1
                for one in (hit, *hit["also"]):
                    assert one["roi"]["id"] in {str(roi.pk) for roi in own.rois}
                    picture = page.get(f"/rois/{one['roi']['id']}/thumbnail.jpg")
                    assert picture.status_code == 200
    assert seen > ROUNDS, "the searches found something to tell"
    assert drawn > ROUNDS, "the maps have something on them"
