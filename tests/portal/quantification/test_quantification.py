from __future__ import annotations

import csv
import io

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from PIL import Image

from portal.annotations.services.rois import RoiChanges, roi_create, roi_delete, roi_update
from portal.archive.models import Canvas, Modality
from portal.core.errors import ConflictError, InvalidInputError
from portal.jobs.models import Job, JobState
from portal.quantification.models import QuantificationSettings, RoiQuantification
from portal.quantification.selectors import region_figures, staining_expected
from portal.quantification.services import quantification_settings_set, quantification_start
from tests.ml.quantification.synthetic import Nucleus, section
from tests.portal.embedded_rois import SIDE, square

NUCLEI = [
    Nucleus(40 * x + 20, 40 * y + 20, second=0.7 * (x % 2)) for x in range(10) for y in range(10)
]


@pytest.fixture
def slide(world):
    """Ten columns of ten nuclei, every second column strongly positive."""
    canvas = world.canvas(world.case("A1", "p1"))
    Image.fromarray(section(NUCLEI, (SIDE, SIDE))).save(world.storage / canvas.pixels_path)
    Canvas.objects.filter(pk=canvas.pk).update(mpp_x=0.5, mpp_y=0.5)
    canvas.refresh_from_db()
    return canvas


@pytest.fixture
def roi(world, slide):
    return roi_create(canvas=slide, user=world.user, geometry=square(0, 0, 160), name="Hot").roi


def measure(world, roi, **options):
    job = quantification_start(roi=roi, user=world.user, **options)
    world.run_jobs()
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED, job.error_message
    return region_figures(world.user, roi)


def test_a_measured_region_has_figures_and_their_parameters(world, roi):
    measurement = measure(world, roi)
    row = measurement.row
    assert (row.nucleus_count, row.bin_counts, row.positive_percent) == (16, [8, 0, 0, 8], 50)
    assert row.h_score == pytest.approx(150)
    assert row.area_mm2 == pytest.approx(0.08**2)
    assert row.nuclei_per_mm2 == pytest.approx(16 / 0.08**2)
    assert (row.staining, row.roi_version, row.config["weak_od"]) == ("dab-nuclear", 1, 0.2)
    assert row.config_hash and not measurement.is_stale and measurement.job is None


def test_a_second_measurement_replaces_the_first_and_shares_an_open_job(world, roi):
    measure(world, roi)
    item = quantification_start(roi=roi, user=world.user, staining="he")
    assert quantification_start(roi=roi, user=world.user).pk == item.pk
    assert region_figures(world.user, roi).job == item
    world.run_jobs()
    row = RoiQuantification.objects.get()
    assert (row.staining, row.bin_counts, row.h_score) == ("he", [], None)


def test_figures_are_stale_once_the_outline_or_the_pixel_size_changes(world, slide, roi):
    measure(world, roi)
    renamed = roi_update(
        roi=roi, user=world.user, expected_version=1, changes=RoiChanges(name="Rim")
    ).roi
    assert not region_figures(world.user, renamed).is_stale
    changed = roi_update(
        roi=roi,
        user=world.user,
        expected_version=renamed.version,
        changes=RoiChanges(geometry=square(0, 0, 200)),
    ).roi
    assert region_figures(world.user, changed).is_stale
    again = measure(world, changed)
    assert not again.is_stale and again.row.nucleus_count == 25
    Canvas.objects.filter(pk=slide.pk).update(mpp_x=0.25, mpp_y=0.25)
    changed.canvas.refresh_from_db()
    assert region_figures(world.user, changed).is_stale


