"""Search compared with an exhaustive search over current data, at every step."""

from __future__ import annotations

import random
import shutil
import unicodedata
from datetime import timedelta

import numpy as np
import pytest
from django.utils import timezone

from portal.annotations.models import Label, LabelSet, Roi
from portal.annotations.services.rois import roi_delete, roi_restore, roi_update
from portal.archive.models import CanvasKind
from portal.archive.services.cases import case_create
from portal.core.errors import ConflictError, InvalidInputError
from portal.embeddings.indexes import Scope
from portal.embeddings.models import Embedding, Encoder, IndexSnapshot
from portal.embeddings.selectors.encoders import encoder_default
from portal.embeddings.selectors.index_files.readers import readers
from portal.embeddings.selectors.index_files.snapshots import snapshot_latest
from portal.embeddings.services.indexes import index_build_submit
from portal.search.selectors.filters import Filters
from portal.search.selectors.queries import NotEmbeddedError
from portal.search.selectors.similar_cases import SimilarQuery, similar_search
from tests.portal.embedded_rois import box_vector, square


def search(world, roi, **options):
    roi = Roi.objects.select_related("canvas__case").get(pk=roi.pk)
    query = SimilarQuery(roi=roi, encoder=encoder_default(), **options)
    return similar_search(world.user, query)


def hit_ids(result):
    return [hit.roi.pk for hit in result.hits]


def build_index(world):
    scope = Scope(Encoder.objects.get(), world.lab.pk)
    index_build_submit(scope=scope)
    world.run_jobs()
    return snapshot_latest(scope)


def test_nearest_first_with_distances(world):
    query = world.embedded(world.canvas(world.case("A1", "p1")), 100, 100)
    other = world.canvas(world.case("A2", "p2"))
    far, near = world.embedded(other, 160, 100), world.embedded(other, 130, 100)
    result = search(world, query)
    assert hit_ids(result) == [near.pk, far.pk]
    assert [hit.distance for hit in result.hits] == [30.0, 60.0]
    assert [hit.rank for hit in result.hits] == [1, 2]


@pytest.mark.parametrize("is_indexed", [False, True])
def test_the_same_patient_is_left_out_by_default(world, is_indexed):
    first, second = world.case("A1", "p1"), world.case("A2", "p1")
    query = world.embedded(world.canvas(first), 100, 100)
    sibling = world.embedded(world.canvas(second), 101, 100)
    stranger = world.embedded(world.canvas(world.case("A3", "p2")), 300, 300)
    if is_indexed:
        build_index(world)
    assert hit_ids(search(world, query)) == [stranger.pk]
    assert hit_ids(search(world, query, k=1)) == [stranger.pk], "no cut before the exclusion"
    assert hit_ids(search(world, query, exclude_same_patient=False)) == [sibling.pk, stranger.pk]


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_patient_is_the_same_in_every_spelling_of_the_key(world, is_indexed):
    composed = unicodedata.normalize("NFC", "Zoë-Müller-1")
    spellings = (
        unicodedata.normalize("NFD", composed),
        composed.replace("-M", "-\u200bM"),
        f"\ufeff {composed}\u00a0",
    )
    assert len({composed, *spellings}) == 4
    cases = [
        case_create(lab=world.lab, user=world.user, accession=f"A{n}", patient_key=key)
        for n, key in enumerate((composed, *spellings))
    ]
    query = world.embedded(world.canvas(cases[0]), 100, 100)
    same = [
        world.embedded(world.canvas(case), 101 + n, 100)
        for n, case in enumerate((*cases[1:], world.case("A4", spellings[0])))
    ]
    stranger = world.embedded(world.canvas(world.case("A5", "Zoe-Muller-1")), 300, 300)
    if is_indexed:
        build_index(world)
    assert hit_ids(search(world, query)) == [stranger.pk]
    for row in same:
        assert hit_ids(search(world, row)) == [stranger.pk]
    all_cases = hit_ids(search(world, query, exclude_same_patient=False))
    assert all_cases == [*(row.pk for row in same), stranger.pk]


