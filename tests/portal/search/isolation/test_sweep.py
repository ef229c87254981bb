"""Random searches: no response contains data of another lab."""

from __future__ import annotations

import random

import pytest

from portal.labs.models import Role
from tests.portal.search.isolation.conftest import signed_in

ROUNDS = 16  # searches: each role of each lab asks twice, and each source comes up
TABS = ("", "near-duplicates/", "unlike/", "unannotated/")
MAP_PARTS = ("", "points/", "near-duplicates/", "unlike/")


def _options(rng, lab, other):
    """Filters by words of both labs: those of the other find nothing, as no word does."""
    words = rng.choice([lab, other]).words
    chosen = {name: words[name] for name in ("organ", "stain", "tag") if rng.random() < 0.2}
    if rng.random() < 0.2:
        chosen["label"] = str(rng.choice([lab, other]).label.pk)
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
        lab, other = labs[number % 2], labs[1 - number % 2]
        page, api = signed_in(lab.people[Role.values[number // 2 % len(Role.values)]])
        requested = _options(rng, lab, other)
        roi, query = rng.choice(lab.rois), rng.choice(lab.queries)
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
            page.get(f"/rois/{lab.rois[0].pk}/similar/explanation/{lab.hit}/"),
            api.get(f"/api/v1/rois/{lab.rois[0].pk}/similar/{lab.hit}/"),
            page.get("/reports/"),
            page.get(f"/reports/{lab.report.pk}/"),
            page.get(f"/reports/{lab.report.pk}/again/"),
            api.get("/api/v1/reports/"),
            api.get(f"/api/v1/reports/{lab.report.pk}/"),
            api.get(f"/api/v1/reports/{lab.report.pk}/again/"),
            api.get(f"/api/v1/rois/{roi.pk}/judgements/"),
            *(page.get(f"/browse/{tab}") for tab in TABS),
            api.get("/api/v1/maps/"),
            api.get("/api/v1/unannotated/"),
            api.get("/api/v1/learnings/"),
            api.get("/api/v1/encoders/"),
            *(api.get(f"/api/v1/maps/{lab.map.pk}/{part}") for part in MAP_PARTS),
        ]
        points = answers[-3].json()
        assert set(points["rois"]) <= {str(item.pk) for item in lab.rois}
        drawn += len(points["rois"])
        for answer in answers:
            assert answer.status_code == 200, answer.content[:300]
            text = answer.content.decode()
            leaks = [
                word for word in other.secrets() if word in text and word not in requested.values()
            ]
            assert leaks == [], answer.request["PATH_INFO"]
        for answer in answers[3:5]:
            facets = answer.json()["facets"]
            assert facets["regions"] <= len(lab.rois)
            for hit in answer.json()["results"]:
                seen += 1
                for item in (hit, *hit["also"]):
                    assert item["roi"]["id"] in {str(roi.pk) for roi in lab.rois}
                    picture = page.get(f"/rois/{item['roi']['id']}/thumbnail.jpg")
                    assert picture.status_code == 200
    assert seen > ROUNDS, "the searches found something to tell"
    assert drawn > ROUNDS, "the maps have something on them"