def test_an_outline_that_changes_during_the_measurement_has_no_figures_of_the_old_one(
    world, roi, monkeypatch
):
    from ml.quantification import measure as engine

    quantify = engine.quantify_region

    def slow(*args, **kwargs):
        measurement = quantify(*args, **kwargs)
        changes = RoiChanges(geometry=square(0, 0, 200))
        roi_update(roi=roi, user=world.user, expected_version=1, changes=changes)
        return measurement

    monkeypatch.setattr(engine, "quantify_region", slow)
    job = quantification_start(roi=roi, user=world.user)
    world.run_jobs()
    job.refresh_from_db()
    assert job.result == {"skipped": "changed in the meantime"}
    assert not RoiQuantification.objects.exists()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"mpp_x": None, "mpp_y": None}, "unknown-pixel-size"),
        ({"mpp_x": 50.0, "mpp_y": 50.0}, "too-large"),
        ({"modality": Modality.ENDOSCOPY}, "no-section"),
    ],
)
def test_unmeasurable_regions_are_refused_by_name_before_a_job(world, slide, roi, change, code):
    Canvas.objects.filter(pk=slide.pk).update(**change)
    roi.canvas.refresh_from_db()
    with pytest.raises(InvalidInputError) as caught:
        quantification_start(roi=roi, user=world.user)
    assert caught.value.code == code
    assert not Job.objects.filter(kind="roi_quantify").exists()


def test_points_and_deleted_regions_are_refused(world, slide, roi):
    point = {"type": "Point", "coordinates": [9, 9]}
    mark = roi_create(canvas=slide, user=world.user, geometry=point).roi
    with pytest.raises(InvalidInputError, match="no area"):
        quantification_start(roi=mark, user=world.user)
    roi_delete(roi=roi, user=world.user, expected_version=1)
    roi.refresh_from_db()
    with pytest.raises(ConflictError):
        quantification_start(roi=roi, user=world.user)


def test_coarse_pixels_give_area_and_means_without_nuclei(world, slide, roi):
    Canvas.objects.filter(pk=slide.pk).update(mpp_x=2, mpp_y=2)
    roi.canvas.refresh_from_db()
    row = measure(world, roi).row
    assert (row.nuclei_missing, row.nucleus_count, row.bin_counts) == ("too-coarse", None, [])
    assert row.mean_od["dab"] > 0 and row.positive_area_percent > 0


def test_a_slide_of_h_and_e_is_measured_as_such(world, slide):
    assert staining_expected(world.scanned(slide, stain="IHC")) == "dab-nuclear"
    slide.slide.stain = "H&E"
    assert staining_expected(slide) == "he"


def test_thresholds_belong_to_the_lab(world, roi, manager):
    quantification_settings_set(
        lab=world.lab, user=manager, weak_od=0.8, moderate_od=0.9, strong_od=1.0
    )
    assert measure(world, roi).row.bin_counts == [16, 0, 0, 0]
    with pytest.raises(InvalidInputError, match=r"weak .*moderate"):
        quantification_settings_set(lab=world.lab, user=manager, weak_od=0.95)
    assert QuantificationSettings.objects.get().weak_od == 0.8


def test_rest_starts_answers_and_lists_nuclei(world, roi, client):
    client.force_login(world.user)
    address = reverse("api:roi-quantification", args=[roi.pk])
    before = client.get(address).json()
    assert before == {
        **{"roi": str(roi.pk), "figures": None, "is_stale": False, "job": None},
        **{"fixed_size": "", "grid": None},
    }
    started = client.post(address, {"staining": "dab-nuclear"}, content_type="application/json")
    assert started.status_code == 202 and started["Location"]
    assert client.get(address).json()["job"]["id"] == started.json()["id"]
    world.run_jobs()
    after = client.get(address).json()
    assert after["figures"]["nucleus_count"] == 16
    assert after["figures"]["thresholds"]["strong_od"] == 0.6
    nuclei = client.get(reverse("api:roi-nuclei", args=[roi.pk])).json()
    assert sorted(nuclei["bin"]) == [0] * 8 + [3] * 8
    assert sorted(set(nuclei["x"]))[0] == pytest.approx(20, abs=0.3)
    assert nuclei["radius"][0] == pytest.approx(8, rel=0.1)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        client.get(address)
    assert len(queries) <= 8
    wrong = client.post(address, {"staining": "pas"}, content_type="application/json")
    assert wrong.status_code == 400


