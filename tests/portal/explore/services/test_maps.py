"""Maps of a lab: drawn by a job, and shown to each person as they may see it now."""

from __future__ import annotations

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ml.index.ranking.calibration import Calibration
from portal.annotations.models import Label
from portal.annotations.services.rois import roi_delete
from portal.archive.models import Case, Modality
from portal.core.errors import ConflictError, InvalidInputError
from portal.embeddings.selectors.encoders import encoder_default
from portal.explore.models import LabelConfirmation, RegionMap
from portal.explore.selectors import maps as module
from portal.explore.selectors.duplicates import Between, near_duplicates
from portal.explore.selectors.label_outliers import label_outliers
from portal.explore.selectors.maps import map_counts, map_latest, map_visible
from portal.explore.selectors.points import map_points
from portal.explore.selectors.unannotated import unannotated
from portal.explore.services.maps import MAX_MAPS, label_confirm, map_draw_submit, maps_delete
from portal.labs.models import Membership, Role, User
from portal.reader_studies.services.assignments import ReadingPlan
from portal.reader_studies.services.studies import readings_assign, study_create
from tests.clients import client_of
from tests.portal.embedded_rois import jobs

pytestmark = pytest.mark.slow

HISTOLOGY = Modality.HISTOLOGY


def drawn(world):
    map_draw_submit(lab=world.lab, kind=HISTOLOGY, user=world.user)
    world.run_jobs()
    return seen_by(world, world.user)


def seen_by(world, user):
    return map_visible(user, map_latest(user, lab_id=world.lab.pk, kind=HISTOLOGY))


def member(lab, name, role=Role.ANNOTATOR):
    user = User.objects.create_user(f"{name}@example.com", "correct horse battery")
    Membership.objects.create(user=user, lab=lab, role=role)
    return user


@pytest.fixture
def archive(world):
    """Six patients; tumour on the left of each image, stroma on the right."""
    tumour, stroma = world.labels("Tumour", "Stroma")
    world.cases = [world.case(f"A{n}", f"p{n}", organ="colon") for n in range(6)]
    world.canvases = [world.canvas(case) for case in world.cases]
    world.left = [world.roi(c, 10 + n, 50, label=tumour) for n, c in enumerate(world.canvases)]
    world.right = [world.roi(c, 300 + n, 50, label=stroma) for n, c in enumerate(world.canvases)]
    world.tumour, world.stroma = tumour, stroma
    world.run_jobs()
    return world


def relabel(roi, label):
    roi.label = label
    roi.save()


def test_a_map_shows_every_region_with_its_present_label(archive):
    seen = drawn(archive)
    points = map_points(seen)
    assert set(points.rois) == {roi.pk for roi in archive.left + archive.right}
    label = next(colouring for colouring in points.colourings if colouring.name == "label")
    assert {v.name: v.count for v in label.values} == {"Tumour": 6, "Stroma": 6}
    relabel(archive.left[0], archive.stroma)
    points = map_points(seen_by(archive, archive.user))
    at = points.rois.index(archive.left[0].pk)
    label = next(colouring for colouring in points.colourings if colouring.name == "label")
    assert label.values[label.at[at]].name == "Stroma"
    organ = next(colouring for colouring in points.colourings if colouring.name == "organ")
    assert [(v.name, v.count) for v in organ.values] == [("colon", 12)]
    archive.scanned(archive.canvases[0], stain="PAS")
    points = map_points(seen_by(archive, archive.user))
    stain = next(colouring for colouring in points.colourings if colouring.name == "stain")
    assert [(v.value, v.name, v.count) for v in stain.values] == [("pas", "PAS", 2)]
    assert max(points.x + points.y) == 65_535
    assert min(points.x + points.y) == 0


def test_a_redrawn_map_has_equal_positions_and_few_maps_are_stored(archive):
    first = drawn(archive).positions
    for _ in range(MAX_MAPS):
        assert np.array_equal(drawn(archive).positions, first)
    assert RegionMap.objects.count() == MAX_MAPS


def test_a_map_of_a_lab_without_regions_is_a_conflict(archive, other_lab, stranger):
    Membership.objects.filter(user=stranger).update(role=Role.ANNOTATOR)
    with pytest.raises(ConflictError, match="region"):
        map_draw_submit(lab=other_lab, kind=HISTOLOGY, user=stranger)
    page = client_of(stranger)
    for tab in ("", "near-duplicates/", "unlike/"):
        shown = page.get(f"/browse/{tab}").content.decode()
        assert "Nothing to draw yet" in shown and "Draw the map" not in shown
    assert "No image yet" in page.get("/browse/unannotated/").content.decode()
    page.force_login(archive.user)
    shown = page.get("/browse/").content.decode()
    assert "Draw the map" in shown and "Nothing to draw yet" not in shown
    drawn(archive)
    assert "Draw again" in page.get("/browse/").content.decode()


