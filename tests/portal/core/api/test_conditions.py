"""If-Match and ETag where others write at the same moment, or headers look otherwise."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection, connections

from portal.annotations.models import ReviewRules
from portal.archive.api.cases import CaseViewSet
from portal.archive.models import Case
from portal.archive.services.cases import case_create
from portal.core.api.etags import tags_sent
from portal.labs.models import Lab, User
from portal.review.api import reviews

pytestmark = pytest.mark.django_db


@pytest.fixture
def case(lab: Lab, annotator: User) -> Case:
    return case_create(lab=lab, user=annotator, accession="S-1", organ="colon")


def place(case: Case) -> str:
    return f"/api/v1/cases/{case.pk}/"


def change(api: Any, case: Case, tag: str, **fields: str) -> Any:
    return api.patch(place(case), fields, headers={"If-Match": tag})


def test_the_etag_of_a_change_excludes_a_later_write(
    api: Any, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = CaseViewSet.finalize_response

    def late(view: Any, *args: Any, **kwargs: Any) -> Any:
        Case.objects.filter(pk=case.pk).update(organ="skin")
        return answered(view, *args, **kwargs)

    monkeypatch.setattr(CaseViewSet, "finalize_response", late)
    mine = change(api, case, "*", organ="lung")
    monkeypatch.undo()
    assert mine.json()["organ"] == "lung"
    again = change(api, case, mine["ETag"], diagnosis="Adenoma")
    assert (again.status_code, again.json()["current"]["organ"]) == (412, "skin")


@pytest.mark.parametrize("form", ["{}", "W/{}", '"another", {}', 'W/"another",W/{}'])
def test_tags_are_found_in_a_list_and_weakened_on_their_way(
    api: Any, case: Case, form: str
) -> None:
    tag = api.get(place(case))["ETag"]
    assert change(api, case, form.format(tag), organ="lung").status_code == 200
    assert change(api, case, form.format(tag), organ="skin").status_code == 412


@pytest.mark.parametrize("header", ["", ",", '""', "W/", '"\xe4"', "*, *", '"' * 5000])
def test_an_invalid_etag_matches_nothing(api: Any, case: Case, header: str) -> None:
    assert change(api, case, header, organ="lung").status_code == 412
    assert tags_sent(header) is not None


def test_a_concurrently_deleted_object_is_not_found(
    api: Any, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = api.get(place(case))["ETag"]
    recorded = CaseViewSet.register

    def late(view: Any, row: Case) -> Any:
        Case.all_objects.filter(pk=row.pk).delete()
        return recorded(view, row)

    monkeypatch.setattr(CaseViewSet, "register", late)
    assert change(api, case, tag, organ="lung").status_code == 404


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(
    connection.vendor == "sqlite", reason="there a transaction is the only writer anyway"
)
def test_one_of_two_who_create_settings_concurrently_sees_those_of_the_other(
    lab: Lab, manager: User, api_as: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, both, result = f"/api/v1/review-rules/{lab.pk}/", threading.Barrier(2), list[int]()
    tag = api_as(manager).get(at)["ETag"]
    write = reviews.review_rules_set

    def slow(**values: Any) -> ReviewRules:
        with suppress(threading.BrokenBarrierError):  # the other is kept waiting, as it should be
            both.wait(timeout=1)
        return write(**values)

    monkeypatch.setattr(reviews, "review_rules_set", slow)

    def send(may: bool) -> None:
        sent = {"may_judge_own": may}
        result.append(api_as(manager).put(at, sent, headers={"If-Match": tag}).status_code)
        connections.close_all()

    threads = [threading.Thread(target=send, args=(may,)) for may in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result) == [200, 412]
