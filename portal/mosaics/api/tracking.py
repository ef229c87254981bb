"""``/api/v1/rois/{id}/track/``: an ROI of a video followed over its frames."""

from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.selectors.rois import roi_get
from portal.core.api.etags import IF_MATCH_VERSION, version_expected
from portal.core.api.views import ApiView
from portal.core.http.acting import set_audited_id
from portal.core.http.audit_rules import audited, rejections
from portal.jobs.api import job_accepted
from portal.jobs.serializers import JobSerializer
from portal.labs.models import TokenArea
from portal.labs.requests import user_of
from portal.mosaics.services.tracking import MAX_TRACKED_FRAMES, roi_track


class RoiTrackSerializer(serializers.Serializer[Any]):
    """Start frame and direction of the tracking."""

    from_index = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=2**31 - 1,
        help_text="A key frame, or the frame of the ROI itself",
    )
    backward = serializers.BooleanField(required=False, default=False)
    frames = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_TRACKED_FRAMES, default=MAX_TRACKED_FRAMES
    )


@audited(POST=rejections("roi.saved", "roi", "roi_id"))
class RoiTrackApi(ApiView):
    """Follow an ROI from a key frame on, by key points."""

    area = TokenArea.ROIS

    @extend_schema(
        request=RoiTrackSerializer,
        responses={202: OpenApiResponse(JobSerializer, "`Location` names the job")},
        parameters=[IF_MATCH_VERSION],
        summary="Follow an ROI over the frames of its video",
    )
    def post(self, request: Request, roi_id: uuid.UUID) -> Response:
        """Submit the job that tracks the ROI and writes key frames up to the next one set by hand,
        the end of the span, or the frame in which it is lost.

        The job's `outcome` names that frame and is empty if the ROI was not lost.
        """
        user = user_of(request)
        roi = roi_get(user, roi_id, with_shared=False)
        set_audited_id(request, roi.pk)
        serializer = RoiTrackSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        job = roi_track(
            roi=roi,
            user=user,
            expected_version=version_expected(request),
            **serializer.validated_data,
        )
        return job_accepted(job, request)
