"""Sparse answers: ``?fields=id,name`` leaves out the rest of each object."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.errors import InvalidInputError

PARAMETER = "fields"
SPARSE_ACTIONS = ("list", "retrieve")
DESCRIBED = OpenApiParameter(
    PARAMETER, str, description="Names of fields, separated by commas; the others are left out"
)


class SparseFields:
    """Of a view set whose lists and details have one serializer. Stands before its other bases."""

    action: str

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse unknown names before anything is read."""
        super().initial(request, *args, **kwargs)  # type: ignore[misc] # of the view
        self._wanted(request)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Leave out what was not asked for."""
        if isinstance(response, Response) and response.status_code == 200:
            wanted = self._wanted(request)
            if wanted is not None:
                response.data = _sparse(response.data, wanted)
        return super().finalize_response(  # type: ignore[misc] # of the view
            request, response, *args, **kwargs
        )

    def _wanted(self, request: Request) -> frozenset[str] | None:
        """The names that were asked for; None where all are."""
        said = request.GET.get(PARAMETER)
        if said is None or self.action not in SPARSE_ACTIONS:
            return None
        names = frozenset(name.strip() for name in said.split(","))
        known = set(self.get_serializer_class()().fields)  # type: ignore[attr-defined] # the view's
        unknown = sorted(names - known)
        if unknown:
            raise InvalidInputError(
                f"fields: {', '.join(unknown)[:200] or 'nothing'} is no field here; known are"
                f" {', '.join(sorted(known))}.",
                code="unknown-field",
                details={"unknown": unknown[:20], "known": sorted(known)},
            )
        return names


def _sparse(data: Any, wanted: frozenset[str]) -> Any:
    """Of a page its results, of a list its members, of an object itself."""
    if isinstance(data, list):
        return [_sparse(one, wanted) for one in data]
    if isinstance(data, dict) and isinstance(data.get("results"), list):
        return data | {"results": _sparse(data["results"], wanted)}
    return {name: value for name, value in data.items() if name in wanted}
