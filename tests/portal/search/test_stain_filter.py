"""Searches narrowed to a stain: whatever is searched with, counted, kept in reports, of one lab."""

from __future__ import annotations

import io
import re

import pytest
import shapely
from django.db import connection
from django.test.utils import CaptureQueriesContext
from PIL import Image
from rest_framework.test import APIClient

from portal.archive.models import Slide
from portal.archive.services.stains import slide_stain_set
from portal.search.models import QuerySource, Report
from portal.search.selectors.filters import Filters
from portal.search.services.queries import QueryData, query_create
from portal.search.services.similar_cases import query_search, roi_search
from portal.search.thumbnails.reports import report_save
from tests.portal.embedded_rois import square

URL = "/api/v1/search/"


@pytest.fixture
def neighbours(world):
    """Three ROIs of three patients on one line: two on PAS, one on H&E."""
    canvases = [world.canvas(world.case(f"B{n}", f"q{n}")) for n in range(3)]
    for canvas, stain in zip(canvases, ("PAS", "H&E", "pas"), strict=True):
        world.scanned(canvas, stain=stain)
    return [world.embedded(item, 100 + 20 * n, 100) for n, item in enumerate(canvases)]


@pytest.fixture
def roi(world):
    return world.embedded(world.canvas(world.case("A1", "p1")), 90, 100, name="Asked")


def ids(answer):
    assert answer.status_code == 200, answer.content
    return [hit["roi"]["id"] for hit in answer.json()["results"]]


def test_rest_filters_a_search_with_an_roi(api, roi, neighbours):
    wanted = [str(item.pk) for item in (neighbours[0], neighbours[2])]
    data = {"roi": str(roi.pk), "facets": True, "filters": {"stain": "PAS"}}
    posted = api.post(URL, data, format="json")
    assert ids(posted) == wanted
    assert ids(api.get(f"/api/v1/rois/{roi.pk}/similar/", {"stain": "PAS"})) == wanted
    assert ids(api.get(f"/api/v1/rois/{roi.pk}/similar/", {"stain": "Gram"})) == []
    assert posted.json()["results"][0]["canvas"]["stain"] == "PAS"
    counted = posted.json()["facets"]["values"]["stain"]
    assert [(count["value"], count["count"], count["is_chosen"]) for count in counted] == [
        ("PAS", 2, True),
        ("H&E", 1, False),
    ]
    days = posted.json()["facets"]["values"]["date"]
    assert {day["count"] for day in days} == {2} and days[0]["until"] is None
    cases = posted.json()["facets"]["values"]["case"]
    assert [(case["value"], case["name"], case["count"]) for case in cases] == [
        ("others", "Other cases", 2)
    ]


@pytest.mark.parametrize("source", ["area", "examples", "rois", "picture"])
def test_filters_apply_to_every_query(world, neighbours, encoder, source):
    encoder.embed_image = lambda image, polygon, *, mpp=None, progress: encoder._embedded(
        shapely.box(90, 100, 110, 120), progress
    )
    canvas = world.canvas(world.case("A1", "p1"))
    world.embedded(canvas, 90, 100)
    requested = {
        "area": {"canvas_id": canvas.pk, "geometry": square(100, 100)},
        "examples": {"liked": (neighbours[1].pk,)},
        "rois": {"canvas_id": canvas.pk},
        "picture": {"kind": "histology", "mpp": 1.0, "lab": world.lab, "upload": png()},
    }[source]
    query = query_create(data=QueryData(source=QuerySource(source), **requested), user=world.user)
    world.run_jobs()
    query.refresh_from_db()
    options = {"filters": Filters(stain="PAS"), "with_facets": True}
    answer = query_search(query=query, user=world.user, options=options)
    assert {hit.roi.pk for hit in answer.hits} == {neighbours[0].pk, neighbours[2].pk}
    assert answer.facets.regions == 2


def png():
    stream = io.BytesIO()
    Image.new("RGB", (60, 40), "#c080b0").save(stream, "PNG")
    return stream.getvalue()


def test_an_entered_stain_counts_in_the_next_search(world, roi, neighbours):
    slide = Slide.objects.get(canvas=neighbours[1].canvas_id)
    slide_stain_set(slide=slide, user=world.user, stain="PAS")
    options = {"filters": Filters(stain="PAS")}
    answer = roi_search(roi=roi, user=world.user, options=options)
    assert len(answer.hits) == 3


