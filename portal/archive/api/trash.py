"""REST: restore objects in the trash, or delete them permanently."""

from __future__ import annotations

import uuid

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from portal.archive.models import TrashEntry
from portal.archive.selectors.trash import trash_get, trash_list, trash_rows
from portal.archive.serializers.trash import TrashEntrySerializer
from portal.archive.services.trash import trash_purge, trash_restore
from portal.core.api.views import ApiViewSet
from portal.core.http.audit_rules import AuditRule, audited, rejections
from portal.labs.models import TokenArea
from portal.labs.requests import UUID_REGEX, user_of


@audited(
    list=AuditRule("trash.viewed"),
    destroy=rejections("trash.purged"),
    restore=rejections("trash.restored"),
)
class TrashViewSet(ApiViewSet[TrashEntry]):
    """Trash of the labs in which one may restore. Regions: `GET /rois/?deleted=true`; events
    of videos: `GET /video-events/?deleted=true`."""

    area = TokenArea.CASES
    serializer_class = TrashEntrySerializer  # type: ignore[assignment]  # of a row of the entry
    queryset = TrashEntry.objects.none()
    lookup_value_regex = UUID_REGEX

    def get_queryset(self) -> QuerySet[TrashEntry]:
        """Restrict to entries that the user may restore."""
        return trash_list(user_of(self.request))

    def list(self, request: Request) -> Response:
        """List cases, slides, videos and mosaics in the trash, newest first."""
        page = self.paginate_queryset(self.get_queryset()) or []
        rows = self.get_serializer(trash_rows(page), many=True)
        return self.get_paginated_response(rows.data)

    @extend_schema(request=None, responses={204: None})
    @action(detail=True, methods=["post"])
    def restore(self, request: Request, pk: str) -> Response:
        """Restore an entry with everything that was deleted with it; 409 if this is impossible."""
        user = user_of(request)
        trash_restore(entry=trash_get(user, uuid.UUID(pk)), user=user)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete an entry for good. Managers only."""
        user = user_of(request)
        trash_purge(entry=trash_get(user, uuid.UUID(pk)), user=user)
        return Response(status=status.HTTP_204_NO_CONTENT)
