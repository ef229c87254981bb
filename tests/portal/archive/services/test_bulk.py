"""Tags, organ, diagnosis and shares of many cases."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from portal.archive.models import Case, CaseShare, VocabularyTerm
from portal.archive.models.shares import today
from portal.archive.services.bulk import MAX_CASES, CaseDetails, cases_tag, cases_update
from portal.archive.services.cases import case_create
from portal.archive.services.sharing import share_offer, shares_offer
from portal.core.errors import InvalidInputError
from portal.core.models import Event
from portal.labs.models import Lab, Membership, Role, User

pytestmark = pytest.mark.django_db


@pytest.fixture
def three(lab: Lab, annotator: User) -> list[Case]:
    return [
        case_create(lab=lab, user=annotator, accession=f"T-{n}", tags=tags)
        for n, tags in enumerate(([], ["Old"], ["New", "old"]))
    ]


@pytest.fixture
def manager(lab: Lab) -> User:
    user = User.objects.create_user("bulk.manager@north.example", "x" * 12)
    Membership.objects.create(lab=lab, user=user, role=Role.MANAGER)
    return user


def test_tags_are_added_and_removed(three: list[Case], annotator: User) -> None:
    before = Event.objects.filter(name="case.changed").count()
    ids = [case.pk for case in three]
    result = cases_tag(user=annotator, case_ids=ids, add=["new"], remove=["OLD"])
    assert [case.tags for case in Case.objects.order_by("accession")] == [["new"], ["new"], ["New"]]
    assert result.changed == ids
    assert Event.objects.filter(name="case.changed").count() == before + 3
    again = cases_tag(user=annotator, case_ids=ids, add=["NEW"])
    assert (again.changed, again.unchanged, again.problems) == ([], 3, [])
    assert "\n#new\n" in Case.objects.get(accession="T-1").search_text


def test_a_case_that_cannot_be_tagged_does_not_stop_the_others(
    three: list[Case], annotator: User
) -> None:
    full, free, _ = three
    Case.objects.filter(pk=full.pk).update(tags=[str(n) for n in range(20)])
    other = Case.objects.create(lab=Lab.objects.create(name="East", slug="east"), accession="E-1")
    ids = [full.pk, other.pk, free.pk, uuid.uuid4()]
    result = cases_tag(user=annotator, case_ids=ids, add=["new"])
    assert result.changed == [free.pk]
    assert {(problem.accession, problem.code) for problem in result.problems} == {
        ("T-0", "too-many-tags"),
        ("", "not-found"),
    }
    other.refresh_from_db()
    assert other.tags == []


def test_a_viewer_tags_nothing(three: list[Case], lab: Lab, annotator: User) -> None:
    Membership.objects.filter(user=annotator).update(role=Role.VIEWER)
    result = cases_tag(user=annotator, case_ids=[three[0].pk], add=["new"])
    assert [problem.code for problem in result.problems] == ["forbidden"]


def test_tagging_costs_the_same_for_three_and_thirty(
    three: list[Case], lab: Lab, annotator: User, django_assert_max_num_queries: object
) -> None:
    counts = []
    for tag, number in (("a", 3), ("b", 30)):
        while Case.objects.count() < number:
            Case.objects.create(lab=lab, accession=f"N-{Case.objects.count()}")
        ids = list(Case.objects.values_list("pk", flat=True))
        with django_assert_max_num_queries(40) as queries:  # type: ignore[operator]
            cases_tag(user=annotator, case_ids=ids, add=[tag])
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_organ_and_diagnosis_are_set_and_what_was_there_is_given_back(
    three: list[Case], annotator: User
) -> None:
    Case.objects.filter(pk=three[1].pk).update(organ="Lung", diagnosis="Normal")
    emitted = Event.objects.filter(name="case.changed").count()
    ids = [case.pk for case in three]
    result = cases_update(user=annotator, case_ids=ids, organ=" Colon ")
    rows = Case.objects.order_by("accession").values_list("organ", "diagnosis")
    assert list(rows) == [("Colon", ""), ("Colon", "Normal"), ("Colon", "")]
    assert result.before == [
        CaseDetails([ids[0], ids[2]], {"organ": ""}),
        CaseDetails([ids[1]], {"organ": "Lung"}),
    ]
    assert Event.objects.filter(name="case.changed").count() == emitted + 3
    assert "\ncolon\n" in Case.objects.get(accession="T-1").search_text
    again = cases_update(user=annotator, case_ids=ids, organ="Colon")
    assert (again.changed, again.unchanged, again.before) == ([], 3, [])
    for row in result.before:
        cases_update(user=annotator, case_ids=row.cases, **row.details)
    assert list(rows.all()) == [("", ""), ("Lung", "Normal"), ("", "")]


def test_words_are_spelled_by_the_vocabulary_of_each_cases_lab(
    three: list[Case], lab: Lab, annotator: User
) -> None:
    east = Lab.objects.create(name="East", slug="east")
    Membership.objects.create(lab=east, user=annotator, role=Role.ANNOTATOR)
    theirs = Case.objects.create(lab=east, accession="E-1")
    VocabularyTerm.objects.create(lab=lab, field="organ", term="Caecum", code="C18.0")
    VocabularyTerm.objects.create(lab=east, field="organ", term="Cecum", code="C18.0")
    ids = [three[0].pk, theirs.pk]
    cases_update(user=annotator, case_ids=ids, organ="c18.0", diagnosis="adenoma")
    organs = Case.objects.filter(pk__in=ids).order_by("accession")
    assert list(organs.values_list("organ", "diagnosis")) == [
        ("Cecum", "adenoma"),
        ("Caecum", "adenoma"),
    ]


def test_organ_and_diagnosis_of_cases_that_one_may_not_change_stay(
    three: list[Case], lab: Lab, annotator: User
) -> None:
    theirs = Case.objects.create(lab=Lab.objects.create(name="East", slug="east"), accession="E-1")
    result = cases_update(user=annotator, case_ids=[theirs.pk, three[0].pk], organ="Colon")
    assert result.changed == [three[0].pk]
    assert [(problem.accession, problem.code) for problem in result.problems] == [("", "not-found")]
    Membership.objects.filter(user=annotator).update(role=Role.VIEWER)
    result = cases_update(user=annotator, case_ids=[three[1].pk], organ="Colon")
    assert [problem.code for problem in result.problems] == ["forbidden"]
    assert set(Case.objects.exclude(pk=three[0].pk).values_list("organ", flat=True)) == {""}


def test_words_of_many_cases_are_checked(annotator: User) -> None:
    for details, message in (({}, "at least one"), ({"organ": "x" * 81}, "at most 80")):
        with pytest.raises(InvalidInputError, match=message):
            cases_update(user=annotator, case_ids=[uuid.uuid4()], **details)


def test_organ_and_diagnosis_cost_the_same_for_three_and_thirty(
    three: list[Case], lab: Lab, annotator: User, django_assert_max_num_queries: object
) -> None:
    counts = []
    for organ, number in (("colon", 3), ("lung", 30)):
        while Case.objects.count() < number:
            Case.objects.create(lab=lab, accession=f"N-{Case.objects.count()}")
        ids = list(Case.objects.values_list("pk", flat=True))
        with django_assert_max_num_queries(40) as queries:  # type: ignore[operator]
            cases_update(user=annotator, case_ids=ids, organ=organ, diagnosis="normal")
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_a_selection_has_a_limit(annotator: User) -> None:
    with pytest.raises(InvalidInputError, match="1 to 1,000"):
        cases_tag(user=annotator, case_ids=[uuid.uuid4() for _ in range(MAX_CASES + 1)], add=["a"])
    with pytest.raises(InvalidInputError, match="tag"):
        cases_tag(user=annotator, case_ids=[uuid.uuid4()], add=[" "])


def test_cases_are_offered_once_each(three: list[Case], manager: User) -> None:
    east = Lab.objects.create(name="East", slug="east")
    until = today() + timedelta(days=9)
    share_offer(case=three[0], with_lab="east", until=until, user=manager)
    over = CaseShare.all_objects.create(
        case=three[1], lab=three[1].lab, with_lab=east, until=today() - timedelta(days=1)
    )
    ids = [case.pk for case in three]
    result = shares_offer(user=manager, case_ids=ids, with_lab="East", until=until)
    assert set(result.changed) == {three[1].pk, three[2].pk}
    assert [(problem.accession, problem.code) for problem in result.problems] == [
        ("T-0", "already-shared")
    ]
    over.refresh_from_db()
    assert over.ended_at is not None
    assert CaseShare.all_objects.filter(with_lab=east, ended_at=None).count() == 3
