"""Importing the vocabulary of a lab, and what cases do with it."""

from __future__ import annotations

from typing import Any

import pytest

from portal.archive.filters import cases_filtered
from portal.archive.models import VocabularyTerm
from portal.archive.selectors.cases import case_facets, case_list, case_search
from portal.archive.selectors.vocabulary import CaseWord, vocabulary_list
from portal.archive.services import vocabulary as services
from portal.archive.services.cases import case_create
from portal.archive.services.vocabulary import (
    EXAMPLE,
    VocabularyImport,
    vocabulary_csv,
    vocabulary_delete,
    vocabulary_import,
)
from portal.core.errors import InvalidInputError, TooLargeInputError
from portal.core.models import Event
from portal.labs.models import Lab, User

pytestmark = pytest.mark.django_db
FILE = "field,term,code\norgan,Caecum,C18.0\ndiagnosis,Tubular adenoma,8211/0\n"


def _load(lab: Lab, manager: User, text: str, **options: Any) -> VocabularyImport:
    return vocabulary_import(lab=lab, user=manager, data=text.encode(), **options)


def _terms(lab: Lab) -> list[tuple[str, str, str]]:
    return list(VocabularyTerm.objects.filter(lab=lab).values_list("field", "term", "code"))


def test_terms_are_added_once(lab: Lab, manager: User) -> None:
    assert _load(lab, manager, FILE) == VocabularyImport(added=2, changed=0, unchanged=0)
    assert _load(lab, manager, FILE) == VocabularyImport(added=0, changed=0, unchanged=2)
    assert _terms(lab) == [
        ("diagnosis", "Tubular adenoma", "8211/0"),
        ("organ", "Caecum", "C18.0"),
    ]
    assert Event.objects.filter(name="vocabulary.imported").count() == 1


def test_a_code_is_changed_and_a_file_without_codes_leaves_them(lab: Lab, manager: User) -> None:
    _load(lab, manager, FILE)
    done = _load(lab, manager, "field,term,code\norgan,CAECUM,C18\n")
    assert done == VocabularyImport(added=0, changed=1, unchanged=0)
    done = _load(lab, manager, "field,term\norgan,CAECUM\n")
    assert done == VocabularyImport(added=0, changed=0, unchanged=1)
    assert ("organ", "CAECUM", "C18") in _terms(lab)


@pytest.mark.parametrize(
    "data",
    [
        FILE.encode("utf-8-sig"),
        FILE.replace(",", ";").encode(),
        FILE.replace("\n", "\r\n").encode(),
        b"code,term,field\nC18.0,Caecum,Organ\n\n8211/0, Tubular  adenoma ,diagnosis\n",
    ],
    ids=["byte order mark", "semicolons", "crlf", "other order"],
)
def test_spellings_of_a_file(lab: Lab, manager: User, data: bytes) -> None:
    vocabulary_import(lab=lab, user=manager, data=data)
    assert ("diagnosis", "Tubular adenoma", "8211/0") in _terms(lab)
    assert ("organ", "Caecum", "C18.0") in _terms(lab)


