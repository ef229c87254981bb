"""Writes of the archive: cases, transfers, items."""

from __future__ import annotations

import io

import pytest

from portal.archive import selectors, services
from portal.archive.models import Case
from portal.archive.services import tags_clean
from portal.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
)
from portal.labs.models import Lab, User
from tests.portal.archive.support import picture

pytestmark = pytest.mark.django_db


# --- cases -----------------------------------------------------------------------------------


def test_text_is_trimmed_and_searchable(lab: Lab, annotator: User) -> None:
    case = services.case_create(
        lab=lab, user=annotator, accession=" S\n1 ", diagnosis="Tubular  ADENOMA", tags=["#Rare "]
    )
    assert (case.accession, case.diagnosis, case.tags) == ("S 1", "Tubular ADENOMA", ["Rare"])
    assert case.search_text == "\ns 1\ntubular adenoma\n#rare\n"


def test_a_word_is_spelled_as_in_the_labs_other_cases(lab: Lab, annotator: User) -> None:
    first = services.case_create(lab=lab, user=annotator, accession="S-7", organ="Colon")
    second = services.case_create(lab=lab, user=annotator, accession="S-8", organ="colon")
    assert second.organ == "Colon"
    services.case_update(case=second, user=annotator, organ="Lung")
    services.case_update(case=first, user=annotator, organ="COLON")
    assert first.organ == "COLON"


def test_two_spellings_are_one_choice_of_the_filter(lab: Lab, annotator: User) -> None:
    for number, organ in enumerate(("colon", "Colon", "Lung")):
        Case.objects.create(lab=lab, accession=f"S-{number + 20}", organ=organ)
    assert selectors.case_facets(user=annotator).organs == ["Colon", "Lung"]


def test_tags_are_trimmed_and_counted() -> None:
    assert tags_clean([" a ", "A", "", "b  c"]) == ["a", "b c"]
    with pytest.raises(InvalidInputError, match="at most 20 tags; got 21"):
        tags_clean(str(n) for n in range(21))
    with pytest.raises(InvalidInputError, match="at most 40 characters"):
        tags_clean(["x" * 41])


def test_an_unknown_field_is_refused(case: Case, annotator: User) -> None:
    with pytest.raises(InvalidInputError, match="A case has no field patient_name"):
        services.case_update(case=case, user=annotator, patient_name="Ada")


def test_a_refused_change_leaves_the_row_as_it_was(case: Case, annotator: User, lab: Lab) -> None:
    services.case_create(lab=lab, user=annotator, accession="S-2")
    with pytest.raises(ConflictError, match="already has a case S-2"):
        services.case_update(case=case, user=annotator, accession="S-2")
    with pytest.raises(InvalidInputError, match="sex"):
        services.case_update(case=case, user=annotator, sex="robot")
    case.refresh_from_db()
    assert (case.accession, case.sex) == ("S-1", "unknown")


def test_two_labs_may_use_one_accession(case: Case, other_lab: Lab, stranger: User) -> None:
    services.case_create(lab=other_lab, user=stranger, accession=case.accession)


def test_roles_are_checked_by_the_services(case: Case, viewer: User, stranger: User) -> None:
    for user in (viewer, stranger):
        with pytest.raises(ForbiddenError):
            services.case_update(case=case, user=user, organ="x")
        with pytest.raises(ForbiddenError):
            services.case_delete(case=case, user=user)
        with pytest.raises(ForbiddenError):
            services.upload_receive(
                case=case, file=io.BytesIO(picture()), filename="a.png", user=user
            )
        with pytest.raises(ForbiddenError):
            services.upload_begin(case=case, filename="a.png", size_bytes=1, user=user)


# --- transfers -------------------------------------------------------------------------------


# --- items -----------------------------------------------------------------------------------
