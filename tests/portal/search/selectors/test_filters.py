"""Filters narrow the search itself, and the counts say what each of them leaves."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from portal.annotations.models import Roi
from portal.archive.models import Case
from portal.archive.services.cases import case_create
from portal.embeddings.indexes import Scope
from portal.embeddings.models import Encoder
from portal.embeddings.selectors.encoders import encoder_default
from portal.embeddings.services.indexes import index_build_submit
from portal.search.selectors.filters import CaseScope, Filters
from portal.search.selectors.similar_cases import SimilarQuery, similar_search


def case(world: Any, accession: Any, **fields: Any) -> Any:
    return case_create(lab=world.lab, user=world.user, accession=accession, **fields)


@pytest.fixture
def archive(world: Any) -> Any:
    """Four cases that differ in everything a search can be narrowed by."""
    tumour, normal = world.labels("Tumour", "Normal")
    query_case = case(
        world, "A1", patient_key="p1", organ="Colon", diagnosis="Adenoma", tags=["HE"]
    )
    same = case(world, "A2", patient_key="p1", organ="colon", diagnosis="Adenoma")
    lung = case(world, "A3", patient_key="p2", organ="Lung", diagnosis="Carcinoma", tags=["he"])
    bare = case(world, "A4", patient_key="p3")
    rois = {}
    for i, (name, where, label) in enumerate(
        [
            ("query", query_case, None),
            ("own", query_case, tumour),
            ("same", same, normal),
            ("lung", lung, tumour),
            ("lung 2", lung, None),
            ("bare", bare, normal),
        ]
    ):
        canvas = world.canvas(where, kind="slide" if where is lung else "still")
        if where is lung:
            world.scanned(canvas, *(("aperio", "PAS") if name == "lung" else ("hamamatsu", "H&E")))
        rois[name] = world.roi(canvas, 20 * i, 100, name=name, label=label)
    world.run_jobs()
    Roi.objects.filter(name="bare").update(
        created_at=datetime(2020, 5, 17, 12, tzinfo=UTC), review_state="accepted"
    )
    return rois


def search(world: Any, rois: Any, **options: Any) -> Any:
    roi = Roi.objects.select_related("canvas__case").get(pk=rois["query"].pk)
    encoder = encoder_default()
    assert encoder is not None
    query = SimilarQuery(roi=roi, encoder=encoder, **options)
    return similar_search(world.user, query)


def names(result: Any) -> Any:
    return sorted(hit.roi.name for hit in result.hits)


@pytest.mark.parametrize("is_indexed", [False, True])
def test_every_filter_is_part_of_the_search(world: Any, archive: Any, is_indexed: Any) -> None:
    if is_indexed:
        index_build_submit(scope=Scope(Encoder.objects.get(), world.lab.pk))
        world.run_jobs()
    label = archive["lung"].label
    day = datetime(2020, 5, 17, tzinfo=UTC).date()
    today = timezone.localdate()
    for filters, expected in [
        (Filters(), ["bare", "lung", "lung 2"]),
        (Filters(organ="LUNG"), ["lung", "lung 2"]),
        (Filters(diagnosis="carcinoma"), ["lung", "lung 2"]),
        (Filters(tag="HE"), ["lung", "lung 2"]),
        (Filters(tag="H"), []),
        (Filters(scanner="Aperio"), ["lung"]),
        (Filters(stain="pas"), ["lung"]),
        (Filters(stain="PA"), []),
        (Filters(stain="PAS", scanner="hamamatsu"), []),
        (Filters(stain="H&E", scanner="hamamatsu", organ="Lung"), ["lung 2"]),
        (Filters(kind="still"), ["bare"]),
        (Filters(label_id=label.pk), ["lung"]),
        (Filters(label_id=label.pk, organ="Lung", kind="slide"), ["lung"]),
        (Filters(label_id=label.pk, kind="still"), []),
        (Filters(review_state="accepted"), ["bare"]),
        (Filters(since=day, until=day), ["bare"]),
        (Filters(since=day + timedelta(1)), ["lung", "lung 2"]),
        (Filters(until=today), ["bare", "lung", "lung 2"]),
        (Filters(until=date.max), ["bare", "lung", "lung 2"]),
        (Filters(case=CaseScope.ONLY), ["own"]),
        (Filters(case=CaseScope.OTHERS), ["bare", "lung", "lung 2"]),
    ]:
        assert names(search(world, archive, filters=filters)) == expected, filters
    others = Filters(case=CaseScope.OTHERS)
    hits = search(world, archive, filters=others, exclude_same_patient=False)
    assert names(hits) == ["bare", "lung", "lung 2", "same"]


def test_a_filter_applies_before_the_top_k(world: Any, archive: Any) -> None:
    assert names(search(world, archive, k=1, filters=Filters(review_state="accepted"))) == ["bare"]


def counts(result: Any, facet: Any) -> Any:
    return {value.name: value.count for value in result.facets.values[facet]}


def test_the_searched_set_is_counted(world: Any, archive: Any) -> None:
    result = search(world, archive, with_facets=True)
    assert (result.facets.regions, result.facets.cases) == (3, 2)
    assert counts(result, "organ") == {"Lung": 2}
    assert counts(result, "label") == {"Tumour": 1, "Normal": 1}
    assert counts(result, "scanner") == {"Aperio": 1, "Hamamatsu": 1}
    assert counts(result, "stain") == {"PAS": 1, "H&E": 1}
    assert counts(result, "review_state") == {"Draft": 2, "Accepted": 1}
    everyone = search(world, archive, with_facets=True, exclude_same_patient=False)
    assert counts(everyone, "organ") == {"Colon": 2, "Lung": 2}, "whatever the letters' case"
    assert counts(everyone, "tag") == {"HE": 3}


FILTERS = (
    Filters(),
    Filters(organ="lung"),
    Filters(stain="pas"),
    Filters(kind="still"),
    Filters(diagnosis="adenoma", kind="still"),
    Filters(case=CaseScope.ONLY),
    Filters(case=CaseScope.OTHERS, kind="still"),
    Filters(until=datetime(2020, 5, 17, tzinfo=UTC).date()),
    Filters(since=datetime(2021, 1, 1, tzinfo=UTC).date()),
)


@pytest.mark.slow
@pytest.mark.parametrize("same", [False, True])
def test_a_facet_count_equals_the_search_with_that_value(
    world: Any, archive: Any, same: Any
) -> None:
    """Against the search itself, value by value."""
    options = {"exclude_same_patient": not same, "k": 200}
    for filters in FILTERS:
        facets = search(world, archive, filters=filters, with_facets=True, **options).facets
        hit_names = names(search(world, archive, filters=filters, **options))
        assert facets.regions == len(hit_names), filters
        requested = {name: getattr(filters, name) for name in Filters.__dataclass_fields__}
        for facet, value in ((key, row) for key, all_ in facets.values.items() for row in all_):
            sent = {"label_id" if facet == "label" else facet: value.value}
            if facet == "date":
                sent = {"since": value.since, "until": value.until}
            elif facet == "case":
                sent = {"case": CaseScope(value.value)}
            left = search(world, archive, filters=Filters(**requested | sent), **options)
            assert len(left.hits) == value.count, (filters, facet, value)
            if value.count and facet != "case" and not any(requested[name] for name in sent):
                cases = {hit.roi.canvas.case_id for hit in left.hits}
                rate = facets.base_rate(facet, value.value.lower())
                assert rate == (len(cases), facets.cases), (filters, facet, value)


def test_facets_exclude_the_trash_and_other_labs(
    world: Any, archive: Any, other_lab: Any, stranger: Any
) -> None:
    theirs = world.canvas(world.case("B1", organ="Lung", lab=other_lab))
    world.scanned(theirs, "leica", "p53")
    world.embedded(theirs, 100, 100, user=stranger)
    before = search(world, archive, with_facets=True).facets
    assert before.regions == 3
    assert {row.name for row in before.values["stain"]} == {"PAS", "H&E"}
    assert {row.name: row.count for row in before.values["case"]} == {
        "Other cases": 3,
        "This case": 1,
    }
    Case.objects.get(accession="A4").delete()
    assert search(world, archive, with_facets=True).facets.regions == 2


def test_cases_are_counted_with_and_without_the_patient(world: Any, archive: Any) -> Any:
    def cases(**options: Any) -> Any:
        return counts(search(world, archive, with_facets=True, **options), "case")

    assert cases() == {"Other cases": 3, "This case": 1}, "the patient's other case is of neither"
    assert cases(exclude_same_patient=False) == {"Other cases": 4, "This case": 1}
    assert cases(filters=Filters(case=CaseScope.ONLY)) == {"Other cases": 3, "This case": 1}
    assert cases(filters=Filters(stain="PAS")) == {"Other cases": 1}


def test_days_are_counted_in_spans_that_overlap(world: Any, archive: Any) -> None:
    today = timezone.localdate()
    old = {"Before 2022": 1} if today.year >= 2026 else {"2020": 1}
    new = {"Last 7 days": 2, "Last 30 days": 2, str(today.year): 2}
    hits = search(world, archive, with_facets=True)
    assert counts(hits, "date") == new | old
    assert [row.name for row in hits.facets.values["date"]] == [*new, *old]
    day = date(2020, 5, 17)
    requested = search(world, archive, with_facets=True, filters=Filters(since=day, until=day))
    assert counts(requested, "date") == {"2020-05-17": 1} | new | old, "one's own days are not lost"
    assert [row.name for row in requested.facets.values["date"] if row.is_chosen] == ["2020-05-17"]
    none = search(world, archive, with_facets=True, filters=Filters(until=date(2001, 1, 1)))
    assert counts(none, "date")["Until 2001-01-01"] == 0
    assert none.facets.regions == 0


def test_counting_takes_three_queries(world: Any, archive: Any) -> None:
    query = search(world, archive).query
    counted = {}
    for with_facets in (False, True):
        options = SimilarQuery(roi=query.roi, encoder=query.encoder, with_facets=with_facets)
        with CaptureQueriesContext(connection) as seen:
            similar_search(world.user, options)
        counted[with_facets] = len(seen)
    assert counted[True] - counted[False] == 3