def test_cases_without_a_patient_are_not_one_patient(world):
    query = world.embedded(world.canvas(world.case("A1")), 100, 100)
    same_case = world.embedded(world.canvas(query.canvas.case), 101, 100)
    other = world.embedded(world.canvas(world.case("A2")), 102, 100)
    assert hit_ids(search(world, query)) == [other.pk]
    assert same_case.pk in hit_ids(search(world, query, exclude_same_patient=False))


def test_another_labs_rois_are_never_found(world, other_lab, stranger):
    query = world.embedded(world.canvas(world.case("A1")), 100, 100)
    theirs = world.canvas(world.case("B1", lab=other_lab))
    world.embedded(theirs, 100, 100, user=stranger)
    assert hit_ids(search(world, query)) == []


@pytest.mark.parametrize("is_indexed", [False, True])
def test_ties_are_ordered_by_embedding(world, is_indexed):
    query = world.embedded(world.canvas(world.case("A1")), 100, 100)
    other = world.canvas(world.case("A2"))
    same = [world.embedded(other, 110, 100) for _ in range(5)]
    if is_indexed:
        build_index(world)
    same += [world.embedded(other, 90, 100) for _ in range(3)]
    assert hit_ids(search(world, query)) == [roi.pk for roi in same]
    assert hit_ids(search(world, query, k=6)) == [roi.pk for roi in same[:6]]


def test_a_new_roi_is_found_before_the_index_is_built_again(world):
    query = world.embedded(world.canvas(world.case("A1")), 100, 100)
    other = world.canvas(world.case("A2"))
    old = world.embedded(other, 150, 100)
    snapshot = build_index(world)
    new = world.embedded(other, 120, 100)
    result = search(world, query)
    assert hit_ids(result) == [new.pk, old.pk]
    assert (result.index.version, result.index.snapshot_id) == (1, snapshot.pk)
    assert (result.index.in_file, result.index.newer) == (2, 1)
    assert result.index.last_embedding_id == Embedding.objects.latest("pk").pk


def test_a_deleted_roi_is_masked_at_once_and_found_at_once_when_restored(world, encoder):
    query = world.embedded(world.canvas(world.case("A1")), 100, 100)
    other = world.embedded(world.canvas(world.case("A2")), 150, 100)
    build_index(world)
    roi_delete(roi=other, user=world.user, expected_version=1)
    result = search(world, query)
    assert (hit_ids(result), result.index.masked) == ([], 1)
    calls = encoder.calls
    roi_restore(roi=other, user=world.user)
    assert hit_ids(search(world, query)) == [other.pk]
    world.run_jobs()
    assert encoder.calls == calls, "the vector of the same outline is not computed again"


def test_an_outline_replaced_by_a_machine_whose_clock_is_hours_behind_is_masked(world, monkeypatch):
    query = world.embedded(world.canvas(world.case("A1")), 100, 100)
    other = world.embedded(world.canvas(world.case("A2")), 150, 100)
    build_index(world)
    real = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: real() - timedelta(hours=3))
    changes = {"geometry": square(300, 300)}
    roi_update(roi=other, user=world.user, expected_version=1, changes=changes)
    result = search(world, query)
    assert (hit_ids(result), result.index.masked) == ([], 1)


def test_embeddings_of_a_deleted_canvas_are_replaced_by_the_next_nearest(world):
    """Vectors of deleted rows in the index file do not reduce the number of hits."""
    query = world.embedded(world.canvas(world.case("A1")), 100, 100)
    doomed, other = world.canvas(world.case("A2")), world.canvas(world.case("A3"))
    for left in (110, 120, 130):
        world.embedded(doomed, left, 100)
    stored = [world.embedded(other, left, 100) for left in (140, 150)]
    build_index(world)
    doomed.delete()
    assert hit_ids(search(world, query, k=2)) == [roi.pk for roi in stored]
    assert hit_ids(search(world, query, k=20)) == [roi.pk for roi in stored]


