"""The pages of the trash."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse

from portal.archive.models import Case, TrashEntry
from portal.archive.services.cases import case_create, case_delete
from portal.audit.naming import Named
from portal.audit.services import entry_note
from portal.labs.models import Lab, Membership, Role, User
from portal.labs.requests import CURRENT_LAB

PAGE = "/trash/?lab=north"


def test_the_page_lists_restores_and_purges(client: Client, manager: User, lab: Lab) -> None:
    client.force_login(manager)
    assert "Nothing here" in client.get(PAGE).content.decode()
    for name in ("S-1", "S-2"):
        case_delete(case=case_create(lab=lab, user=manager, accession=name), user=manager)
    text = client.get(PAGE).content.decode()
    assert text.index("S-2") < text.index("S-1")
    for name, act in (("S-1", "restore"), ("S-2", "purge")):
        entry = TrashEntry.objects.get(name=name)
        client.post(reverse(f"archive:trash_{act}", args=[entry.pk]))
    assert [case.accession for case in Case.all_objects.all()] == ["S-1"]
    assert Case.objects.exists()


def test_the_page_makes_few_queries_for_many_entries(
    client: Client, manager: User, lab: Lab, django_assert_max_num_queries: object
) -> None:
    client.force_login(manager)
    for number in range(12):
        case = case_create(lab=lab, user=manager, accession=f"S-{number}")
        case_delete(case=case, user=manager)
    with django_assert_max_num_queries(23):  # type: ignore[operator]
        client.get(PAGE)


def test_annotators_do_not_see_the_button_that_deletes_for_good(
    page: Client, annotator: User, lab: Lab
) -> None:
    case_delete(case=case_create(lab=lab, user=annotator, accession="S-1"), user=annotator)
    text = page.get(PAGE).content.decode()
    assert "Restore S-1" in text
    assert "for good" not in text.partition("<tbody>")[2]


def test_without_a_lab_in_the_address_the_chosen_lab_is_shown(
    client: Client, manager: User, lab: Lab
) -> None:
    first = Lab.objects.create(name="A first by name", slug="first")
    Membership.objects.create(user=manager, lab=first, role=Role.MANAGER)
    client.force_login(manager)
    session = client.session
    for chosen in (first, lab):
        session[CURRENT_LAB] = chosen.slug
        session.save()
        assert client.get("/trash/").context["lab"] == chosen


def test_the_audit_log_names_a_deleted_case(client: Client, manager: User, lab: Lab) -> None:
    case = case_create(lab=lab, user=manager, accession="S-1")
    case_delete(case=case, user=manager)
    entry_note("case.viewed", lab_ids=[lab.pk], case_id=case.pk)
    client.force_login(manager)
    rows = client.get("/lab/audit/", {"action": "case.viewed"}).context["rows"]
    assert [row.case for row in rows] == [Named("S-1 (deleted)")]
