"""QuPath's GeoJSON, read feature by feature."""

from __future__ import annotations

import pytest

from portal.annotations.qupath import FeatureError, feature_read
from tests.portal.annotations.support import feature


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
    found = feature_read(old)
    assert found.id is None
    assert found.foreign == {"objectType": "detection", "measurements": {"Circularity": 0.5}}


def test_properties_that_are_no_object_are_refused() -> None:
    with pytest.raises(FeatureError, match="properties"):
        feature_read({"type": "Feature", "geometry": {}, "properties": [1]})


def test_a_large_number_stays_one_when_it_comes_back_with_all_its_zeros() -> None:
    measured = {"As PostgreSQL reads it back": 10**305, "Beyond every float": 10**400}
    found = feature_read(feature(measurements=measured)).foreign["measurements"]
    assert found["As PostgreSQL reads it back"] == 1e305
    assert found["Beyond every float"] == "1" + 39 * "0"
