"""Frozen search results: complete, unchanged, repeatable, and deleted with the patient."""

from __future__ import annotations

import io
import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from PIL import Image

from portal.annotations.models import Label, Roi
from portal.annotations.services.rois import roi_delete
from portal.archive.models import Canvas, Case
from portal.archive.services.cases import case_delete
from portal.audit.models import AuditEntry
from portal.core.errors import ConflictError, InvalidInputError
from portal.erasure.services.erasures import erasure_begin, erasure_run
from portal.labs.models import Lab, Membership, TokenScope, User
from portal.labs.services.tokens import token_create
from portal.search.models import Query, QuerySource, Report, ReportRegion
from portal.search.selectors.reports import report_changes, report_get, report_regions
from portal.search.services.judgements import judgement_set
from portal.search.services.queries import QueryData, queries_sweep, query_create
from portal.search.services.reports import report_delete, report_repeat
from portal.search.services.similar_cases import query_search, roi_search
from portal.search.thumbnails.reports import report_save
from tests.clients import client_of
from tests.portal.embedded_rois import square


@pytest.fixture
def neighbours(world):
    """Three ROIs of three patients on one line."""
    return [
        world.embedded(world.canvas(world.case(f"BX-{n}000", f"q{n}")), 100 + 20 * n, 100)
        for n in range(3)
    ]


@pytest.fixture
def roi(world):
    return world.embedded(world.canvas(world.case("AX-1000", "p1")), 90, 100, name="Asked")


def made(world, roi, **options):
    result = roi_search(roi=roi, user=world.user, options={"by_case": True, **options})
    return report_save(result, world.user)


def hits(world, report):
    return [region.roi_id for region in report_regions(world.user, report)]


def page_of(user):
    return client_of(user)


def changes_of(world, report):
    report = report_get(world.user, report.pk)
    before = list(report_regions(world.user, report))
    repeated = report_repeat(report=report, user=world.user)
    return report_changes(report, before, repeated)


def test_the_button_stores_the_shown_result(world, neighbours, roi, manager):
    page = page_of(world.user)
    assert 'report/"' in page.get(f"/rois/{roi.pk}/similar/").content.decode()
    answer = page.post(f"/rois/{roi.pk}/similar/report/?organ=&k=10")
    report = Report.objects.get()
    assert answer["Location"] == f"/reports/{report.pk}/"
    assert hits(world, report) == [item.pk for item in neighbours]
    roi_delete(roi=neighbours[0], user=world.user, expected_version=1)
    text = page.get(answer["Location"]).content.decode()
    assert all(f"BX-{n}000" in text for n in range(3))
    assert "deleted since" in text and "box 1" in text and str(world.user) in text
    picture = page.get(f"/reports/{report.pk}/pictures/1.jpg")
    assert Image.open(io.BytesIO(picture.content)).size == (320, 240)
    assert page.get(f"/reports/{report.pk}/pictures/9.jpg").status_code == 404
    assert "Asked on Slide of AX-1000" in page.get("/reports/").content.decode()
    case = roi.canvas.case_id
    assert "Asked on" in page.get(f"/reports/?case={case}").content.decode()
    assert (
        "No reports yet"
        in page_of(manager).get(f"/reports/?case={neighbours[0].canvas.case_id}").content.decode()
    )
    message = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"report.created", "report.viewed", "report.listed"} <= message


def test_the_pdf_names_all_and_numbers_its_pages(world, neighbours, roi):
    from pypdf import PdfReader

    report = made(world, roi)
    answer = page_of(world.user).get(f"/reports/{report.pk}/report.pdf")
    assert answer["Content-Type"] == "application/pdf"
    pages = PdfReader(io.BytesIO(answer.content)).pages
    text = "\n".join(page.extract_text() for page in pages)
    for word in ("Asked on Slide of AX-1000", "BX-1000", "box 1", world.lab.name, str(report.pk)):
        assert word in text
    assert f"Page 1 of {len(pages)}" in text
    assert sum(len(page.images) for page in pages) >= 1, "alike ones are held once"


