"""REST: what was deleted, to restore it or to delete it for good."""

from __future__ import annotations

import uuid

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from portal.archive.models import BinEntry
from portal.archive.services import bin_purge, bin_restore
from portal.core.api.views import ApiView, ApiViewSet
from portal.keeping import selectors, services
from portal.keeping.serializers import BinEntrySerializer
from portal.labs.models import TokenArea
from portal.labs.requests import UUID_REGEX, user_of


class BinViewSet(ApiViewSet[BinEntry]):
    """The bins of the labs in which one may restore. Regions: `GET /rois/?deleted=true`."""

    area = TokenArea.CASES
    serializer_class = BinEntrySerializer  # type: ignore[assignment]  # of a row of the entry
    queryset = BinEntry.objects.none()
    lookup_value_regex = UUID_REGEX

    def get_queryset(self) -> QuerySet[BinEntry]:
        """What this user may restore."""
        return selectors.bin_list(user_of(self.request))

    def list(self, request: Request) -> Response:
        """Cases, slides, videos and mosaics in the bin, the newest first."""
        page = self.paginate_queryset(self.get_queryset()) or []
        rows = self.get_serializer(selectors.bin_rows(page), many=True)
        return self.get_paginated_response(rows.data)

    @extend_schema(request=None, responses={204: None})
    @action(detail=True, methods=["post"])
    def restore(self, request: Request, pk: str) -> Response:
        """Bring back what was deleted, with all that it took along. 409 if it cannot be."""
        user = user_of(request)
        bin_restore(entry=selectors.bin_get(user, uuid.UUID(pk)), user=user)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete for good; managers only."""
        user = user_of(request)
        bin_purge(entry=selectors.bin_get(user, uuid.UUID(pk)), user=user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class RoiPurgeApi(ApiView):
    """A deleted ROI, deleted for good."""

    area = TokenArea.ROIS

    @extend_schema(
        request=None,
        responses={204: None},
        parameters=[OpenApiParameter("roi_id", uuid.UUID, OpenApiParameter.PATH)],
        summary="Delete a deleted ROI for good",
    )
    def post(self, request: Request, roi_id: uuid.UUID) -> Response:
        """With its history, vectors and follow-ups; managers only. 404 while it is not deleted."""
        user = user_of(request)
        services.roi_purge(roi=selectors.roi_in_bin(user, roi_id), user=user)
        return Response(status=status.HTTP_204_NO_CONTENT)
