"""QuPath's GeoJSON, read feature by feature."""

from __future__ import annotations

from typing import Any

import pytest

from portal.annotations.models import Roi
from portal.annotations.qupath import FeatureError, feature_read, feature_write
from tests.portal.annotations.support import box, feature


def test_other_spellings_of_objects_are_read() -> None:
    old = feature()
    old["properties"] = {
        "object_type": "detection",
        "measurements": [
            {"name": "Area px^2", "value": 1.0},
            {"name": "Circularity", "value": 0.5},
        ],
    }
    old["id"] = "PathDetectionObject"
    read_feature = feature_read(old)
    assert read_feature.id is None
    assert read_feature.foreign == {"objectType": "detection", "measurements": {"Circularity": 0.5}}


def test_properties_that_are_no_object_are_refused() -> None:
    with pytest.raises(FeatureError, match="properties"):
        feature_read({"type": "Feature", "geometry": {}, "properties": [1]})


def test_a_large_number_stays_one_when_it_comes_back_with_all_its_zeros() -> None:
    measured = {"As PostgreSQL reads it back": 10**305, "Beyond every float": 10**400}
    measurements = feature_read(feature(measurements=measured)).foreign["measurements"]
    assert measurements["As PostgreSQL reads it back"] == 1e305
    assert measurements["Beyond every float"] == "1" + 39 * "0"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"properties": {"objectType": "cell"}}, "cell"),
        ({"properties": {"object_type": "tile"}}, "tile"),
        ({"properties": {"type": "tma_core", "isMissing": True}}, "tmaCore"),
        ({"properties": {"type": "gland"}}, None),  # of another program: says nothing
        ({"id": "PathDetectionObject"}, "detection"),  # QuPath 0.2
        ({"id": "PathAnnotationObject", "properties": {}}, None),
    ],
)
def test_the_type_of_an_object_is_read_as_qupath_reads_it(
    written: dict[str, Any], expected: str | None
) -> None:
    result = feature_read({"type": "Feature", "geometry": box(1, 1, 9, 9), **written})
    assert result.foreign.get("objectType") == expected
    roi = Roi(geometry=box(1, 1, 9, 9), foreign=result.foreign, area_px=64)
    properties = feature_write(roi, mpp_x=None, mpp_y=None)["properties"]
    assert properties["objectType"] == (expected or "annotation")
    assert properties.get("isMissing") is (True if expected == "tmaCore" else None)


def test_an_object_without_a_place_is_refused() -> None:
    with pytest.raises(FeatureError, match="'root'"):
        feature_read({"type": "Feature", "geometry": None, "id": "PathRootObject"})