def test_a_report_names_images_of_unknown_scale_as_they_were(world, neighbours, roi):
    from pypdf import PdfReader

    def texts(report):
        page = page_of(world.user)
        pdf = page.get(f"/reports/{report.pk}/report.pdf").content
        printed = "\n".join(item.extract_text() for item in PdfReader(io.BytesIO(pdf)).pages)
        html = page.get(f"/reports/{report.pk}/").content.decode()
        return [re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text)) for text in (printed, html)]

    Canvas.objects.filter(pk=neighbours[0].canvas_id).update(mpp_x=0.5, mpp_y=0.5)
    report = made(world, roi)
    Canvas.objects.update(mpp_x=0.5, mpp_y=0.5)  # a report does not change
    for text in texts(report):
        assert "Scale unknown." in text and "took it for 0.5 µm" in text
        assert text.count("scale unknown") == 2
    for text in texts(made(world, Roi.objects.get(pk=roi.pk))):
        assert "cale unknown" not in text


@pytest.mark.parametrize(
    "name",
    [
        '<para><font size="400">A</font>',
        "</para><img src='file:///etc/passwd'/>",
        "&bogus; &#0; <b>",
        "\u202egnp.exe\u2066",
        "😀" * 40,
        "W" * 120,
        "a\x00b\x1b[31m\r\nBcc: x",
        "\ud7ff\uffff\U0010ffff",
    ],
)
def test_a_hostile_name_is_printed_as_text(world, neighbours, roi, name):
    from pypdf import PdfReader

    if connection.vendor == "postgresql":
        name = name.replace("\x00", "")  # which PostgreSQL does not store

    def put(rows, field):
        rows.update(**{field: name[: rows.model._meta.get_field(field).max_length]})

    put(Lab.objects.filter(pk=world.lab.pk), "name")
    put(Label.objects.all(), "name")
    put(Roi.objects.all(), "name")
    put(Case.objects.filter(pk=neighbours[0].canvas.case_id), "accession")
    put(User.objects.filter(pk=world.user.pk), "full_name")
    world.user.refresh_from_db()
    roi.refresh_from_db()
    report = made(world, roi)
    put(Report.objects.filter(pk=report.pk), "name")
    answer = page_of(world.user).get(f"/reports/{report.pk}/report.pdf")
    assert answer.status_code == 200
    assert "\n" not in answer["Content-Disposition"] and "\x00" not in answer["Content-Disposition"]
    text = "".join(page.extract_text() for page in PdfReader(io.BytesIO(answer.content)).pages)
    assert "Similar cases" in text and "root:" not in text
    if name.startswith("<"):
        assert name[:6] in text


def test_a_repeated_report_lists_the_changes(world, neighbours, roi):
    report = made(world, roi, expand=0)
    assert changes_of(world, report).counts == [("same", 3), ("moved", 0), ("new", 0), ("gone", 0)]
    roi_delete(roi=neighbours[0], user=world.user, expected_version=1)
    nearer = world.embedded(world.canvas(world.case("CX-1", "r1")), 92, 100)
    changes = changes_of(world, report)
    assert [(str(hit.change), hit.before, hit.now) for hit in changes.hits] == [
        ("new", None, 1),
        ("same", 2, 2),
        ("same", 3, 3),
        ("gone", 1, None),
    ]
    assert changes.encoder is None and changes.erased == 0
    Report.objects.update(
        content=report.content | {"encoder": ["box", "0", "xyz"], "index": [7, 1, 0]}
    )
    changes = changes_of(world, report)
    assert changes.encoder == ("box 0", "box 1") and changes.index == (7, 0)
    page = page_of(world.user)
    text = page.get(f"/reports/{report.pk}/again/").content.decode()
    assert "box 0 → box 1" in text and "deleted" in text and "CX-1" in text
    assert page.post(f"/reports/{report.pk}/again/keep/").status_code == 302
    newest = Report.objects.first()
    assert newest.pk != report.pk and hits(world, newest)[0] == nearer.pk
    roi_delete(roi=roi, user=world.user, expected_version=1)
    with pytest.raises(ConflictError, match="deleted"):
        changes_of(world, report)
    assert "was deleted" in page.get(f"/reports/{report.pk}/again/").content.decode()


