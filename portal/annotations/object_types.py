"""Object types of QuPath."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OBJECT_TYPES = ("annotation", "detection", "cell", "tile", "tmaCore")
_TYPE_KEYS = ("objectType", "object_type", "type")
_OLD_TYPES = {  # names that other versions of QuPath write or accept
    "PathAnnotationObject": "annotation",
    "PathCellObject": "cell",
    "PathDetectionObject": "detection",
    "PathRootObject": "root",
    "PathTileObject": "tile",
    "TMACoreObject": "tmaCore",
    "tma_core": "tmaCore",
    "unknown": "annotation",
}


def object_type_of(raw: Mapping[str, Any], properties: Mapping[str, Any]) -> object:
    """Object type by QuPath's rules: version 0.2 wrote it as the id. An unknown ``type`` is
    ignored."""
    names = (*OBJECT_TYPES, *_OLD_TYPES)
    for key in _TYPE_KEYS:
        value = properties.get(key)
        if value is not None and (key != "type" or value in names):
            return _OLD_TYPES.get(value, value) if isinstance(value, str) else value
    old = raw.get("id")
    return _OLD_TYPES.get(old, "annotation") if isinstance(old, str) else "annotation"
