"""Names in every spelling, by every way in: one label, one case, one patient."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from django.db import IntegrityError

from portal.annotations.models import Label, Roi
from portal.annotations.services.exchange import roi_import
from portal.annotations.services.labels import label_create, label_update
from portal.annotations.services.rois import roi_create
from portal.archive.models import Case, Slide
from portal.archive.services.cases import case_create, case_update
from portal.archive.services.items import item_rename
from portal.core.database.rows import rows_insert, rows_update
from portal.core.errors import ConflictError, InvalidInputError
from portal.labs.models import Lab, User
from portal.search.selectors.filters import Filters, canvases_matching
from tests.portal.annotations.conftest import make_canvas
from tests.portal.annotations.support import box, feature, statuses

pytestmark = pytest.mark.django_db

NAME = "Schädel 1"
SPELLINGS = (
    unicodedata.normalize("NFD", NAME),
    "Schädel\u00a01",
    " Schä\u200bdel 1 ",
    "\ufeffSchädel 1\u200e",
    "Schädel  1\u3000",
)
each_spelling = pytest.mark.parametrize("spelling", SPELLINGS)
each_empty_name = pytest.mark.parametrize(
    "empty_name", ["\u200b", "\u3164\u00a0", "\u2800", "\u202e"]
)


@each_spelling
def test_a_case_is_one_in_every_spelling(lab: Lab, manager: User, spelling: str) -> None:
    case_create(lab=lab, user=manager, accession=spelling, patient_key=spelling)
    with pytest.raises(ConflictError):
        case_create(lab=lab, user=manager, accession=NAME)
    for written in (NAME, *SPELLINGS):
        case = Case.objects.get(accession=written, patient_key=written)
        assert (case.accession, case.patient_key) == (NAME, NAME)
        assert Case.objects.filter(accession__in=[written], organ__iexact="").exists()


@each_spelling
def test_no_writer_circumvents_the_uniqueness(lab: Lab, spelling: str) -> None:
    Case.objects.create(lab=lab, accession=NAME)
    with pytest.raises(IntegrityError):
        Case.objects.bulk_create([Case(lab=lab, accession=spelling)])


@each_spelling
def test_rows_inserted_by_one_statement_have_normalised_names(
    lab: Lab, manager: User, spelling: str
) -> None:
    label = label_create(lab=lab, user=manager, name="Other")
    rows_insert([Label(lab=lab, label_set=label.label_set, name=spelling.upper())])
    result = Label.objects.get(name=NAME.upper())
    assert result.name_key == NAME.casefold()
    result.name = spelling
    rows_update([result], ["name", "name_key"])
    result.refresh_from_db()
    assert result.name == NAME


@each_spelling
def test_a_label_is_one_in_every_spelling_and_case(lab: Lab, manager: User, spelling: str) -> None:
    label = label_create(lab=lab, user=manager, name=spelling)
    assert label.name == NAME
    for twin in (NAME, spelling.upper(), unicodedata.normalize("NFD", NAME.upper())):
        with pytest.raises(ConflictError):
            label_create(lab=lab, user=manager, name=twin)
    other = label_create(lab=lab, user=manager, name="Other")
    with pytest.raises(ConflictError):
        label_update(label=other, user=manager, changes={"name": spelling.upper()})
    label_update(label=label, user=manager, changes={"name": "Ödem"})
    with pytest.raises(ConflictError):
        label_create(lab=lab, user=manager, name="ÖDEM")
    assert label_create(lab=lab, user=manager, name=NAME).pk != label.pk


@each_spelling
def test_an_import_finds_the_label_in_every_spelling(
    lab: Lab, manager: User, spelling: str
) -> None:
    canvas = make_canvas(lab)
    document = [
        feature(box(1, 1, 9, 9), classification=NAME),
        feature(box(11, 1, 19, 9), classification=spelling, name=spelling),
        feature(box(21, 1, 29, 9), classification=spelling.upper()),
    ]
    report = roi_import(canvas=canvas, user=manager, document=document)
    assert statuses(report) == ["created"] * 3 and len(report.classes) == 1
    assert Label.objects.filter(name=NAME).count() == 1
    assert Roi.objects.filter(name=NAME).exists()


@each_spelling
def test_a_search_filter_takes_every_spelling(lab: Lab, manager: User, spelling: str) -> None:
    case = case_create(lab=lab, user=manager, accession="A-1", organ=NAME, tags=[spelling])
    canvas = make_canvas(lab, accession="A-1")
    for filters in (Filters(organ=spelling), Filters(tag=spelling)):
        canvases = canvases_matching(lab.pk, filters, case_id=None)
        assert canvases is not None and list(canvases) == [canvas]
    assert case.tags == [NAME]


@each_spelling
def test_lists_over_rest_take_every_spelling(
    lab: Lab, manager: User, api_as: Any, spelling: str
) -> None:
    api = api_as(manager)
    sent = {"lab": str(lab.pk), "accession": spelling, "patient_key": spelling, "organ": spelling}
    assert api.post("/api/v1/cases/", sent, format="json").status_code == 201
    assert api.post("/api/v1/cases/", sent | {"accession": NAME}, format="json").status_code == 409
    for name in ("accession", "patient_key", "organ", "q"):
        answer = api.get("/api/v1/cases/", {name: spelling}).json()
        assert [row["accession"] for row in answer["results"]] == [NAME], name


@each_empty_name
def test_names_of_invisible_characters_are_refused(
    lab: Lab, manager: User, empty_name: str, api_as: Any
) -> None:
    with pytest.raises(InvalidInputError):
        case_create(lab=lab, user=manager, accession=empty_name)
    with pytest.raises(InvalidInputError):
        label_create(lab=lab, user=manager, name=empty_name)
    answer = api_as(manager).post(
        "/api/v1/cases/", {"lab": str(lab.pk), "accession": empty_name}, format="json"
    )
    assert answer.status_code == 400
    case = case_create(lab=lab, user=manager, accession="A-1")
    with pytest.raises(InvalidInputError):
        case_update(case=case, user=manager, accession=empty_name)
    with pytest.raises(InvalidInputError, match="title"):
        item_rename(item=Slide(lab=lab, case=case), user=manager, name=empty_name)
    canvas = make_canvas(lab, accession="A-1")
    roi = roi_create(canvas=canvas, user=manager, geometry=box(1, 1, 9, 9), name=empty_name).roi
    assert roi.name == ""