def test_a_report_stores_marks_filters_and_queries(world, neighbours, roi):
    judgement_set(roi=roi, other_id=neighbours[2].pk, verdict="alike", user=world.user)
    result = roi_search(
        roi=roi, user=world.user, options={"k": 2, "expand": 0}, use_judgements=True
    )
    report = report_save(result, world.user)
    assert report.content["refined_by"] == 1
    liked = report_regions(world.user, report, role="liked")
    assert [region.roi_id for region in liked] == [neighbours[2].pk]
    judgement_set(roi=roi, other_id=neighbours[2].pk, verdict="unlike", user=world.user)
    assert changes_of(world, report).count("same") == 2, "by the marks of then"
    canvas = world.canvas(world.case("DX-1", "s1"))
    requested = QueryData(source=QuerySource.AREA, canvas_id=canvas.pk, geometry=square(100, 100))
    query = query_create(data=requested, user=world.user)
    world.run_jobs()
    query.refresh_from_db()
    stored = report_save(query_search(query=query, user=world.user, options={}), world.user)
    Query.objects.update(created_at="2020-01-01T00:00Z")
    assert queries_sweep() == 0, "a report can be asked again"
    assert changes_of(world, stored).count("same") == len(hits(world, stored))
    report_delete(report=stored, user=world.user)
    assert queries_sweep() == 1


@pytest.mark.django_db(transaction=True)  # PostgreSQL rewrites tables outside of transactions
def test_an_erased_patient_leaves_others_reports(world, neighbours, roi, manager):
    report = made(world, roi, liked=(neighbours[1].pk,))
    assert ReportRegion.objects.filter(canvas=neighbours[0].canvas).exists()
    case_delete(
        case=neighbours[2].canvas.case, user=manager
    )  # in the trash: hidden, and can come back
    assert hits(world, report) == [neighbours[0].pk, neighbours[1].pk]
    erasure = erasure_begin(
        lab=world.lab, cases=[neighbours[0].canvas.case], user=manager, reason="asked for"
    )
    erasure = erasure_run(erasure)
    assert erasure.certificate["verified"] | {"database_rewritten": 0} == {
        "is_gone": True,
        "rows_left": 0,
        "files_left": [],
        "names_left_in": [],
        "names_too_short_to_search": 1,  # the accession
        "database_rewritten": 0,
    }
    assert erasure.certificate["rows"]["reportregion"] == 1
    report = report_get(world.user, report.pk)
    assert hits(world, report) == [neighbours[1].pk]
    text = page_of(world.user).get(f"/reports/{report.pk}/").content.decode()
    assert "BX-0000" not in text and "2 of 3 results" in re.sub(r"\s+", " ", text)
    assert "BX-0000" not in str(report.content)
    own = erasure_begin(lab=world.lab, cases=[roi.canvas.case], user=manager, reason="asked for")
    assert erasure_run(own).certificate["rows"]["report"] == 1
    assert not Report.all_objects.exists() and not ReportRegion.all_objects.exists()


def test_another_labs_region_is_not_stored_in_a_report(world, neighbours, roi, other_lab):
    Membership.objects.create(user=world.user, lab=other_lab, role="viewer")
    result = roi_search(
        roi=roi, user=world.user, options={"expand": 0, "diffuse": False}, lab_id=other_lab.pk
    )
    with pytest.raises(InvalidInputError, match="shares"):
        report_save(result, world.user)


def test_rest_creates_reads_and_repeats_reports(world, neighbours, roi, api_as):
    api = api_as(world.user)
    wrong = api.post("/api/v1/reports/", {}, format="json")
    assert (wrong.status_code, wrong.json()["detail"]) == (400, "roi, query: give one of them.")
    body = {"roi": str(roi.pk), "k": 2, "facets": True}
    answer = api.post("/api/v1/reports/", body, format="json")
    assert answer.status_code == 201
    payload = answer.json()
    assert [hit["roi"] for hit in payload["results"]] == [str(item.pk) for item in neighbours[:2]]
    assert api.get(f"/api/v1/reports/{payload['id']}/").json() == payload
    again = api.get(f"/api/v1/reports/{payload['id']}/again/").json()
    assert [row["change"] for row in again["results"]] == ["same", "same"]
    assert api.delete(f"/api/v1/reports/{payload['id']}/").status_code == 204
    assert api.get(f"/api/v1/reports/{payload['id']}/").status_code == 404