def test_a_redrawn_roi_is_not_found_by_its_old_outline(world):
    query = world.embedded(world.canvas(world.case("A1")), 100, 100)
    other = world.embedded(world.canvas(world.case("A2")), 150, 100)
    build_index(world)
    changes = {"geometry": square(300, 100)}
    roi_update(roi=other, user=world.user, expected_version=1, changes=changes)
    assert hit_ids(search(world, query)) == []
    world.run_jobs()
    assert [hit.distance for hit in search(world, query).hits] == [200.0]


def test_a_new_name_or_label_needs_no_new_embedding(world, encoder):
    query = world.embedded(world.canvas(world.case("A1")), 100, 100)
    other = world.embedded(world.canvas(world.case("A2")), 150, 100)
    calls = encoder.calls
    roi_update(roi=other, user=world.user, expected_version=1, changes={"name": "gland"})
    world.run_jobs()
    assert encoder.calls == calls
    assert hit_ids(search(world, query)) == [other.pk]


def test_filters_are_part_of_the_search(world):
    labels = LabelSet.objects.create(lab=world.lab, name="Findings")
    tumour = Label.objects.create(lab=world.lab, label_set=labels, name="Tumour")
    query = world.embedded(world.canvas(world.case("A1")), 100, 100)
    colon = world.canvas(world.case("A2", organ="Colon"))
    near = [world.embedded(colon, 100 + i, 100) for i in range(4)]
    lung = world.canvas(world.case("A3", organ="Lung"), kind=CanvasKind.SLIDE)
    far = world.embedded(lung, 300, 300, label=tumour)
    for is_indexed in (False, True):
        if is_indexed:
            build_index(world)
        assert hit_ids(search(world, query, k=1, filters=Filters(organ="lung"))) == [far.pk]
        assert hit_ids(search(world, query, k=1, filters=Filters(label_id=tumour.pk))) == [far.pk]
        assert hit_ids(search(world, query, k=1, filters=Filters(kind="slide"))) == [far.pk]
        assert hit_ids(search(world, query, filters=Filters(organ="Colon"))) == [
            roi.pk for roi in near
        ]
        assert (
            hit_ids(search(world, query, filters=Filters(organ="Colon", label_id=tumour.pk))) == []
        )


def test_an_roi_without_a_vector_or_deleted_is_a_conflict(world):
    query = world.embedded(world.canvas(world.case("A1")), 100, 100)
    fresh = world.roi(query.canvas, 200, 200)
    with pytest.raises(NotEmbeddedError):
        search(world, fresh)
    roi_delete(roi=query, user=world.user, expected_version=1)
    with pytest.raises(ConflictError, match="deleted"):
        search(world, query)


@pytest.mark.parametrize("k", [0, 201])
def test_an_invalid_number_of_results_is_a_bad_request(world, k):
    query = world.embedded(world.canvas(world.case("A1")), 100, 100)
    with pytest.raises(InvalidInputError, match="k:"):
        search(world, query, k=k)


def test_a_lost_index_file_makes_the_search_slower_but_not_wrong(world):
    query = world.embedded(world.canvas(world.case("A1")), 100, 100)
    other = world.embedded(world.canvas(world.case("A2")), 150, 100)
    snapshot = build_index(world)
    assert search(world, query).index.version == 1
    shutil.rmtree(world.storage / snapshot.path)
    result = search(world, query)
    assert (hit_ids(result), result.index.version) == ([other.pk], 0)
    readers.__init__()
    assert hit_ids(search(world, query)) == [other.pk]


def test_a_case_of_many_regions_is_not_read_entirely(world):
    """Two cases are requested, so the first ranking has 8 regions, all of the only other case."""
    query = world.roi(world.canvas(world.case("A1", "p1")), 100, 100)
    crowded = world.canvas(world.case("A2", "p2"))
    for i in range(12):
        world.roi(crowded, 100, 110 + i)
    world.run_jobs()
    (hit,) = search(world, query, k=2, by_case=True).hits
    assert len(hit.also) == 7
    far = world.embedded(world.canvas(world.case("A3", "p3")), 300, 300)
    near, last = search(world, query, k=2, by_case=True).hits
    assert (len(near.also), last.roi.pk) == (11, far.pk)


