"""Writes of the archive: cases, transfers, items."""

from __future__ import annotations

import pytest

from portal.archive.models import Case
from portal.archive.selectors.cases import case_facets, case_search, case_tagged
from portal.archive.services.cases import case_create, case_update, tags_clean
from portal.core.errors import (
    ConflictError,
    InvalidInputError,
)
from portal.labs.models import Lab, User

pytestmark = pytest.mark.django_db


# --- cases -----------------------------------------------------------------------------------


def test_text_is_trimmed_and_searchable(lab: Lab, annotator: User) -> None:
    case = case_create(
        lab=lab, user=annotator, accession=" S\n1 ", diagnosis="Tubular  ADENOMA", tags=["#Rare "]
    )
    assert (case.accession, case.diagnosis, case.tags) == ("S 1", "Tubular ADENOMA", ["Rare"])
    assert case.search_text == "\ns 1\ntubular adenoma\n#rare\n"


def test_question_and_notes_are_cleaned_and_searchable(lab: Lab, annotator: User) -> None:
    case = case_create(
        lab=lab,
        user=annotator,
        accession="S-2",
        clinical_question="  Margins  free? ",
        notes="#Rare \r\n  second line\u200b\n",
    )
    assert case.clinical_question == "Margins free?"
    assert case.notes == "#Rare\n  second line"
    assert case.search_text == "\ns-2\nmargins free?\nrare second line\n"
    assert list(case_search(Case.objects.all(), "LINE margins")) == [case]
    assert not case_tagged(Case.objects.all(), "rare second line")


def test_notes_have_a_limit(lab: Lab, annotator: User) -> None:
    with pytest.raises(InvalidInputError, match="notes"):
        case_create(lab=lab, user=annotator, accession="S-2", notes="x" * 10_001)


def test_a_word_is_spelled_as_in_the_labs_other_cases(lab: Lab, annotator: User) -> None:
    first = case_create(lab=lab, user=annotator, accession="S-7", organ="Colon")
    second = case_create(lab=lab, user=annotator, accession="S-8", organ="colon")
    assert second.organ == "Colon"
    case_update(case=second, user=annotator, organ="Lung")
    case_update(case=first, user=annotator, organ="COLON")
    assert first.organ == "COLON"


def test_two_spellings_are_one_choice_of_the_filter(lab: Lab, annotator: User) -> None:
    for number, organ in enumerate(("colon", "Colon", "Lung")):
        Case.objects.create(lab=lab, accession=f"S-{number + 20}", organ=organ)
    organs = case_facets(user=annotator).organs
    assert [word.term for word in organs] == ["Colon", "Lung"]


def test_tags_are_trimmed_and_counted() -> None:
    assert tags_clean([" a ", "A", "", "b  c"]) == ["a", "b c"]
    with pytest.raises(InvalidInputError, match=r"20 .*21"):
        tags_clean(str(n) for n in range(21))
    with pytest.raises(InvalidInputError, match=r"\b40\b.*'x{20}'.*\b41\b"):
        tags_clean(["x" * 41])


def test_an_unknown_field_is_refused(case: Case, annotator: User) -> None:
    with pytest.raises(InvalidInputError, match="patient_name"):
        case_update(case=case, user=annotator, patient_name="Ada")


def test_a_refused_change_leaves_the_row_as_it_was(case: Case, annotator: User, lab: Lab) -> None:
    case_create(lab=lab, user=annotator, accession="S-2")
    with pytest.raises(ConflictError, match="S-2"):
        case_update(case=case, user=annotator, accession="S-2")
    with pytest.raises(InvalidInputError, match="sex"):
        case_update(case=case, user=annotator, sex="robot")
    case.refresh_from_db()
    assert (case.accession, case.sex) == ("S-1", "unknown")


def test_two_labs_may_use_one_accession(case: Case, other_lab: Lab, stranger: User) -> None:
    case_create(lab=other_lab, user=stranger, accession=case.accession)


# --- transfers -------------------------------------------------------------------------------


# --- items -----------------------------------------------------------------------------------
