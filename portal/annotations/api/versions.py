"""Responses with rows that have versions: the version is the ETag."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import status
from rest_framework.response import Response

from ml.types import JsonObject
from portal.annotations.services.versions import Row
from portal.core.api.etags import version_tag
from portal.core.api.problems import ProblemSerializer
from portal.core.api.views import ApiViewSet
from portal.core.errors import StaleVersionError
from portal.labs.models import TokenArea
from portal.labs.requests import UUID_REGEX

ETAG_HEADER = OpenApiParameter(
    "ETag", str, OpenApiParameter.HEADER, response=True, description="The version, in quotes."
)


def stale_response(noun: str) -> OpenApiResponse:
    """The response 412 in the schema."""
    text = f"Stale: the body also has `current_version` and `current`, the {noun} as it is."
    return OpenApiResponse(ProblemSerializer, text)


class VersionedApi(ApiViewSet[Row]):
    """Rows that are changed with If-Match, deleted, restored, never overwritten."""

    area = TokenArea.ROIS
    has_own_tags = True
    filter_backends = ()
    lookup_value_regex = UUID_REGEX

    def find(self, pk: uuid.UUID) -> Row:
        """A row that the person may see, deleted or not."""
        raise NotImplementedError

    def represent(self, row: Row, notes: Sequence[str]) -> JsonObject:
        """JSON of a row."""
        raise NotImplementedError

    def answer(
        self, row: Row, *, notes: Sequence[str] = (), status: int = status.HTTP_200_OK
    ) -> Response:
        """The row, tagged with its version."""
        headers = {"ETag": version_tag(row.version)}
        return Response(self.represent(row, notes), status=status, headers=headers)

    def creation(self, row: Row, *, created: bool, notes: Sequence[str] = ()) -> Response:
        """201 with the address of the new row; 200 where it was there already."""
        code = status.HTTP_201_CREATED if created else status.HTTP_200_OK
        answer = self.answer(row, notes=notes, status=code)
        answer["Location"] = self.request.build_absolute_uri(f"{self.request.path}{row.pk}/")
        return answer

    def deletion(self, row: Row) -> Response:
        """204 with the version that the deletion made."""
        headers = {"ETag": version_tag(row.version)}
        return Response(status=status.HTTP_204_NO_CONTENT, headers=headers)

    @contextmanager
    def current_if_stale(self, row: Row) -> Iterator[None]:
        """Add the row as it is now to the error of a stale write."""
        try:
            yield
        except StaleVersionError as error:
            now = self.find(row.pk)
            error.details |= {"current_version": now.version, "current": self.represent(now, ())}
            raise
