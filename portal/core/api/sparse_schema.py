"""OpenAPI of sparse answers: where ``fields`` is taken, objects may lack what was not asked for."""

from __future__ import annotations

from typing import Any

from ml.types import JsonObject
from portal.core.api.fields import PARAMETER

_SCHEMAS = "#/components/schemas/"
_SUCCESS, _JSON = "200", "application/json"


def sparse_add(result: JsonObject, generator: Any, request: Any, public: bool) -> Any:
    """A step of drf-spectacular: each object that ``fields`` cuts is whole, or its sparse twin.

    The twin is written out of the whole, as drf-spectacular writes that of a ``PATCH``. The whole
    comes first, so that a client generated from the schema takes its types from it.
    """
    schemas = result["components"]["schemas"]
    for operations in result["paths"].values():
        answer = operations.get("get", {})
        if any(one["name"] == PARAMETER for one in answer.get("parameters", [])):
            media = answer["responses"][_SUCCESS]["content"][_JSON]
            media["schema"] = _cut(media["schema"], schemas)
    return result


def _cut(schema: JsonObject, schemas: JsonObject) -> JsonObject:
    """Of a list its members, of a page its results, of an object itself."""
    if schema.get("type") == "array":
        return schema | {"items": _cut(schema["items"], schemas)}
    if "anyOf" in schema:
        return schema  # of a page that another operation answers too
    name = schema["$ref"].removeprefix(_SCHEMAS)
    if name.startswith("Paginated"):
        properties = schemas[name]["properties"]
        properties["results"] = _cut(properties["results"], schemas)
        return schema
    sparse = f"Sparse{name}"
    schemas.setdefault(sparse, _twin(schemas[name], name))
    return {"anyOf": [schema, {"$ref": _SCHEMAS + sparse}]}


def _twin(whole: JsonObject, name: str) -> JsonObject:
    kept = {key: value for key, value in whole.items() if key not in {"required", "description"}}
    return kept | {"description": f"{name} with the fields that `{PARAMETER}` names."}