def test_the_table_of_a_case_needs_a_fixed_number_of_queries(world, slide, roi, client):
    client.force_login(world.user)
    address = reverse("api:case-quantification-table", args=[slide.case_id])
    measure(world, roi)
    b"".join(client.get(address))
    with CaptureQueriesContext(connection) as item:
        b"".join(client.get(address))
    other = roi_create(
        canvas=slide, user=world.user, geometry=square(200, 200, 80), name="=1+1"
    ).roi
    measure(world, other)
    with CaptureQueriesContext(connection) as two:
        text = b"".join(client.get(address)).decode("utf-8-sig")
    assert len(item) == len(two)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["nucleus_count"] for row in rows] == ["16", "4"]
    assert rows[1]["name"] == "'=1+1"
    assert (rows[0]["nuclei_3"], rows[0]["mean_od_eosin"], rows[0]["is_stale"]) == ("8", "", "0")
    other_slide = world.canvas(slide.case)
    empty = b"".join(client.get(address, {"canvas": other_slide.pk})).decode()
    assert len(empty.splitlines()) == 1


def test_a_deleted_region_is_not_in_the_table(world, slide, roi, client):
    client.force_login(world.user)
    measure(world, roi)
    roi_delete(roi=roi, user=world.user, expected_version=1)
    address = reverse("api:case-quantification-table", args=[slide.case_id])
    assert len(b"".join(client.get(address)).splitlines()) == 1


def test_the_page_of_thresholds_shows_errors_and_saves_valid_values(world, manager, client):
    client.force_login(manager)
    address = reverse("quantification:settings")
    values = {
        "weak_od": 0.3,
        "moderate_od": 0.2,
        "strong_od": 0.6,
        "nucleus_od": 0.1,
        "min_area_um2": 10,
        "max_area_um2": 400,
    }
    refused = client.post(address, values | {"lab": world.lab.slug})
    assert refused.status_code == 200
    assert "expected weak below moderate" in refused.content.decode()
    assert not QuantificationSettings.objects.exists()
    saved = client.post(address, values | {"lab": world.lab.slug, "moderate_od": 0.5}, follow=True)
    assert "were saved" in saved.content.decode()
    assert QuantificationSettings.objects.get().moderate_od == 0.5


def test_fields_of_a_grid_have_figures_together_by_their_nominal_area(world, slide, client):
    def field(at):
        properties = {"Fixed size": f"field {at + 1} of 2, 0.0064 mm²", "Field grid": "g1"}
        geometry = square(160 * at, 0, 160.2)  # 0.25 % more than nominal
        return roi_create(
            canvas=slide, user=world.user, geometry=geometry, properties=properties
        ).roi

    first, second = field(0), field(1)
    measurement = measure(world, first)
    assert measurement.size.text == "field 1 of 2, 0.0064 mm²"
    assert (measurement.row.area_mm2, measurement.row.nuclei_per_mm2) == (
        0.0064,
        pytest.approx(16 / 0.0064),
    )
    assert (measurement.grid.measured_count, measurement.grid.nucleus_count) == (1, None)
    measure(world, second)
    client.force_login(world.user)
    answer = client.get(reverse("api:roi-quantification", args=[first.pk])).json()
    assert answer["fixed_size"] == "field 1 of 2, 0.0064 mm²"
    assert answer["grid"] == {
        "text": "2 fields, 0.0128 mm²",
        "field_count": 2,
        "area_mm2": 0.0128,
        "measured_count": 2,
        "nucleus_count": 32,
        "nuclei_per_mm2": pytest.approx(2500),
    }
    address = reverse("api:case-quantification-table", args=[slide.case_id])
    text = b"".join(client.get(address)).decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {(row["grid"], row["grid_fields"], row["grid_mm2"]) for row in rows} == {
        ("g1", "2", "0.0128")
    }