def test_simultaneous_requests_get_one_job(archive):
    item = map_draw_submit(lab=archive.lab, kind=HISTOLOGY, user=archive.user)
    assert map_draw_submit(lab=archive.lab, kind=HISTOLOGY, user=archive.user) == item


def test_the_job_does_not_report_the_number_of_regions(archive):
    drawn(archive)
    (job,) = jobs("map_draw")
    assert job.result == {"map": str(RegionMap.objects.get().pk)}
    assert job.progress_total in (0, 100)


def test_new_and_redrawn_regions_are_counted_and_deleted_ones_removed(archive):
    drawn(archive)
    archive.embedded(archive.canvases[0], 100, 100)
    roi_delete(roi=archive.left[1], user=archive.user, expected_version=archive.left[1].version)
    archive.run_jobs()
    seen = seen_by(archive, archive.user)
    assert seen.newer == 1
    assert archive.left[1].pk not in {row.roi_id for row in seen.rows.values()}
    assert len(seen.rows) == 11


def test_regions_of_a_blind_reading_are_on_no_map(archive, manager):
    """Hidden when it is looked at: the map that was drawn before holds it."""
    reader = member(archive.lab, "reader")
    seen = drawn(archive)
    canvas = archive.canvases[0]
    study = study_create(lab=archive.lab, user=manager, name="Agreement")
    plan = ReadingPlan(canvases=[canvas], people=[reader, member(archive.lab, "second")])
    readings_assign(study=study, user=manager, plan=plan)
    hidden = {archive.left[0].pk, archive.right[0].pk}
    blind = seen_by(archive, reader)
    roi_ids = {row.roi_id for row in blind.rows.values()}
    assert roi_ids == {row.roi_id for row in seen.rows.values()} - hidden
    assert set(map_points(blind).rois) == roi_ids
    archive.embedded(canvas, 100, 100)
    assert seen_by(archive, reader).newer == 0
    assert seen_by(archive, manager).newer == 1
    pairs = near_duplicates(reader, blind, between=None, start=0, count=50).pairs
    assert not hidden & {roi.pk for pair in pairs for roi in (pair.one, pair.other)}
    doubts = label_outliers(reader, blind, start=0, count=50)
    assert doubts.looked_at == 10


def test_a_label_outlier_is_listed_with_its_neighbours(archive):
    relabel(archive.left[2], archive.stroma)
    seen = drawn(archive)
    answer = label_outliers(archive.user, seen, start=0, count=10)
    (item,) = answer.found
    assert item.roi == archive.left[2]
    assert item.suggested == archive.tumour
    # fifteen neighbours hold all ten regions of the others; of each patient the nearest speaks
    assert (item.says, item.agree, item.support) == (5, 0, 5)
    assert {n.roi.pk for n in item.neighbours} == {
        roi.pk for roi in archive.left if roi != archive.left[2]
    }
    assert answer.looked_at == 12


def test_regions_of_the_same_patient_do_not_vote(archive):
    for canvas in archive.canvases[1:]:
        canvas.case.patient_key = "p0"
        canvas.case.save()
    relabel(archive.left[2], archive.stroma)
    answer = label_outliers(archive.user, drawn(archive), start=0, count=10)
    assert answer.total == 0
    assert answer.silent == 12


def test_a_parent_or_child_label_is_no_disagreement(archive):
    child = Label.objects.create(
        lab=archive.lab, label_set=archive.tumour.label_set, name="Grade 2", parent=archive.tumour
    )
    relabel(archive.left[2], child)
    assert label_outliers(archive.user, drawn(archive), start=0, count=10).total == 0


def test_a_confirmed_label_is_not_listed_until_it_changes(archive):
    relabel(archive.left[2], archive.stroma)
    seen = drawn(archive)
    label_confirm(roi=archive.left[2], user=archive.user)
    label_confirm(roi=archive.left[2], user=archive.user)
    assert LabelConfirmation.objects.count() == 1
    answer = label_outliers(archive.user, seen, start=0, count=10)
    assert (answer.total, answer.confirmed) == (0, 1)
    other = Label.objects.create(
        lab=archive.lab, label_set=archive.tumour.label_set, name="Necrosis"
    )
    relabel(archive.left[2], other)
    again = seen_by(archive, archive.user)
    assert label_outliers(archive.user, again, start=0, count=10).total == 1


def test_a_region_without_a_label_is_not_confirmed(archive):
    relabel(archive.left[0], None)
    with pytest.raises(InvalidInputError):
        label_confirm(roi=archive.left[0], user=archive.user)


def test_only_close_neighbours_vote(archive, monkeypatch):
    relabel(archive.left[2], archive.stroma)
    seen = drawn(archive)

    def calibrated(nothing_below):
        made = Calibration.from_quantiles([0.001, 0.5], [nothing_below, nothing_below + 1])
        monkeypatch.setattr(module, "calibration_for", lambda encoder: made)
        return label_outliers(archive.user, seen, start=0, count=10)

    assert calibrated(1e6).total == 1
    far = calibrated(1e-3)
    assert (far.total, far.silent, far.is_calibrated) == (0, 12, True)


