"""Preview of an import: a complete report, without any write."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.annotations.models import Label, LabelSet, Roi, RoiImport
from portal.annotations.services import reports
from portal.annotations.services.exchange import ImportChoices, roi_import, roi_import_preview
from portal.annotations.services.labels import label_create, label_set_ensure
from portal.annotations.services.reading import ImportWork
from portal.annotations.services.rois import roi_create, roi_delete
from portal.archive.models import Canvas
from portal.core.models import Event
from portal.labs.models import User
from tests.portal.annotations.support import box, feature

pytestmark = pytest.mark.django_db
NAN = float("nan")


def outcomes(report: Any) -> dict[str, tuple[str, str]]:
    return {entry.name: (entry.outcome, entry.label_name) for entry in report.classes}


def test_a_preview_reports_the_result_of_the_import(canvas: Canvas, manager: User) -> None:
    old = roi_create(canvas=canvas, user=manager, geometry=box(9, 9, 80, 80), name="old").roi
    deleted = roi_create(canvas=canvas, user=manager, geometry=box(5, 5, 60, 60)).roi
    roi_delete(roi=deleted, user=manager, expected_version=1)
    same = roi_create(canvas=canvas, user=manager, geometry=box(3, 3, 60, 60), name="same").roi
    document = [
        feature(box(1, 1, 40, 40), id=str(old.pk), name="new"),
        feature(box(5, 5, 60, 60), id=str(deleted.pk)),
        feature(box(3, 3, 60, 60), id=str(same.pk), name="same"),
        feature(box(-20, 0, 30, 30), classification="Gland"),
        feature({"type": "Circle", "coordinates": [1, 1]}),
    ]
    events = Event.objects.count()
    seen = roi_import_preview(canvas=canvas, user=manager, document=document)
    statuses = ["updated", "restored", "unchanged", "created", "refused"]
    assert [item.status for item in seen.items] == statuses
    assert (seen.is_preview, seen.import_id, seen.total) == (True, None, 5)
    assert seen.labels_created == ("Gland",)
    assert not RoiImport.objects.exists() and not Label.objects.filter(name="Gland").exists()
    assert Event.objects.count() == events
    done = roi_import(canvas=canvas, user=manager, document=document)
    assert [item.status for item in done.items] == statuses
    assert (done.groups, done.repaired) == (seen.groups, seen.repaired)
    again = roi_import_preview(canvas=canvas, user=manager, document=document)
    assert again.counts == {"unchanged": 4, "refused": 1}


@pytest.mark.parametrize("name", ["No label", "none"])
def test_a_class_named_as_regions_without_a_label_gives_none(
    canvas: Canvas, annotator: User, name: str
) -> None:
    document = [feature(box(1, 1, 40, 40), classification=name)]
    report = roi_import_preview(canvas=canvas, user=annotator, document=document)
    assert outcomes(report) == {name: ("none", "")}
    report = roi_import(canvas=canvas, user=annotator, document=document)
    assert report.counts == {"created": 1}
    assert Roi.objects.get(canvas=canvas).label is None


def test_preview_of_a_new_lab_leaves_no_label_set(canvas: Canvas, annotator: User) -> None:
    roi_import_preview(canvas=canvas, user=annotator, document=[feature(classification="A")])
    assert not LabelSet.objects.exists()


def test_reasons_are_grouped_counted_and_capped(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "MAX_ITEMS", 3)
    monkeypatch.setattr(reports, "MAX_FEATURES_PER_REASON", 2)
    document = [
        *(feature(box(n, 0, n + 9, 9)) for n in range(4)),
        *(feature(box(NAN, n, 20, 30)) for n in range(3)),
        *(feature({"type": "Curve", "coordinates": [[0, 0], [n, 9]]}) for n in range(2)),
        feature(box(-20, 0, 30, 30)),
    ]
    messages: list[int] = []
    report = roi_import_preview(
        canvas=canvas,
        user=annotator,
        document=document,
        work=ImportWork(on_item=lambda item: messages.append(item.index)),
    )
    assert [(group.status, group.count, group.first) for group in report.groups] == [
        ("refused", 3, [4, 5]),
        ("refused", 2, [7, 8]),
        ("repaired", 1, [9]),
    ]
    assert "nan, not a finite number" in report.groups[0].reason
    assert "not 'Curve'" in report.groups[1].reason
    assert [item.index for item in report.items] == [4, 5, 6]
    assert messages == list(range(10))
    monkeypatch.setattr(reports, "MAX_REASONS", 1)
    fewer = roi_import_preview(canvas=canvas, user=annotator, document=document)
    assert [group.reason for group in fewer.groups[1:]] == ["other reasons"] * 2


def test_omitted_and_repaired_objects_are_reported(canvas: Canvas, annotator: User) -> None:
    raised = [[10, 10, 5], [90, 10, 5], [90, 80, 5], [10, 80, 5]]
    document = [feature({"type": "Polygon", "coordinates": [raised]})]
    (item,) = roi_import(canvas=canvas, user=annotator, document=document).items
    assert item.notes == ("Z coordinates left out", "open ring closed")
    assert Roi.objects.get().geometry == box(10, 10, 90, 80)


def test_classes_the_lab_lacks_are_mapped_by_who_may_not_create_them(
    canvas: Canvas, annotator: User, manager: User
) -> None:
    label_set_ensure(lab=canvas.lab)
    tumor = Label.objects.get(name="Tumor")
    document = [
        feature(box(n, 0, n + 9, 9), classification=name)
        for n, name in enumerate(("tumor", "TU", "Junk", "Other", "Other"))
    ]
    labels = {"tu": tumor.pk, "junk": None}
    choices = ImportChoices(labels=labels)
    seen = roi_import_preview(canvas=canvas, user=annotator, document=document, choices=choices)
    assert outcomes(seen) == {
        "tumor": ("known", "Tumor"),
        "TU": ("mapped", "Tumor"),
        "Junk": ("none", ""),
        "Other": ("refused", ""),
    }
    assert (seen.count("refused"), seen.classes[3].count) == (2, 2)
    done = roi_import(canvas=canvas, user=annotator, document=document, choices=choices)
    assert outcomes(done) == outcomes(seen)
    assert [roi.label for roi in Roi.objects.order_by("left")] == [tumor, tumor, None]
    assert outcomes(roi_import(canvas=canvas, user=manager, document=document))["Other"] == (
        "created",
        "Other",
    )


def test_anothers_label_is_no_choice(
    canvas: Canvas, annotator: User, other_lab: Any, stranger: User
) -> None:
    foreign = Label.objects.create(
        lab=other_lab, label_set=label_set_ensure(lab=other_lab), name="Foreign"
    )
    report = roi_import(
        canvas=canvas,
        user=annotator,
        document=[feature(classification="A")],
        choices=ImportChoices(labels={"a": foreign.pk}),
    )
    assert report.classes[0].problem == "the label chosen for it is not a label of this lab."
    assert report.count("refused") == 1


def test_markup_in_names_stays_text(canvas: Canvas, manager: User) -> None:
    name = '<img src=x onerror="alert(1)">'
    roi_import(canvas=canvas, user=manager, document=[feature(name=name, classification=name)])
    roi = Roi.objects.select_related("label").get()
    assert (roi.name, roi.label and roi.label.name) == (name, name)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(chunk=st.integers(1, 7), count=st.integers(0, 12))
def test_the_size_of_the_parts_changes_nothing(
    chunk: int, count: int, canvas: Canvas, annotator: User
) -> None:
    from portal.annotations.services import reading

    Roi.all_objects.all().delete()
    document = [feature(box(n % 5, 0, n % 5 + 9, 9)) for n in range(count)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "CHUNK", chunk)
        report = roi_import(canvas=canvas, user=annotator, document=document)
    assert report.count("created") == Roi.objects.count() == min(count, 5)
    assert report.count("refused") == max(0, count - 5)  # the same objects again


# --- over REST ------------------------------------------------------------------------------------


def test_over_rest_a_preview_a_table_and_a_mapping(
    canvas: Canvas, annotator: User, manager: User, api_as: Any
) -> None:
    tumor = label_create(lab=canvas.lab, user=manager, name="Carcinoma")
    url = f"/api/v1/canvases/{canvas.pk}/roi-file/"
    document = [
        feature(box(1, 1, 30, 30), classification="K"),
        feature(box(-9, 1, 30, 30), classification="K"),
        feature({"type": "Circle", "coordinates": [1, 1]}),
    ]
    api = api_as(annotator)
    seen = api.post(f"{url}?dry_run=1", document, format="json").json()
    assert (seen["is_preview"], seen["id"], seen["refused"]) == (True, None, 3)
    assert seen["classes"][0]["outcome"] == "refused"
    query = f"{url}?labels={json.dumps({'K': str(tumor.pk)})}"
    table = api.post(f"{query}&dry_run=1&report=csv", document, format="json")
    lines = b"".join(table.streaming_content).decode().splitlines()
    assert lines[0] == "feature,status,notes,reason,shape"
    cells = [line.split(",")[:2] for line in lines[1:]]
    assert cells == [["1", "created"], ["2", "created"], ["3", "refused"]]
    assert not Roi.objects.exists()
    done = api.post(query, document, format="json").json()
    assert (done["created"], done["repaired"], done["classes"][0]["outcome"]) == (2, 1, "mapped")
    for wrong in ("labels=[]", 'labels={"K":5}', "report=csv", "labels={"):
        assert api.post(f"{url}?{wrong}", document, format="json").status_code == 400


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'[{"type": "Feature"', "invalid JSON at character 1"),
        (b"[" * 10_000, "nested too deeply"),
        (b'{"type":"FeatureCollection","crs":{"name":"EPSG:4326"},"features":[]}', "EPSG:4326"),
        (b'{"type":"FeatureCollection","features":[],"crs":{"name":"EPSG:4326"}}', "EPSG:4326"),
        (b"<html>", "not recognised"),
    ],
)
def test_an_unreadable_document_changes_nothing(
    canvas: Canvas, annotator: User, api_as: Any, body: bytes, expected: str
) -> None:
    url = f"/api/v1/canvases/{canvas.pk}/roi-file/"
    answer = api_as(annotator).post(url, body, content_type="application/geo+json")
    assert answer.status_code == 400 and expected in answer.json()["detail"]
    assert not Roi.objects.exists() and not RoiImport.objects.exists()


@pytest.mark.parametrize("query", ["", "?dry_run=1", "?background=1", "?dry_run=1&report=csv"])
def test_a_request_without_a_body_is_refused(
    canvas: Canvas, annotator: User, api_as: Any, query: str
) -> None:
    answer = api_as(annotator).post(f"/api/v1/canvases/{canvas.pk}/roi-file/{query}")
    assert answer.status_code == 400 and "no document" in answer.json()["detail"]


def test_a_document_beyond_the_limit_is_refused_by_its_length(
    canvas: Canvas, annotator: User, api_as: Any
) -> None:
    url = f"/api/v1/canvases/{canvas.pk}/roi-file/"
    answer = api_as(annotator).post(
        url, b"[]", content_type="application/geo+json", CONTENT_LENGTH=str(3 * 2**30)
    )
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")


def test_more_than_two_thousand_features_go_in_one_request(canvas: Canvas, annotator: User) -> None:
    document = [feature(box(n % 90, n // 90, n % 90 + 9, n // 90 + 9)) for n in range(2_100)]
    report = roi_import_preview(canvas=canvas, user=annotator, document=document)
    assert (report.total, report.count("created"), report.items) == (2_100, 2_100, ())
