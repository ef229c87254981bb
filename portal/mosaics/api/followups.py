"""``/api/v1/followups/``: a place of one examination looked for in another."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.selectors.rois import roi_get
from portal.archive.models import ItemState
from portal.archive.selectors.canvases import canvas_get
from portal.core.api.views import ApiViewSet
from portal.core.http.acting import set_audited_id
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited
from portal.core.http.files import bytes_response
from portal.jobs.api import job_answered
from portal.labs.models import TokenArea
from portal.labs.requests import UUID_REGEX, user_of
from portal.mosaics.models import Followup
from portal.mosaics.selectors import followups
from portal.mosaics.serializers.followups import (
    FollowupAcceptedSerializer,
    FollowupCreateSerializer,
    FollowupSerializer,
)
from portal.mosaics.services.followups import followup_create

JPEG = {(200, "image/jpeg"): OpenApiTypes.BINARY}


class FollowupFilter(filters.FilterSet):
    """Filters of the list."""

    roi = filters.UUIDFilter(field_name="roi_id")
    target = filters.UUIDFilter(field_name="target_id")
    state = filters.ChoiceFilter(choices=ItemState.choices)

    class Meta:
        model = Followup
        fields = ("roi", "target", "state")


@audited(
    list=AuditRule("followup.listed"),
    create=AuditRule("followup.requested", "roi"),
    retrieve=AuditRule("followup.viewed", "followup", "pk", every_s=MINUTE_S),
    picture=AuditRule("followup.viewed", "followup", "pk", every_s=HOUR_S),
)
class FollowupViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiViewSet[Any]):
    """Places of one examination looked for in another of the same patient."""

    area = TokenArea.MOSAICS
    queryset = Followup.objects.none()
    serializer_class = FollowupSerializer
    filterset_class = FollowupFilter
    lookup_value_regex = UUID_REGEX

    def get_queryset(self) -> QuerySet[Followup]:
        """Follow-ups visible to the user."""
        return followups.followup_list(user_of(self.request))

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """An image element asks for image/*; errors are problem+json anyway."""
        return super().perform_content_negotiation(request, force or self.action == "picture")

    @extend_schema(
        request=FollowupCreateSerializer,
        responses={
            202: OpenApiResponse(FollowupAcceptedSerializer, "The search is running"),
            200: OpenApiResponse(FollowupAcceptedSerializer, "Searched for before"),
        },
        summary="Find a place in another examination of the patient",
    )
    def create(self, request: Request) -> Response:
        """Submit the search for the place in the target.

        The same outline and target give the same follow-up.
        """
        serializer = FollowupCreateSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        user = user_of(request)
        roi = roi_get(user, serializer.validated_data["roi"], with_shared=False)
        set_audited_id(request, roi.pk)
        requested = followup_create(
            roi=roi,
            target=canvas_get(user=user, canvas_id=serializer.validated_data["target"]),
            user=user,
        )
        return job_answered(requested.job, request, **FollowupSerializer(requested.followup).data)

    @extend_schema(responses=JPEG, filters=False)
    def picture(self, request: Request, pk: str, rank: int) -> HttpResponse:
        """Picture of the place next to one result, with the verified matches drawn."""
        followup: Followup = self.get_object()
        data = followups.hit_picture(followup, rank)
        etag = f'"f-{followup.pk}-{rank}-{followup.updated_at.timestamp():.0f}"'
        return bytes_response(request._request, data, etag=etag)
