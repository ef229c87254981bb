"""QuPath's GeoJSON (0.5 - 0.7): one ROI to a feature, a document to features. No database here."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ml.types import JsonObject
from portal.annotations.geometry import area_um2, brief
from portal.annotations.marks import mark_kind, mark_measures
from portal.annotations.models import Roi, RoiKind
from portal.annotations.object_types import OBJECT_TYPES, object_type_of
from portal.annotations.properties import DESCRIPTION_KEY, metadata_read
from portal.core.errors import InvalidInputError
from portal.core.text import name_clean

DEEPEST = 16  # a nucleus of several parts nests seven deep
MAX_FOREIGN_BYTES = 32_768  # a few hundred measurements; a row with more would slow every list
CARRIED = ("color", "measurements", "metadata", "nucleusGeometry", "isMissing")
AREA_PX, AREA_UM = "Area px^2", "Area um^2"
MEASURED = {"length_px": "Length px", "length_um": "Length um", "points": "Num points"}
_SHOWN = 40  # characters of a name in a message
REVIEW_KEY = "tessera.review_state"
TRACK_KEY = "tessera.track"
"""Key frames as JSON text: QuPath keeps texts of ``metadata``, and nothing it does not know."""


class FeatureError(Exception):
    """One feature cannot become an ROI; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An entry of a document that cannot become an ROI.

    Attributes:
        shape: names it in messages.
    """

    reason: str
    shape: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Feature:
    """An object of a document, as far as an ROI can hold it.

    Attributes:
        t: time index of its plane; 0 unless the file says otherwise.
        label: name of its class (``Tumor: Positive`` for a derived one), or empty.
        color: the class' colour ``#rrggbb``, or None.
        foreign: what is only carried.
        description, properties: None if the format has none.
        track: key frames on other frames than its own, unchecked.
        notes: Content that could not be stored.
    """

    id: uuid.UUID | None
    geometry: object
    t: int
    name: str
    label: str
    color: str | None
    foreign: JsonObject = field(default_factory=dict)
    description: str | None = None
    properties: dict[str, str] | None = None
    kind: str = RoiKind.POLYGON
    is_locked: bool = False
    track: object = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EventFeature:
    """An event of a video in a document: a name on frames, without an outline.

    Attributes:
        id: None if the format has none.
        first_index, last_index: frames, unchecked.
    """

    id: uuid.UUID | None
    name: str
    note: str
    first_index: int
    last_index: int


def features_of(document: object) -> list[Any]:
    """The features of a FeatureCollection, a bare array, or a single Feature."""
    features: object = document
    if isinstance(document, Mapping):
        kind = document.get("type")
        if kind == "FeatureCollection":
            features = document.get("features")
        elif kind == "Feature":
            features = [document]
        else:
            raise InvalidInputError(
                f"GeoJSON: expected a FeatureCollection or an array of features, got {brief(kind)}."
            )
    if not isinstance(features, list):
        raise InvalidInputError("GeoJSON: expected a FeatureCollection or an array of features.")
    return features


def class_of(raw: object) -> tuple[str, str | None]:
    """Name and colour of a feature's class; empty if it has none."""
    if isinstance(raw, Feature):
        return raw.label, raw.color
    properties = raw.get("properties") if isinstance(raw, Mapping) else None
    return _class(properties.get("classification") if isinstance(properties, Mapping) else None)


def describe_feature(raw: object) -> str:
    """Describe a feature for messages by its geometry type, name and class, where it has them."""
    if isinstance(raw, Problem):
        return raw.shape
    if isinstance(raw, EventFeature):
        return feature_description("Event", raw.name)
    if isinstance(raw, Feature):
        geometry, name, label = raw.geometry, raw.name, raw.label
    else:
        feature = raw if isinstance(raw, Mapping) else {}
        properties = feature.get("properties")
        geometry = feature.get("geometry")
        name, _ = name_read(properties.get("name") if isinstance(properties, Mapping) else None)
        label, _ = class_of(raw)
    kind = geometry.get("type") if isinstance(geometry, Mapping) else None
    return feature_description(str(kind or ""), name, label)


def feature_description(kind: str, name: str = "", label: str = "") -> str:
    """Kind, name and class of a shape as a few words: ``Polygon “ROI 1” (Tumor)``."""
    words = (
        kind[:_SHOWN],
        f"“{name[:_SHOWN]}”" if name else "",
        f"({label[:_SHOWN]})" if label else "",
    )
    return one_line(" ".join(words))


