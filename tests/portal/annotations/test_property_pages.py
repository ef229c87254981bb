"""The page of the properties that a lab keeps."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.annotations.models import Roi
from portal.annotations.properties import properties_require, types_etag
from portal.annotations.selectors.labels import property_types_of
from portal.annotations.services.properties import PropertyForm, property_type_add
from portal.audit.models import AuditEntry
from portal.core.errors import InvalidInputError
from portal.labs.models import Lab, User

PAGE = "/lab/properties/"
GRADE = {"name": "Grade", "kind": "choice", "choices": "1\n2\n\n3 ", "unit": ""}
SIZE = {"name": "Size", "kind": "number", "choices": "", "unit": "mm"}


def etag_of(lab: Lab) -> str:
    return types_etag(property_types_of(lab.pk))


def titles(lab: Lab) -> list[tuple[str, str, bool]]:
    return [(item.key, item.title, item.retired) for item in property_types_of(lab.pk)]


@pytest.fixture
def page_client(client: Client, manager: User, lab: Lab) -> Client:
    """The manager's browser; the lab keeps a grade and a size."""
    client.force_login(manager)
    for item in (GRADE, SIZE):
        assert client.post(PAGE, item | {"etag": etag_of(lab)}).status_code == 302
    return client


def change(client: Client, lab: Lab, do: str, key: str, **more: str) -> str:
    data = {"do": do, "key": key, "etag": etag_of(lab)} | more
    answer = client.post(f"{PAGE}change/", data, follow=True)
    assert answer.status_code in {200, 400}
    return answer.content.decode()


def test_a_manager_creates_renames_sorts_and_retires_property_types(
    page_client: Client, lab: Lab
) -> None:
    grade, size = property_types_of(lab.pk)
    assert (grade.choices, size.unit) == (("1", "2", "3"), "mm")
    page = change(
        page_client, lab, "save", "Size", **{**SIZE, "name": "Largest diameter", "unit": "cm"}
    )
    assert "“Size”" in page
    assert "Number, in cm" in page
    page = change(page_client, lab, "up", "Size")
    assert re.search(r'value="up"[^>]*Move Largest diameter up[^>]*autofocus', page)
    assert titles(lab) == [("Size", "Largest diameter", False), ("Grade", "Grade", False)]
    change(page_client, lab, "up", "Size")  # at the top it stays
    page = change(page_client, lab, "retire", "Size")
    assert "Bring back Largest diameter" in page
    assert titles(lab) == [("Size", "Largest diameter", True), ("Grade", "Grade", False)]
    properties_require({"Size": "quite large"}, property_types_of(lab.pk))  # checked no more
    change(page_client, lab, "return", "Size")
    with pytest.raises(InvalidInputError, match="a number"):
        properties_require({"Size": "quite large"}, property_types_of(lab.pk))
    noted = AuditEntry.objects.filter(action="properties.changed").count()
    assert noted == 6  # one did not change anything


def test_errors_are_shown_at_the_form_with_the_input(page_client: Client, lab: Lab) -> None:
    wrong = page_client.post(PAGE, SIZE | {"name": "grade", "etag": etag_of(lab)})
    assert wrong.status_code == 400
    assert "Grade is listed twice" in wrong.content.decode()
    assert 'value="mm"' in wrong.content.decode()
    assert page_client.post(PAGE, SIZE | {"name": ""}).status_code == 400
    page = change(page_client, lab, "save", "Grade", **{**GRADE, "choices": " "})
    assert "1 to 50 choices" in page
    assert re.search(r"<details[^>]* open>\s*<summary aria-label=.Change Grade", page)
    assert "up, down, retire" in change(page_client, lab, "explode", "Grade")
    stale = etag_of(lab)
    data = {"do": "retire", "key": "Grade", "etag": stale}
    page_client.post(f"{PAGE}change/", data)
    again = page_client.post(f"{PAGE}change/", data | {"key": "Size"}, follow=True)
    assert "Somebody else has changed" in again.content.decode()
    assert [retired for *_, retired in titles(lab)] == [True, False]
    unknown_key = page_client.post(
        f"{PAGE}change/", {"do": "up", "key": "None", "etag": etag_of(lab)}
    )
    assert unknown_key.status_code == 404


def test_members_read_it_without_forms(
    client: Client, viewer: User, manager: User, lab: Lab
) -> None:
    client.force_login(manager)
    assert "those added here are offered" in client.get(PAGE).content.decode()
    form = PropertyForm("<b>Grade</b>", "yes-no")
    property_type_add(lab=lab, user=manager, etag=etag_of(lab), data=form)
    client.force_login(viewer)
    text = client.get(PAGE).content.decode()
    assert "&lt;b&gt;Grade&lt;/b&gt;" in text
    assert "Add a property" not in text


def test_over_rest_a_change_of_old_ones_is_refused(lab: Lab, roi: Roi, manager: User) -> None:
    api = APIClient()
    api.force_login(manager)
    at = "/api/v1/labels/properties/"
    seen = api.get(at).json()
    types = [{"key": "Size", "kind": "number", "unit": "mm", "name": "Diameter"}]
    assert (
        api.put(at, {"properties": types, "etag": seen["etag"]}, format="json").status_code == 200
    )
    late = api.put(at, {"properties": [], "etag": seen["etag"]}, format="json")
    assert (late.status_code, late.json()["code"]) == (409, "properties-changed")
    now = api.get(at).json()["properties"]
    property_type = types[0] | {"choices": [], "retired": False}
    assert now == [property_type]
    read = {"If-Match": api.get(at)["ETag"]}
    assert api.put(at, {"properties": []}, format="json").status_code == 428
    emptied = api.put(at, {"properties": []}, format="json", headers=read)
    assert (emptied.json()["properties"], emptied.has_header("ETag")) == ([], True)
    stale = api.put(at, {"properties": types}, format="json", headers=read)
    assert (stale.status_code, stale.json()["current"]["properties"]) == (412, [])
    assert stale.json()["current_version"] == emptied["ETag"]


def test_the_page_needs_equal_queries_for_few_and_many(
    page_client: Client, lab: Lab, manager: User, django_assert_max_num_queries: object
) -> None:
    for at in range(30):
        form = PropertyForm(f"P{at}", "text")
        property_type_add(lab=lab, user=manager, etag=etag_of(lab), data=form)
    with django_assert_max_num_queries(8):  # type: ignore[operator]
        page_client.get(PAGE)