def test_the_page_offers_it_and_it_can_be_dropped(page, roi, neighbours):
    text = page.get(f"/rois/{roi.pk}/similar/").content.decode()
    assert 'aria-label="Stain"' in text and "?stain=PAS" in text and "?stain=H%26E" in text
    narrowed = page.get(f"/rois/{roi.pk}/similar/?stain=H%26E").content.decode()
    assert 'aria-label="Drop Stain: H&amp;E"' in narrowed
    assert f"hit-{neighbours[1].pk}" in narrowed and f"hit-{neighbours[0].pk}" not in narrowed
    assert '<input type="hidden" name="stain" value="H&amp;E">' in narrowed


def test_days_and_cases_are_links_that_set_the_fields_of_the_form(page, world, roi, neighbours):
    world.embedded(roi.canvas, 300, 300)
    type(roi).objects.filter(pk=neighbours[0].pk).update(created_at="2020-05-17T12:00:00Z")
    text = page.get(f"/rois/{roi.pk}/similar/?k=10").content.decode()
    assert "?k=10&amp;case=only" in text and "?k=10&amp;case=others" in text
    assert re.search(r"\?k=10&amp;since=\d{4}-\d\d-\d\d\"", text)
    year = re.search(r"\?(k=10&amp;until=\d{4}-12-31)\"", text)
    assert year, "what is older than the years that stand by themselves"
    older = page.get(f"/rois/{roi.pk}/similar/?{year[1].replace('&amp;', '&')}").content.decode()
    assert 'aria-label="Drop Drawn: Before' in older
    assert f"hit-{neighbours[0].pk}" in older and f"hit-{neighbours[1].pk}" not in older
    assert 'type="hidden" name="date"' not in older, "the form has the days themselves"
    only = page.get(f"/rois/{roi.pk}/similar/?case=only").content.decode()
    assert 'aria-label="Drop Cases: This case"' in only
    assert 'type="hidden" name="case"' not in only


def test_a_report_stores_the_filter_and_repeats_the_search_with_it(world, page, roi, neighbours):
    answer = page.post(f"/rois/{roi.pk}/similar/report/?stain=PAS")
    report = Report.objects.get()
    assert answer["Location"] == f"/reports/{report.pk}/"
    assert ["Stain", "PAS"] in report.content["filters"]
    text = page.get(answer["Location"]).content.decode()
    assert ">PAS<" in text and ">B0<" in text and ">B1<" not in text
    shown = page.get(f"/api/v1/reports/{report.pk}/").json()
    assert [hit["stain"] for hit in shown["results"]] == ["PAS", "pas"]
    assert shown["options"]["filters"]["stain"] == "PAS"
    slide_stain_set(
        slide=Slide.objects.get(canvas=neighbours[2].canvas_id), user=world.user, stain="Gram"
    )
    again = page.get(f"/api/v1/reports/{report.pk}/again/").json()
    assert [hit["change"] for hit in again["results"]] == ["same", "gone"]


def test_the_query_count_of_a_report_does_not_depend_on_marks(world, roi, neighbours):
    result = roi_search(roi=roi, user=world.user, options={"by_case": True})
    with CaptureQueriesContext(connection) as seen:
        report_save(result, world.user)
    slides = [row["sql"] for row in seen if 'FROM "archive_slide"' in row["sql"]]
    assert len(slides) <= 1, "that of what was searched with; those of the hits came with them"


@pytest.mark.parametrize(
    "path",
    [
        "/rois/{}/similar/?plain=on&regions=on",
        "/api/v1/rois/{}/similar/?facets=true&expand=0",
    ],
)
def test_as_many_queries_for_few_hits_as_for_many(world, page, roi, neighbours, path):
    counted = []
    for some in (range(4), range(4, 10)):
        for n in some:
            canvas = world.scanned(world.canvas(world.case(f"C{n}", f"r{n}")), stain=f"stain {n}")
            world.embedded(canvas, 110 + n, 100)
        page.get(path.format(roi.pk))
        with CaptureQueriesContext(connection) as seen:
            assert page.get(path.format(roi.pk)).status_code == 200
        counted.append(len(seen))
    assert counted[0] == counted[1]


def test_another_lab_neither_counts_nor_finds_nor_offers_a_stain(
    world, page, roi, neighbours, other_lab, stranger
):
    theirs = world.scanned(world.canvas(world.case("Z1", lab=other_lab)), stain="Grocott silver")
    world.embedded(theirs, 95, 100, user=stranger)
    text = page.get(f"/rois/{roi.pk}/similar/").content.decode()
    assert "Grocott silver" not in text and "Stain" in text
    assert ids(page.get(f"/api/v1/rois/{roi.pk}/similar/", {"stain": "Grocott silver"})) == []
    api = APIClient()
    api.force_authenticate(stranger)
    assert api.get(f"/api/v1/rois/{roi.pk}/similar/", {"stain": "PAS"}).status_code == 404
