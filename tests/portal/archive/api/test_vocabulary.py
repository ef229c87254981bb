"""``/api/v1/vocabulary/``."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from portal.archive.models import VocabularyTerm
from portal.archive.services.vocabulary import EXAMPLE, vocabulary_import
from portal.labs.models import Lab, User

pytestmark = pytest.mark.django_db
URL = "/api/v1/vocabulary/"


def _client(user: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client


def test_a_file_is_imported(lab: Lab, manager: User) -> None:
    api, data = _client(manager), EXAMPLE.encode("utf-8-sig")
    counted = api.post(f"{URL}import/?dry_run=true", data, content_type="text/csv")
    assert counted.json() == {"added": 5, "changed": 0, "unchanged": 0}
    assert not VocabularyTerm.objects.exists()
    done = api.post(f"{URL}import/?lab={lab.pk}", data, content_type="text/csv; charset=utf-8")
    assert done.json() == counted.json()
    assert VocabularyTerm.objects.filter(lab=lab).count() == 5


def test_a_problem_names_row_and_column(lab: Lab, manager: User) -> None:
    answer = _client(manager).post(
        f"{URL}import/", b"field,term\norgan,\n", content_type="text/csv"
    )
    assert answer.status_code == 400
    assert (answer.json()["row"], answer.json()["column"]) == (2, "term")
    wrong_type = _client(manager).post(f"{URL}import/", {}, format="json")
    assert wrong_type.status_code == 415


def test_members_list_and_download_terms(lab: Lab, manager: User, viewer: User) -> None:
    vocabulary_import(lab=lab, user=manager, data=EXAMPLE.encode())
    api = _client(viewer)
    body = api.get(URL, {"field": "organ", "q": "colon"}).json()["results"]
    assert [(finding["term"], finding["code"]) for finding in body] == [("Sigmoid colon", "C18.7")]
    text = api.get(f"{URL}file/").content.decode()
    assert text.startswith("\ufefffield,term,code")


def test_managers_delete_terms(lab: Lab, manager: User) -> None:
    vocabulary_import(lab=lab, user=manager, data=EXAMPLE.encode())
    api, term = _client(manager), VocabularyTerm.objects.get(term="Rectum")
    assert api.delete(f"{URL}{term.pk}/").status_code == 204
    assert api.post(f"{URL}remove/", {"of_field": "organ"}, format="json").json() == {"deleted": 2}
    assert api.post(f"{URL}remove/", {}, format="json").status_code == 400
