"""A token for one lab reaches no other, whatever its owner may do there."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from portal.archive.services.cases import case_create
from portal.audit.models import AuditEntry
from portal.audit.services import entry_note
from portal.core.errors import NotFoundError
from portal.labs.models import Lab, Membership, Role, TokenScope, User
from portal.labs.services.members import member_add, member_remove
from portal.labs.services.tokens import token_create
from tests.clients import client_of

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def both(lab: Lab, other_lab: Lab, manager: User) -> User:
    member_add(other_lab, user=manager, role=Role.MANAGER)
    for where in (lab, other_lab):
        case_create(lab=where, user=manager, accession=f"{where.slug}-1")
    return manager


def token_for(user: User, lab: Lab | None) -> tuple[Any, Client]:
    token, secret = token_create(user, name="x", scope=TokenScope.WRITE, expires_in=DAY, lab=lab)
    return token, Client(headers={"Authorization": f"Bearer {secret}"})


def accessions(client: Client) -> list[str]:
    return sorted(row["accession"] for row in client.get("/api/v1/cases/").json()["results"])


def test_a_token_of_one_lab_reads_and_writes_only_there(
    both: User, lab: Lab, other_lab: Lab
) -> None:
    _, narrow = token_for(both, lab)
    _, wide = token_for(both, None)
    assert accessions(narrow) == ["north-1"]
    assert accessions(wide) == ["north-1", "south-1"]
    assert [
        membership["lab"]["slug"] for membership in narrow.get("/api/v1/me/").json()["memberships"]
    ] == ["north"]
    sent = {"accession": "N-2", "lab": str(other_lab.pk)}
    url, kind = "/api/v1/cases/", "application/json"
    assert narrow.post(url, sent, content_type=kind).status_code == 404
    assert wide.post(url, sent, content_type=kind).status_code == 201
    assert narrow.post(url, {"accession": "N-3"}, content_type=kind).status_code == 201
    there = wide.get("/api/v1/cases/?accession=south-1").json()["results"][0]["id"]
    assert narrow.get(f"/api/v1/cases/{there}/").status_code == 404
    assert narrow.get("/api/v1/labels/").status_code == 200
    assert "south" not in str(narrow.get("/api/v1/labels/").json()).lower()


def test_a_token_is_created_only_for_labs_of_its_owner(
    lab: Lab, other_lab: Lab, manager: User
) -> None:
    with pytest.raises(NotFoundError):
        token_for(manager, other_lab)
    client = client_of(manager)
    sent = {"name": "x", "lab": str(other_lab.pk)}
    answer = client.post("/api/v1/tokens/", sent, content_type="application/json")
    assert answer.status_code == 404
    sent["lab"] = str(lab.pk)
    answer = client.post("/api/v1/tokens/", sent, content_type="application/json")
    assert answer.json()["lab"] == str(lab.pk)


def test_leaving_a_lab_ends_the_tokens_that_reach_it(both: User, lab: Lab, other_lab: Lab) -> None:
    tokens = [token_for(both, where)[0] for where in (lab, other_lab, None)]
    leaving = Membership.objects.get(user=both, lab=other_lab)
    member_add(other_lab, user=User.objects.create_user("m@x.example"), role=Role.MANAGER)
    member_remove(leaving)
    for token in tokens:
        token.refresh_from_db()
    assert [token.is_live for token in tokens] == [True, False, False]


def test_the_page_offers_ones_labs(both: User, other_lab: Lab) -> None:
    client = client_of(both)
    sent = {"name": "LIS", "scope": "read", "days": "90", "lab": str(other_lab.pk)}
    text = client.post("/account/tokens/", sent).content.decode()
    assert "<td>South</td>" in text


def test_the_owner_of_a_token_for_one_lab_sees_only_the_log_of_that_lab(
    both: User, lab: Lab, other_lab: Lab
) -> None:
    entry_note("case.viewed", lab_ids=[lab.pk, other_lab.pk], actor_id=both.pk)
    both.only_lab_id = lab.pk
    seen = AuditEntry.objects.visible_to(both).values_list("lab_id", flat=True)
    assert set(seen) == {lab.pk}