def feature_read(raw: object) -> Feature:
    """Read one feature, in any of the spellings QuPath has used; a ``Feature`` is one already.

    Raises:
        FeatureError: it is not an object that an ROI can represent.
    """
    if isinstance(raw, Feature):
        return _metadata_to_properties(raw)
    if isinstance(raw, Problem):
        raise FeatureError(raw.reason)
    if not isinstance(raw, Mapping) or raw.get("type") != "Feature":
        raise FeatureError("not a GeoJSON Feature")
    properties = raw.get("properties") or {}
    if not isinstance(properties, Mapping):
        raise FeatureError("properties is not an object")
    object_type = object_type_of(raw, properties)
    if object_type not in OBJECT_TYPES:
        raise FeatureError(f"objectType {brief(object_type)} is not a region")
    geometry = raw.get("geometry")
    if not isinstance(geometry, Mapping):
        raise FeatureError("has no geometry")
    label, color = _class(properties.get("classification"))
    name, notes = name_read(properties.get("name"))
    foreign = _foreign(raw, properties, str(object_type))
    description, described, carried = metadata_read(foreign.pop("metadata", None))
    if carried:
        foreign["metadata"] = carried
    if len(json.dumps(foreign)) > MAX_FOREIGN_BYTES:
        foreign = {}
        notes = (*notes, f"measurements and metadata left out: over {MAX_FOREIGN_BYTES} bytes")
    return Feature(
        id=_uuid(raw.get("id")),
        geometry=_polygonal(geometry),
        t=_plane_t(geometry.get("plane")),
        name=name,
        label=label,
        color=color,
        foreign=foreign,
        description=description,
        properties=described,
        kind=RoiKind.ELLIPSE if geometry.get("isEllipse") is True else RoiKind.POLYGON,
        is_locked=properties.get("isLocked") is True,
        track=_track(properties.get("metadata")),
        notes=notes,
    )


def _metadata_to_properties(feature: Feature) -> Feature:
    """Convert another format's attributes to properties."""
    if feature.properties is not None or "metadata" not in feature.foreign:
        return feature
    _, properties, carried = metadata_read(feature.foreign["metadata"])
    foreign = {key: value for key, value in feature.foreign.items() if key != "metadata"}
    if carried:
        foreign["metadata"] = carried
    return replace(feature, properties=properties, foreign=foreign)


def _track(metadata: object) -> object:
    text = metadata.get(TRACK_KEY) if isinstance(metadata, Mapping) else None
    if not isinstance(text, str) or not text:
        return ()
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise FeatureError(f"metadata {TRACK_KEY} is not JSON") from None


def _uuid(value: object) -> uuid.UUID | None:
    try:
        return uuid.UUID(value) if isinstance(value, str) else None
    except ValueError:  # older files: "PathAnnotationObject"
        return None


def _polygonal(geometry: Mapping[str, Any]) -> object:
    """The geometry without QuPath's extras; a collection becomes one multipolygon."""
    if geometry.get("type") != "GeometryCollection":
        return {"type": geometry.get("type"), "coordinates": geometry.get("coordinates")}
    polygons: list[Any] = []
    members = geometry.get("geometries")
    for member in members if isinstance(members, list) else []:
        kind = member.get("type") if isinstance(member, Mapping) else None
        if kind == "Polygon":
            polygons.append(member.get("coordinates"))
        elif kind == "MultiPolygon" and isinstance(member.get("coordinates"), list):
            polygons.extend(member["coordinates"])
        else:
            raise FeatureError(f"a GeometryCollection with a {brief(kind)} is not an area")
    return {"type": "MultiPolygon", "coordinates": polygons}


def _plane_t(plane: object) -> int:
    if plane is None:
        return 0
    if not isinstance(plane, Mapping):
        raise FeatureError("plane is not an object")
    z, t = plane.get("z", 0), plane.get("t", 0)
    if z != 0:
        raise FeatureError(f"lies on the plane z = {brief(z)}; a canvas has one plane")
    if isinstance(t, bool) or not isinstance(t, int) or t < 0:
        raise FeatureError(f"plane t = {brief(t)} is not a frame index")
    return t


def _class(value: object) -> tuple[str, str | None]:
    """Name and colour of a classification: an object, a bare string, or derived names."""
    if isinstance(value, str):
        return one_line(value), None
    if not isinstance(value, Mapping):
        return "", None
    names = value.get("names")
    parts = names if isinstance(names, list) else [value.get("name")]
    name = ": ".join(one_line(part) for part in parts if isinstance(part, str))
    return name, _color(value.get("color", value.get("colorRGB")))


