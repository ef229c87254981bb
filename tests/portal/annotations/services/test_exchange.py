"""QuPath's GeoJSON: every spelling is read, nothing is dropped silently."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from portal.annotations.models import Label, Roi, RoiImport, RoiRevision
from portal.annotations.qupath import feature_read
from portal.annotations.services import reading
from portal.annotations.services.exchange import ImportChoices, roi_import
from portal.annotations.services.imports import roi_import_undo
from portal.annotations.services.labels import label_set_ensure
from portal.annotations.services.rois import roi_delete, roi_update
from portal.archive.models import Canvas
from portal.core.errors import ForbiddenError, InvalidInputError
from portal.labs.models import User
from tests.portal.annotations.support import (
    box,
    collection,
    ellipse,
    exported,
    feature,
    statuses,
)

QUPATH_ID = "5f0a7a3e-6b1c-4a52-9d6e-0d2f5a5c1b11"


def test_qupaths_own_example_is_imported_completely(canvas: Canvas, manager: User) -> None:
    raw = feature(
        id=QUPATH_ID,
        name="ROI 1",
        color=[255, 0, 0],
        classification={"name": "Gland", "color": [200, 0, 0]},
        isLocked=True,
        measurements={"Mean DAB": 12.5, "Odd": "NaN"},
        metadata={"key": "text"},
    )
    report = roi_import(canvas=canvas, user=manager, document=collection(raw))
    assert (statuses(report), report.labels_created) == (["created"], ("Gland",))
    roi = Roi.objects.select_related("label").get(pk=QUPATH_ID)
    assert (roi.name, roi.label and roi.label.color) == ("ROI 1", "#c80000")
    back = exported(canvas)["features"][0]
    assert back["id"] == QUPATH_ID
    assert back["geometry"] == box(10, 10, 90, 80)
    assert back["properties"]["classification"] == {"name": "Gland", "color": [200, 0, 0]}
    assert back["properties"]["color"] == [255, 0, 0]
    assert back["properties"]["isLocked"] is True
    measurements = back["properties"]["measurements"]
    assert measurements == {
        "Mean DAB": 12.5,
        "Odd": "NaN",
        "Area px^2": 5600.0,
        "Area um^2": 1400.0,
    }
    assert back["properties"]["metadata"] == {"key": "text", "tessera.review_state": "draft"}


@pytest.mark.parametrize(
    ("properties", "name", "color"),
    [
        ({"classification": "Tumor"}, "Tumor", None),
        ({"classification": {"name": "Tumor", "color": -3670016}}, "Tumor", "#c80000"),
        ({"classification": {"name": "Tumor", "colorRGB": 0xC80000}}, "Tumor", "#c80000"),
        ({"classification": {"names": ["Tumor", "Positive"]}}, "Tumor: Positive", None),
        ({"classification": None}, "", None),
        ({}, "", None),
    ],
)
def test_every_spelling_of_a_class_is_read(
    properties: dict[str, Any], name: str, color: str | None
) -> None:
    read_feature = feature_read(feature(**properties))
    assert (read_feature.label, read_feature.color) == (name, color)


@pytest.mark.parametrize(
    "document",
    [[feature()], feature(), collection(feature())],
    ids=["bare array", "one feature", "collection"],
)
def test_documents_come_in_three_shapes(canvas: Canvas, annotator: User, document: Any) -> None:
    assert statuses(roi_import(canvas=canvas, user=annotator, document=document)) == ["created"]


@pytest.mark.parametrize(
    "document", [None, 7, "x", {}, {"type": "Polygon"}, {"type": "FeatureCollection"}]
)
def test_an_invalid_document_is_refused(canvas: Canvas, annotator: User, document: Any) -> None:
    with pytest.raises(InvalidInputError, match="FeatureCollection"):
        roi_import(canvas=canvas, user=annotator, document=document)


def test_a_geometry_collection_becomes_one_multipolygon(canvas: Canvas, annotator: User) -> None:
    geometry = {
        "type": "GeometryCollection",
        "geometries": [box(0, 0, 10, 10), box(20, 20, 30, 30)],
    }
    roi_import(canvas=canvas, user=annotator, document=[feature(geometry)])
    assert Roi.objects.get().geometry["type"] == "MultiPolygon"
    assert exported(canvas)["features"][0]["geometry"]["type"] == "MultiPolygon"


def test_an_ellipse_stays_one_until_its_outline_is_changed(canvas: Canvas, annotator: User) -> None:
    outline = ellipse(50, 40, 30, 20) | {"isEllipse": True}
    roi_import(canvas=canvas, user=annotator, document=[feature(outline)])
    assert exported(canvas)["features"][0]["geometry"]["isEllipse"] is True
    roi = Roi.objects.select_related("canvas").get()
    roi_update(roi=roi, user=annotator, expected_version=1, changes={"geometry": box(1, 1, 9, 8)})
    assert "isEllipse" not in exported(canvas)["features"][0]["geometry"]


def test_a_polygon_is_not_written_as_an_ellipse(canvas: Canvas, annotator: User) -> None:
    outline = box(1, 1, 9, 9) | {"isEllipse": True}  # QuPath would draw it as a circle
    roi_import(canvas=canvas, user=annotator, document=[feature(outline)])
    assert "isEllipse" not in exported(canvas)["features"][0]["geometry"]


def test_a_file_locks_and_never_unlocks(canvas: Canvas, annotator: User) -> None:
    raw = feature(id=QUPATH_ID, isLocked=True)
    roi_import(canvas=canvas, user=annotator, document=[raw])
    moved = feature(box(20, 20, 90, 80), id=QUPATH_ID)
    (item,) = roi_import(canvas=canvas, user=annotator, document=[moved]).items
    assert (item.status, item.reason) == ("refused", "This region is locked. Unlock it first.")
    roi = Roi.objects.get()
    assert (roi.is_locked, roi.left) == (True, 10)


def test_undoing_an_import_removes_its_locked_rois(canvas: Canvas, annotator: User) -> None:
    report = roi_import(canvas=canvas, user=annotator, document=[feature(isLocked=True)])
    row = RoiImport.objects.get()
    assert (row.pk, roi_import_undo(roi_import=row, user=annotator).removed) == (
        report.import_id,
        1,
    )
    assert not Roi.objects.live().exists()


def test_each_refusal_has_its_reason_and_the_rest_is_imported(
    canvas: Canvas, annotator: User
) -> None:
    nan = box(0, 0, 10, 10)
    nan["coordinates"][0][1][0] = float("nan")
    bow_tie = {"type": "Polygon", "coordinates": [[[0, 0], [10, 10], [10, 0], [0, 10]]]}
    document = collection(
        feature(box(5000, 5000, 5010, 5010)),
        feature(nan),
        feature({"type": "Circle", "coordinates": [1, 1]}),
        feature(objectType="root"),
        feature(classification="Unheard of"),
        feature(box(1, 1, 9, 9) | {"plane": {"c": -1, "z": 3, "t": 0}}),
        feature(box(1, 1, 9, 9) | {"plane": {"c": -1, "z": 0, "t": 2}}),
        {"type": "Feature", "geometry": None, "properties": {}},
        "nonsense",
        feature(bow_tie),
        feature(bow_tie),
        feature(classification="tumor", name="kept"),
    )
    label_set_ensure(lab=canvas.lab)
    report = roi_import(canvas=canvas, user=annotator, document=document)
    reasons = [item.reason for item in report.items]
    for index, words in enumerate(
        (
            "outside the canvas",
            "the outline, vertex 2: x is nan, not a finite number",
            "not 'Circle'",
            "objectType 'root' is not a region",
            "class 'Unheard of': the lab has no such label",
            "z = 3",
            "only a video has frames",
            "has no geometry",
            "not a GeoJSON Feature",
        )
    ):
        assert words in reasons[index]
    assert statuses(report)[9:] == ["created", "refused", "created"]
    assert reasons[10] == "the same object as feature 10"
    assert report.items[9].notes == ("open ring closed", "repaired: self-intersection")
    assert (report.repaired, report.count("refused")) == (1, 10)
    assert Roi.objects.get(name="kept").label.name == "Tumor"  # type: ignore[union-attr]


def test_strict_imports_all_or_nothing(canvas: Canvas, annotator: User, manager: User) -> None:
    document = collection(
        feature(classification="New class"), feature({"type": "Circle", "coordinates": [1, 1]})
    )
    with pytest.raises(InvalidInputError, match="1 of 2") as error:
        roi_import(
            canvas=canvas, user=manager, document=document, choices=ImportChoices(strict=True)
        )
    assert error.value.details["refused"][0]["index"] == 1
    assert not Roi.objects.exists()
    assert not Label.objects.filter(name="New class").exists()


def test_only_managers_create_labels(canvas: Canvas, annotator: User, manager: User) -> None:
    document = [feature(classification="Gland")]
    with pytest.raises(ForbiddenError):
        roi_import(
            canvas=canvas,
            user=annotator,
            document=document,
            choices=ImportChoices(create_labels=True),
        )
    refused = roi_import(
        canvas=canvas, user=manager, document=document, choices=ImportChoices(create_labels=False)
    )
    assert statuses(refused) == ["refused"]
    assert statuses(roi_import(canvas=canvas, user=manager, document=document)) == ["created"]


def test_a_new_labs_starter_labels_are_known(canvas: Canvas, annotator: User) -> None:
    report = roi_import(canvas=canvas, user=annotator, document=[feature(classification="Tumor")])
    assert (statuses(report), report.labels_created) == (["created"], ())


def test_importing_twice_changes_nothing(canvas: Canvas, annotator: User) -> None:
    document = collection(feature(), feature(box(5, 5, 50, 50), id=QUPATH_ID, name="with id"))
    roi_import(canvas=canvas, user=annotator, document=document)
    again = roi_import(canvas=canvas, user=annotator, document=document)
    assert statuses(again) == ["unchanged", "unchanged"]
    assert (Roi.objects.count(), RoiRevision.objects.count()) == (2, 2)


def test_an_edited_export_is_imported_as_a_revision(
    canvas: Canvas, annotator: User, roi: Roi
) -> None:
    document = exported(canvas)
    edited = copy.deepcopy(document)
    edited["features"][0]["geometry"] = box(10, 10, 200, 60)
    assert statuses(roi_import(canvas=canvas, user=annotator, document=edited)) == ["updated"]
    assert list(RoiRevision.objects.values_list("version", "action")) == [
        (1, "create"),
        (2, "update"),
    ]
    roi_delete(roi=roi, user=annotator, expected_version=2)
    assert statuses(roi_import(canvas=canvas, user=annotator, document=document)) == ["restored"]
    assert Roi.objects.get().geometry == box(10, 10, 110, 60)


def test_a_file_of_another_lab_makes_new_rois_and_touches_none(
    canvas: Canvas, annotator: User, foreign_roi: Roi
) -> None:
    document = exported(foreign_roi.canvas)
    first = roi_import(canvas=canvas, user=annotator, document=document)
    again = roi_import(canvas=canvas, user=annotator, document=document)
    assert (statuses(first), statuses(again)) == (["created"], ["unchanged"])
    assert first.items[0].roi_id != foreign_roi.pk
    foreign_roi.refresh_from_db()
    assert foreign_roi.version == 1
    assert Roi.objects.count() == 2


def test_planes_are_frames_of_a_video(video_canvas: Canvas, annotator: User) -> None:
    document = collection(
        feature(box(1, 1, 9, 9) | {"plane": {"c": -1, "z": 0, "t": 3}}),
        feature(box(1, 1, 9, 9)),
        feature(box(1, 1, 9, 9) | {"plane": {"c": -1, "z": 0, "t": 4}}),
    )
    report = roi_import(canvas=video_canvas, user=annotator, document=document)
    assert statuses(report) == ["created", "created", "refused"]
    assert "frames 0 to 3" in report.items[2].reason
    frames = Roi.objects.order_by("frame_index").values_list("frame_index", "frame_pts")
    assert list(frames) == [(0, 0), (3, 200)]
    planes = [f["geometry"].get("plane") for f in exported(video_canvas)["features"]]
    assert planes == [{"c": -1, "z": 0, "t": 3}, None]
    assert statuses(
        roi_import(canvas=video_canvas, user=annotator, document=exported(video_canvas))
    ) == ["unchanged", "unchanged"]


def test_deleted_rois_are_not_exported(canvas: Canvas, annotator: User, roi: Roi) -> None:
    roi_delete(roi=roi, user=annotator, expected_version=1)
    assert exported(canvas) == {"type": "FeatureCollection", "features": []}


def test_huge_metadata_is_left_out_with_a_notice(canvas: Canvas, annotator: User) -> None:
    report = roi_import(
        canvas=canvas, user=annotator, document=[feature(metadata={"key": "x" * 40_000})]
    )
    assert "left out" in report.items[0].notes[0]


def test_too_many_features_are_refused(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_FEATURES", 20)
    with pytest.raises(InvalidInputError, match=r"\b20 features"):
        roi_import(canvas=canvas, user=annotator, document=[feature()] * 21)
    assert not Roi.objects.exists()


def test_two_objects_of_one_id_are_two_rois_with_a_notice(canvas: Canvas, manager: User) -> None:
    document = collection(
        feature(box(10, 10, 60, 60), id=QUPATH_ID, name="a"),
        feature(box(200, 200, 250, 250), id=QUPATH_ID, name="b"),
        feature(box(200, 200, 250, 250), id=QUPATH_ID, name="b"),
        feature(box(10, 10, 60, 60), id=QUPATH_ID, name="a"),
    )
    report = roi_import(canvas=canvas, user=manager, document=document)
    assert statuses(report) == ["created", "created", "refused", "refused"]
    assert "that of feature 1" in report.items[1].notes[0]
    assert [item.reason for item in report.items[2:]] == [
        "the same object as feature 2",
        "the same object as feature 1",
    ]
    assert sorted(Roi.objects.values_list("name", flat=True)) == ["a", "b"]
    assert str(Roi.objects.get(name="a").pk) == QUPATH_ID
    again = roi_import(canvas=canvas, user=manager, document=document)
    assert statuses(again) == ["unchanged", "unchanged", "refused", "refused"]


def test_every_refusal_names_its_shape(canvas: Canvas, annotator: User) -> None:
    flat = {"type": "Circle", "coordinates": [1, 1]}
    document = [
        feature(flat, name="Gland 3", classification="Odd"),
        feature(classification="Unheard of"),
        5,
    ]
    report = roi_import(canvas=canvas, user=annotator, document=document)
    messages = [item.message for item in report.items]
    assert messages[0].startswith("Circle “Gland 3” (Odd): ")
    assert messages[1].startswith("Polygon (Unheard of): class 'Unheard of'")
    assert messages[2].startswith("feature 3: ")
    assert report.groups[0].shapes == ["Circle “Gland 3” (Odd)"]