def test_an_interpretation_is_printed_and_keeps_its_versions(world, neighbours, roi, viewer):
    from pypdf import PdfReader

    page = page_of(world.user)
    text = "Tubular & <alike>.\r\nSecond line."
    answer = page.post(f"/rois/{roi.pk}/similar/report/?k=10", {"interpretation": text})
    address = answer["Location"]
    shown = page.get(address).content.decode()
    assert "Tubular &amp; &lt;alike&gt;.\nSecond line." in shown
    assert (
        page.post(f"{address}interpretation/", {"text": "Better", "version": 1}).status_code == 302
    )
    stale = page.post(f"{address}interpretation/", {"text": "Lost?", "version": 1})
    assert stale.status_code == 412
    assert "Lost?" in stale.content.decode() and "Someone else" in stale.content.decode()
    shown = page.get(address).content.decode()
    assert "Better" in shown and "Earlier versions" in shown and "Tubular" in shown
    pdf = PdfReader(io.BytesIO(page.get(f"{address}report.pdf").content))
    printed = "\n".join(item.extract_text() for item in pdf.pages)
    assert "Better" in printed and f"{world.user}, " in printed and "version 2" in printed
    assert "Tubular" not in printed
    entries = AuditEntry.objects.filter(action="report.interpreted")
    assert entries.count() >= 2
    refused = page_of(viewer).post(f"{address}interpretation/", {"text": "No", "version": 2})
    assert refused.status_code == 403
    assert "Change the interpretation" not in page_of(viewer).get(address).content.decode()


def test_rest_writes_interpretations(world, neighbours, roi, api_as):
    api = api_as(world.user)
    body = {"roi": str(roi.pk), "k": 2, "interpretation": "First"}
    made = api.post("/api/v1/reports/", body, format="json").json()
    assert (made["interpretation"]["version"], made["interpretation"]["text"]) == (1, "First")
    path = f"/api/v1/reports/{made['id']}/interpretations/"
    second = api.post(path, {"text": "Second", "version": 1}, format="json")
    assert (second.status_code, second.json()["version"]) == (201, 2)
    stale = api.post(path, {"text": "Third", "version": 1}, format="json")
    assert (stale.status_code, stale.json()["current_version"]) == (412, 2)
    assert api.post(path, {"text": "", "version": 2}, format="json").status_code == 201
    rows = api.get(path).json()["results"]
    assert [row["text"] for row in rows] == ["", "Second", "First"]
    assert api.get(f"/api/v1/reports/{made['id']}/").json()["interpretation"] is None
    too_long = api.post(path, {"text": "x" * 10_001, "version": 3}, format="json")
    assert too_long.status_code == 400


def test_the_query_count_of_pages_is_constant(world, neighbours, roi):
    report = made(world, roi)
    page = page_of(world.user)
    addresses = (f"/reports/{report.pk}/", f"/reports/{report.pk}/report.pdf", "/reports/")
    counts = []
    for start in (3, 6):
        for address in addresses:
            page.get(address)
        counts.append([])
        for address in addresses:
            with CaptureQueriesContext(connection) as requested:
                page.get(address)
            counts[-1].append(len(requested))
        for n in range(start, start + 3):
            world.embedded(world.canvas(world.case(f"BX-{n}000", f"q{n}")), 100 + 20 * n, 100)
        report = made(world, roi)
        addresses = (f"/reports/{report.pk}/", f"/reports/{report.pk}/report.pdf", "/reports/")
    assert counts[0] == counts[1]
    assert max(counts[0]) < 20


def test_a_case_shows_its_newest_reports_and_a_link_to_all(world, neighbours, roi):
    page, address = page_of(world.user), f"/cases/{roi.canvas.case_id}/"
    assert "Reports" not in page.get(address).content.decode()
    reports = [made(world, roi) for _ in range(6)]
    text = page.get(address).content.decode()
    shown = [str(report.pk) in text for report in reports]
    assert shown == [False, *[True] * 5]
    assert f"/reports/?case={roi.canvas.case_id}" in text
    other = page.get(f"/cases/{neighbours[0].canvas.case_id}/").content.decode()
    assert not any(str(report.pk) in other for report in reports)


def test_the_pdf_needs_a_token_of_the_lab(world, neighbours, roi, other_lab):
    report = made(world, roi)
    address = f"/api/v1/reports/{report.pk}/pdf/"

    def request(user):
        token = {"name": "pdf", "scope": TokenScope.READ, "expires_in": timedelta(days=1)}
        _, secret = token_create(user, **token)
        return Client().get(address, headers={"Authorization": f"Bearer {secret}"})

    answer = request(world.user)
    assert answer["Content-Type"] == "application/pdf"
    assert answer.content.startswith(b"%PDF")
    assert answer["Cache-Control"] == "private, no-store"
    stranger = User.objects.create_user("stranger@example.com", "correct horse battery")
    Membership.objects.create(user=stranger, lab=other_lab, role="manager")
    assert request(stranger).status_code == 404
    assert Client().get(address).status_code == 401
