"""GeoJSON that is exported, imported and exported again stays what it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.annotations.models import Label, Roi
from portal.annotations.services.exchange import roi_import
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas
from portal.labs.models import Lab, User
from tests.portal.annotations.support import box, collection, exported, feature, statuses

_text = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=30)
_boxes = st.tuples(st.floats(0, 400), st.floats(0, 300), st.floats(2, 500), st.floats(2, 400)).map(
    lambda v: box(round(v[0], 2), round(v[1], 2), round(v[0] + v[2], 2), round(v[1] + v[3], 2))
)
_features = st.builds(
    lambda id, geometry, name, label, locked, metadata, measured: feature(
        geometry,
        id=str(id),
        name=name,
        isLocked=locked,
        metadata=metadata,
        measurements=measured,
        **({"classification": {"name": label, "color": [1, 2, 3]}} if label else {}),
    ),
    st.uuids(version=4),
    _boxes,
    _text,
    st.sampled_from(["", "Tumor", "Gland: Positive"]),
    st.booleans(),
    st.dictionaries(_text, _text, max_size=2),
    st.dictionaries(st.sampled_from(["A", "B"]), st.floats(allow_nan=True), max_size=2),
)


@pytest.mark.slow
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(_features, min_size=1, max_size=3, unique_by=lambda raw: str(raw["id"])))
def test_export_and_import_are_a_round_trip(
    lab: Lab, canvas: Canvas, manager: User, features: list[dict[str, Any]]
) -> None:
    Roi.objects.all().delete()
    report = roi_import(canvas=canvas, user=manager, document=collection(*features))
    assert set(statuses(report)) == {"created"}
    document = exported(canvas)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    again = roi_import(canvas=canvas, user=manager, document=document)
    assert set(statuses(again)) == {"unchanged"}
    Roi.objects.all().delete()
    roi_import(canvas=canvas, user=manager, document=document)
    assert exported(canvas) == document


def test_names_of_rois_drawn_here_survive(canvas: Canvas, annotator: User, label: Label) -> None:
    roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9), name='"ß" <x>', label=label)
    properties = exported(canvas)["features"][0]["properties"]
    assert (properties["name"], properties["classification"]["name"]) == ('"ß" <x>', "Tumor")