def _color(value: object) -> str | None:
    """``#rrggbb`` of [r, g, b] or of a packed (A)RGB integer."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"#{value & 0xFFFFFF:06x}"
    if isinstance(value, list) and len(value) >= 3:
        rgb = value[:3]
        if all(isinstance(c, int) and 0 <= c <= 255 for c in rgb):
            return "#{:02x}{:02x}{:02x}".format(*rgb)
    return None


def name_read(value: object) -> tuple[str, tuple[str, ...]]:
    """A line of at most 120 characters, and a note where it was longer."""
    if not isinstance(value, str):
        return "", ()
    name = one_line(value)
    if len(name) <= 120:
        return name, ()
    return name[:120].rstrip(), ("name shortened to 120 characters",)


def one_line(value: str) -> str:
    """A name as it is stored."""
    return name_clean(value)


def _foreign(
    raw: Mapping[str, Any],
    properties: Mapping[str, Any],
    object_type: str,
) -> JsonObject:
    carried = {key: properties[key] for key in CARRIED if properties.get(key)}
    if raw.get("nucleusGeometry"):
        carried["nucleusGeometry"] = raw["nucleusGeometry"]
    measurements = carried.get("measurements")
    if isinstance(measurements, list):
        pairs = [m for m in measurements if isinstance(m, Mapping) and "name" in m]
        carried["measurements"] = measurements = {str(m["name"]): m.get("value") for m in pairs}
    for key, derived in (
        ("measurements", (AREA_PX, AREA_UM, *MEASURED.values())),
        ("metadata", (REVIEW_KEY, TRACK_KEY)),
    ):
        if isinstance(carried.get(key), Mapping):
            carried[key] = {k: v for k, v in carried[key].items() if k not in derived}
        if key in carried and not carried[key]:
            del carried[key]
    if object_type != "annotation":
        carried["objectType"] = object_type
    return cast(JsonObject, _plain(carried))


def _plain(value: Any, levels: int = DEEPEST) -> Any:
    """Restrict a value to what every database stores as JSON: no NaN, no NUL, no lone surrogate,
    and no nesting deep enough to exhaust a reader's stack.
    """
    if levels < 0:
        raise FeatureError("it is nested too deeply")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, int) and abs(value) > 2**63:
        return _large(value)
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {_plain(str(key)): _plain(item, levels - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, levels - 1) for item in value]
    return value


def _large(value: int) -> float | str:
    """PostgreSQL writes 1e305 with all its zeros: read back it is the same number, not a text."""
    try:
        return float(value)
    except OverflowError:
        return str(value)[:40]


def feature_write(roi: Roi, *, mpp_x: float | None, mpp_y: float | None) -> JsonObject:
    """An ROI as QuPath writes it. Fields of an import are written too; the ROI's fields win."""
    foreign = roi.foreign
    geometry = dict(roi.geometry)
    if roi.frame_index:
        geometry["plane"] = {"c": -1, "z": 0, "t": roi.frame_index}
    if roi.shape == RoiKind.ELLIPSE:
        geometry["isEllipse"] = True
    properties: JsonObject = {"objectType": foreign.get("objectType", "annotation")}
    if roi.name:
        properties["name"] = roi.name
    if roi.label:
        properties["classification"] = _class_write(roi.label.name, roi.label.color)
    if "color" in foreign:
        properties["color"] = foreign["color"]
    if roi.is_locked:
        properties["isLocked"] = True
    if properties["objectType"] == "tmaCore":
        properties["isMissing"] = foreign.get("isMissing") is True
    properties["measurements"] = _mapping(foreign.get("measurements")) | _measures(
        roi, mpp_x, mpp_y
    )
    metadata = {**roi.properties, REVIEW_KEY: str(roi.review_state)}
    if roi.description:
        metadata[DESCRIPTION_KEY] = roi.description
    if roi.track:
        metadata[TRACK_KEY] = json.dumps(roi.track, separators=(",", ":"))
    properties["metadata"] = _mapping(foreign.get("metadata")) | metadata
    feature = {"type": "Feature", "id": str(roi.pk), "geometry": geometry, "properties": properties}
    if "nucleusGeometry" in foreign:
        feature["nucleusGeometry"] = foreign["nucleusGeometry"]
    return feature


def _measures(roi: Roi, mpp_x: float | None, mpp_y: float | None) -> dict[str, float | int]:
    if mark_kind(roi.geometry):
        measures = mark_measures(roi.geometry, mpp_x=mpp_x, mpp_y=mpp_y)
        return {MEASURED[key]: value for key, value in measures.items() if value is not None}
    um2 = area_um2(roi.area_px, mpp_x, mpp_y)
    return {AREA_PX: roi.area_px} | ({AREA_UM: um2} if um2 is not None else {})


def _mapping(value: object) -> JsonObject:
    return dict(value) if isinstance(value, Mapping) else {}


def _class_write(name: str, color: str) -> JsonObject:
    rgb = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    if ": " in name:
        return {"names": name.split(": "), "color": rgb}
    return {"name": name, "color": rgb}


def document_write(features: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A FeatureCollection, feature by feature."""
    yield '{"type":"FeatureCollection","features":['
    separator = "\n"
    for feature in features:
        yield separator + json.dumps(feature, ensure_ascii=False, separators=(",", ":"))
        separator = ",\n"
    yield "\n]}\n"