def test_the_number_of_queries_does_not_grow(world, django_assert_max_num_queries):
    query = world.embedded(world.canvas(world.case("A1", "p1")), 100, 100)
    other = world.canvas(world.case("A2", "p2"))
    for i in range(30):
        world.roi(other, i * 10, 100)
    world.run_jobs()
    build_index(world)
    for i in range(10):
        world.roi(other, i * 10, 200)
    world.run_jobs()
    roi = Roi.objects.select_related("canvas__case").get(pk=query.pk)
    requested = SimilarQuery(roi=roi, encoder=encoder_default(), k=40)
    with django_assert_max_num_queries(11):  # one of them reads the ten new vectors, once
        assert len(similar_search(world.user, requested).hits) == 40
    with django_assert_max_num_queries(10):
        hits = similar_search(world.user, requested).hits
        _ = [(h.roi.label, h.roi.canvas.case.accession) for h in hits]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_any_sequence_of_edits_gives_the_results_of_an_exact_search(world, monkeypatch, seed):
    monkeypatch.setattr("portal.embeddings.services.indexes.MIN_REBUILD", 6)
    rng = random.Random(seed)
    canvases = [world.canvas(world.case(f"A{i}", f"p{i % 3}")) for i in range(5)]
    query = world.embedded(canvases[0], 200, 200)
    # What is searchable, by rules of our own: the outline embedded last; whether it is current.
    seen, current, rois = {}, set(), []

    def place():
        return square(rng.randrange(0, 300, 20), rng.randrange(0, 300, 20), 40)

    def ran():
        for roi in rois:
            if roi.deleted_at is None:
                seen[roi.pk] = roi.geometry
                current.add(roi.pk)

    for _ in range(60):
        action = rng.choice(["add", "add", "edit", "name", "delete", "restore", "run", "run"])
        roi = rng.choice(rois) if rois else None
        if action == "add" or roi is None:
            rois.append(world.roi(rng.choice(canvases), rng.randrange(0, 300, 20), 100, 40))
        elif action == "run":
            world.run_jobs()
            ran()
        elif action == "restore" and roi.deleted_at is not None:
            roi_restore(roi=roi, user=world.user)
            if seen.get(roi.pk) == roi.geometry:
                current.add(roi.pk)
        elif action == "delete" and roi.deleted_at is None:
            roi_delete(roi=roi, user=world.user, expected_version=roi.version)
            current.discard(roi.pk)
        elif action in ("edit", "name") and roi.deleted_at is None:
            geometry = place()
            changes = {"geometry": geometry} if action == "edit" else {"name": str(rng.random())}
            before = roi.geometry
            roi_update(roi=roi, user=world.user, expected_version=roi.version, changes=changes)
            if roi.geometry != before:
                current.discard(roi.pk)
        same = rng.random() < 0.5
        k = rng.choice([1, 3, 50])
        result = search(world, query, k=k, exclude_same_patient=not same)
        assert hit_ids(result) == plain_search(query, rois, current, k, same)
    assert IndexSnapshot.objects.count() >= 2, "the story went over several index files"


def plain_search(query, rois, current, k, same):
    origin = box_vector((200, 200, 220, 220)).astype(float)
    rows = []
    for roi in rois:
        is_same = roi.canvas.case.patient_key == query.canvas.case.patient_key
        if roi.pk not in current or (is_same and not same):
            continue
        row = Embedding.objects.get(roi=roi, superseded_at__isnull=True)
        vector = box_vector((roi.left, roi.top, roi.right, roi.bottom)).astype(float)
        rows.append((float(np.sqrt(((vector - origin) ** 2).sum())), row.pk, roi.pk))
    return [pk for _, _, pk in sorted(rows)[:k]]