def test_near_duplicates_of_different_cases_come_first(archive):
    case = archive.cases[0]
    same_case = archive.canvas(case)
    copies = [
        archive.embedded(archive.canvases[0], 200, 200),
        archive.embedded(archive.canvases[0], 200, 200),
        archive.embedded(same_case, 200, 200),
        archive.embedded(archive.canvases[1], 200, 200),
    ]
    seen = drawn(archive)
    assert not seen.map.is_calibrated
    pairs = near_duplicates(archive.user, seen, between=None, start=0, count=50)
    assert pairs.counts == {Between.CASES: 3, Between.IMAGES: 2, Between.REGIONS: 1}
    assert [pair.between for pair in pairs.pairs] == sorted(pair.between for pair in pairs.pairs)
    assert {pair.distance for pair in pairs.pairs} == {0.0}
    near_pairs = near_duplicates(archive.user, seen, between=Between.REGIONS, start=0, count=50)
    assert {near_pairs.pairs[0].one, near_pairs.pairs[0].other} == set(copies[:2])
    part = near_duplicates(archive.user, seen, between=None, start=2, count=2)
    assert (part.total, len(part.pairs)) == (6, 2)


def test_images_without_a_region_depend_on_the_person(archive, manager):
    bare = archive.canvas(archive.cases[3])
    encoder = encoder_default(HISTOLOGY)
    params = {"lab": archive.lab, "kind": HISTOLOGY, "encoder": encoder, "start": 0, "count": 10}
    page = unannotated(archive.user, **params)
    assert [item.canvas for item in page.found] == [bare]
    assert (page.without, page.images, page.total) == (1, 7, 1)
    assert page.found[0].novelty is None


def test_maps_of_a_lab_are_deleted(archive):
    drawn(archive)
    maps_delete(lab_id=archive.lab.pk)
    assert not RegionMap.objects.exists()


def test_the_page_counts_without_reading_regions_and_unchanged_points_are_not_sent_again(
    archive, api_as
):
    seen = drawn(archive)
    counts = map_counts(archive.user, seen.map)
    assert (counts.on_map, counts.newer) == (len(seen.rows), seen.newer) == (12, 0)
    page = client_of(archive.user)
    url = f"/browse/?lab={archive.lab.slug}"
    page.get(url)
    with CaptureQueriesContext(connection) as requested:
        shown = page.get(url).content.decode()
    assert "12 regions. Neighbours" in shown
    of_regions = [
        request["sql"] for request in requested if "embeddings_embedding" in request["sql"]
    ]
    assert len(of_regions) == 1  # and only its keys
    assert "review_state" not in of_regions[0] and "vector" not in of_regions[0]
    assert len(requested) <= 16

    api, points = api_as(archive.user), f"/api/v1/maps/{seen.map.pk}/points/"
    api.get(points)
    with CaptureQueriesContext(connection) as requested:
        first = api.get(points)
    assert len(requested) <= 8
    assert first.json()["rois"] and first["Cache-Control"] == "private, no-cache"
    same = api.get(points, headers={"if-none-match": first["ETag"]})
    assert (same.status_code, same.content) == (304, b"")
    roi_delete(roi=archive.left[0], user=archive.user, expected_version=1)
    after = api.get(points, headers={"if-none-match": first["ETag"]})
    assert after.status_code == 200 and len(after.json()["rois"]) == 11
    assert map_counts(archive.user, seen.map).on_map == 11


def test_values_that_differ_in_case_are_merged(archive):
    Case.objects.filter(pk=archive.cases[3].pk).update(organ="Colon")
    Case.objects.filter(pk=archive.cases[4].pk).update(organ="")
    organs = next(
        colouring
        for colouring in map_points(drawn(archive)).colourings
        if colouring.name == "organ"
    )
    (value,) = organs.values
    assert (value.value, value.name, value.count) == ("colon", "colon", 10)
    assert sorted(set(organs.at)) == [-1, 0] and organs.at.count(-1) == 2


def test_the_query_count_of_a_map_is_constant(archive):
    def query_count():
        with CaptureQueriesContext(connection) as made:
            seen = seen_by(archive, archive.user)
            map_points(seen)
            near_duplicates(archive.user, seen, between=None, start=0, count=12)
            label_outliers(archive.user, seen, start=0, count=12)
        return len(made)

    drawn(archive)
    before = query_count()
    for canvas in archive.canvases:
        archive.roi(canvas, 100, 100, label=archive.tumour)
    archive.run_jobs()
    drawn(archive)
    # pictures and patients are loaded only where there are any
    assert query_count() <= before + 2
