"""REST: delete ROIs and events of videos for good."""

from __future__ import annotations

import uuid

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.selectors.trash import roi_in_trash, video_event_in_trash
from portal.annotations.services.trash import ROI_PURGER, VIDEO_EVENT_PURGER
from portal.core.api.views import ApiView
from portal.core.http.audit_rules import audited, rejections
from portal.labs.models import TokenArea
from portal.labs.requests import user_of


@audited(POST=rejections("roi.purged", "roi", "roi_id"))
class RoiPurgeApi(ApiView):
    """Remove a deleted ROI for good."""

    area = TokenArea.ROIS

    @extend_schema(
        request=None,
        responses={204: None},
        parameters=[OpenApiParameter("roi_id", uuid.UUID, OpenApiParameter.PATH)],
        summary="Delete an ROI from the trash for good",
    )
    def post(self, request: Request, roi_id: uuid.UUID) -> Response:
        """Remove a deleted ROI with its history, vectors and follow-ups.

        Managers only; 404 if it is not deleted.
        """
        user = user_of(request)
        ROI_PURGER.purge(roi_in_trash(user, roi_id), user=user)
        return Response(status=status.HTTP_204_NO_CONTENT)


@audited(POST=rejections("video_event.purged", "video_event", "event_id"))
class VideoEventPurgeApi(ApiView):
    """Remove a deleted event of a video for good."""

    area = TokenArea.ROIS

    @extend_schema(
        request=None,
        responses={204: None},
        parameters=[OpenApiParameter("event_id", uuid.UUID, OpenApiParameter.PATH)],
        summary="Delete an event from the trash for good",
    )
    def post(self, request: Request, event_id: uuid.UUID) -> Response:
        """Remove a deleted event with its history. Managers only; 404 if it is not deleted."""
        user = user_of(request)
        VIDEO_EVENT_PURGER.purge(video_event_in_trash(user, event_id), user=user)
        return Response(status=status.HTTP_204_NO_CONTENT)
