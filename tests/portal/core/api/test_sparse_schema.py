"""The schema of answers that ``fields`` may cut."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from portal.core.api.sparse_schema import sparse_add

CASE, PAGE = {"$ref": "#/components/schemas/Case"}, {"$ref": "#/components/schemas/PaginatedCases"}
EITHER = {"anyOf": [CASE, {"$ref": "#/components/schemas/SparseCase"}]}
WHOLE = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}


def _added(*answers: Any, parameter: str = "fields") -> Any:
    page = {"type": "object", "properties": {"results": {"type": "array", "items": dict(CASE)}}}
    paths = {
        str(at): {
            "get": {
                "parameters": [{"name": parameter}],
                "responses": {"200": {"content": {"application/json": {"schema": one}}}},
            },
            "post": {"responses": {}},
        }
        for at, one in enumerate(answers)
    }
    schemas = {"Case": copy.deepcopy(WHOLE), "PaginatedCases": page}
    return sparse_add({"paths": paths, "components": {"schemas": schemas}}, None, None, True)


@pytest.mark.parametrize(
    ("answer", "cut"),
    [(CASE, EITHER), ({"type": "array", "items": CASE}, {"type": "array", "items": EITHER})],
)
def test_an_object_is_whole_or_of_its_sparse_twin(answer: Any, cut: Any) -> None:
    made = _added(answer)
    assert made["paths"]["0"]["get"]["responses"]["200"]["content"]["application/json"] == {
        "schema": cut
    }
    schemas = made["components"]["schemas"]
    assert schemas["Case"] == WHOLE, "what a POST answers is never cut"
    assert "required" not in schemas["SparseCase"]
    assert schemas["SparseCase"]["properties"] == WHOLE["properties"]


def test_a_page_has_its_links_and_its_results_may_be_sparse_however_many_answer_it() -> None:
    schemas = _added(PAGE, PAGE)["components"]["schemas"]
    assert schemas["PaginatedCases"]["properties"]["results"] == {"type": "array", "items": EITHER}


def test_what_takes_no_fields_is_whole() -> None:
    assert set(_added(CASE, parameter="cursor")["components"]["schemas"]) == {
        "Case",
        "PaginatedCases",
    }
