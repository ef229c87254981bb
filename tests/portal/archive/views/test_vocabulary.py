"""Page of a lab's vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from portal.archive.models import VocabularyTerm
from portal.archive.services.vocabulary import EXAMPLE, MAX_FILE_BYTES, vocabulary_import
from portal.audit.models import AuditEntry
from portal.labs.models import Lab, User

pytestmark = pytest.mark.django_db
PAGE = "archive:vocabulary"


@pytest.fixture
def page(client: Client, manager: User, storage: Path) -> Client:
    client.force_login(manager)
    return client


def _sent(text: str) -> dict[str, SimpleUploadedFile]:
    return {"file": SimpleUploadedFile("terms.csv", text.encode("utf-8-sig"), "text/csv")}


def test_an_empty_vocabulary_says_what_to_do(page: Client) -> None:
    body = page.get(reverse(PAGE)).content.decode()
    assert "No vocabulary yet" in body
    assert "data:text/csv" in body


def test_a_file_is_counted_then_imported(page: Client, lab: Lab) -> None:
    counted = page.post(reverse(PAGE), _sent(EXAMPLE))
    assert "<strong>5</strong> new" in counted.content.decode()
    assert not VocabularyTerm.objects.exists()
    page.post(reverse(PAGE), {"text": counted.context["text"]})
    assert VocabularyTerm.objects.filter(lab=lab).count() == 5
    again = page.post(reverse(PAGE), _sent(EXAMPLE)).content.decode()
    assert "has all of these terms already" in again
    noted = AuditEntry.objects.get(action="vocabulary.imported")
    assert noted.details["added"] == 5


def test_a_problem_is_shown_with_its_row(page: Client) -> None:
    answer = page.post(reverse(PAGE), _sent("field,term\norgan,\n"))
    assert answer.status_code == 400
    assert "row 2, column term" in answer.content.decode()
    assert page.post(reverse(PAGE), {}).status_code == 400
    large = page.post(reverse(PAGE), _sent("field,term\n" + "x" * MAX_FILE_BYTES))
    assert large.status_code == 413


def test_terms_are_found_and_deleted(page: Client, lab: Lab, manager: User) -> None:
    vocabulary_import(lab=lab, user=manager, data=EXAMPLE.encode())
    response = page.get(reverse(PAGE), {"q": "c18", "field": "organ"})
    assert [item.term for item in response.context["page_obj"]] == ["Caecum", "Sigmoid colon"]
    assert "No term matches" in page.get(reverse(PAGE), {"q": "liver"}).content.decode()
    chosen = VocabularyTerm.objects.get(term="Caecum")
    page.post(reverse("archive:vocabulary_remove"), {"term": str(chosen.pk)})
    assert not VocabularyTerm.objects.filter(pk=chosen.pk).exists()
    page.post(reverse("archive:vocabulary_remove"), {"field": "organ"})
    assert {term.field for term in VocabularyTerm.objects.all()} == {"diagnosis"}
    nothing = page.post(reverse("archive:vocabulary_remove"), {}, follow=True)
    assert "Choose terms" in nothing.content.decode()
    assert page.post(reverse("archive:vocabulary_remove"), {"term": "x"}).status_code == 400


def test_the_form_of_a_case_and_the_filter_show_codes(
    page: Client, lab: Lab, manager: User
) -> None:
    vocabulary_import(lab=lab, user=manager, data=EXAMPLE.encode())
    form = page.get(reverse("archive:case_new")).content.decode()
    assert '<option value="Caecum" label="Caecum · C18.0">' in form
    assert "Caecum" not in page.get(reverse("archive:case_list")).content.decode()
    sent = {"lab": lab.pk, "accession": "S1", "organ": "C18.0", "sex": "unknown"}
    page.post(reverse("archive:case_new"), sent | {"age_band": "unknown"})
    cases = page.get(reverse("archive:case_list"), {"organ": "c18.0"}).content.decode()
    assert '<option value="Caecum" >Caecum · C18.0</option>' in cases
    assert "S1" in cases


def test_the_number_of_queries_does_not_grow_with_the_terms(
    page: Client, lab: Lab, manager: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    vocabulary_import(lab=lab, user=manager, data=EXAMPLE.encode())
    page.get(reverse(PAGE))
    with django_assert_num_queries(11):
        page.get(reverse(PAGE))