def test_a_preview_writes_nothing(lab: Lab, manager: User) -> None:
    assert _load(lab, manager, FILE, is_preview=True).added == 2
    assert _terms(lab) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "row 1"),
        ("organ,Caecum,C18.0\n", "row 1"),
        ("field,term,system\norgan,Caecum,x\n", "row 1"),
        ("field,term,code\n", "no terms"),
        ("field,term,code\norgan,Caecum,C18.0\nstain,HE,\n", "row 3, column field"),
        ("field,term,code\norgan,,C18.0\n", "row 2, column term"),
        (f"field,term,code\norgan,{'x' * 81},\n", "row 2, column term"),
        (f"field,term,code\norgan,Caecum,{'1' * 21}\n", "row 2, column code"),
        ("field,term,code\norgan,=1+1,\n", "row 2, column term"),
        ("field,term,code\norgan,Caecum,C18.0\norgan,caecum,C18\n", "row 3, column code"),
        ("field,term,code\norgan,Colon, sigmoid,C18.7\n", "row 2"),
    ],
)
def test_a_problem_is_named_and_nothing_imported(
    lab: Lab, manager: User, text: str, problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        _load(lab, manager, text)
    assert _terms(lab) == []


def test_a_file_in_another_encoding_is_refused(lab: Lab, manager: User) -> None:
    data = "field,term\norgan,Magen\norgan,Zökum\n".encode("latin-1")
    with pytest.raises(InvalidInputError, match="row 3"):
        vocabulary_import(lab=lab, user=manager, data=data)


def test_size_is_bounded(lab: Lab, manager: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MAX_TERMS", 1)
    with pytest.raises(InvalidInputError, match="at most 1 terms"):
        _load(lab, manager, FILE)
    monkeypatch.setattr(services, "MAX_FILE_BYTES", 10)
    with pytest.raises(TooLargeInputError):
        _load(lab, manager, FILE)


def test_an_export_can_be_imported(lab: Lab, manager: User) -> None:
    _load(lab, manager, EXAMPLE)
    exported = vocabulary_csv(vocabulary_list(user=manager))
    assert _load(lab, manager, exported) == VocabularyImport(added=0, changed=0, unchanged=5)


def test_terms_are_deleted_by_id_and_by_field(lab: Lab, manager: User) -> None:
    _load(lab, manager, EXAMPLE)
    term = VocabularyTerm.objects.get(term="Rectum")
    assert vocabulary_delete(lab=lab, user=manager, ids=[term.pk]) == 1
    assert vocabulary_delete(lab=lab, user=manager, field="organ") == 2
    assert {field for field, _, _ in _terms(lab)} == {"diagnosis"}
    with pytest.raises(InvalidInputError):
        vocabulary_delete(lab=lab, user=manager)


def test_a_case_takes_the_spelling_of_the_vocabulary_and_the_term_of_a_code(
    lab: Lab, manager: User
) -> None:
    _load(lab, manager, FILE + "organ,Left kidney,C64.9\norgan,Right kidney,C64.9\n")
    first = case_create(lab=lab, user=manager, accession="A", organ="caecum", diagnosis="8211/0")
    assert (first.organ, first.diagnosis) == ("Caecum", "Tubular adenoma")
    second = case_create(lab=lab, user=manager, accession="B", organ="C64.9")
    assert second.organ == "C64.9", "two terms have this code"


def test_cases_are_found_by_code(lab: Lab, manager: User) -> None:
    case = case_create(lab=lab, user=manager, accession="A", organ="caecum")
    case_create(lab=lab, user=manager, accession="B", organ="Rectum")
    _load(lab, manager, FILE)
    for params in ({"organ": "c18.0"}, {"q": "C18.0"}, {"organ": "Caecum"}):
        assert [item.pk for item in cases_filtered(manager, params)] == [case.pk], params
    assert not cases_filtered(manager, {"diagnosis": "C18.0"})


def test_suggestions_are_words_of_cases_and_terms_of_ones_own_labs(
    lab: Lab, manager: User, annotator: User
) -> None:
    case_create(lab=lab, user=manager, accession="A", organ="Spleen")
    _load(lab, manager, FILE)
    other = Lab.objects.create(name="Another lab", slug="another-lab")
    VocabularyTerm.objects.create(lab=other, field="organ", term="Liver", code="C22.0")
    VocabularyTerm.objects.create(lab=other, field="organ", term="Spleen", code="C42.2")
    facets = case_facets(user=annotator, with_vocabulary=True)
    assert facets.organs == [CaseWord("Caecum", "C18.0"), CaseWord("Spleen")]
    assert case_facets(user=annotator).organs == [CaseWord("Spleen")]


def test_codes_of_all_words_take_one_query_of_the_labs_of_the_cases(
    lab: Lab, other_lab: Lab, manager: User, django_assert_num_queries: Any
) -> None:
    _load(lab, manager, FILE)
    VocabularyTerm.objects.create(lab=other_lab, field="organ", term="Rectum", code="C18.0")
    case = case_create(lab=lab, user=manager, accession="A-1", organ="Caecum")
    case_create(lab=lab, user=manager, accession="A-2", organ="Rectum")
    cases = case_list(user=manager)
    with django_assert_num_queries(2):
        assert list(case_search(cases, "c18.0 A-1 caecum")) == [case]
    assert list(case_search(cases, "C18.0")) == [case]
