"""``/api/v1/followups/``: a place of one examination looked for in another."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import reverse
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import mixins, serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.selectors import roi_get
from portal.archive.http import bytes_response
from portal.archive.models import ItemState
from portal.archive.selectors import canvas_get
from portal.archive.serializers import ItemErrorSerializer
from portal.jobs.api import JobSerializer, job_answered
from portal.labs.requests import UUID_REGEX, user_of
from portal.mosaics import followups
from portal.mosaics.followup_services import followup_create
from portal.mosaics.models import Followup

JPEG = {(200, "image/jpeg"): OpenApiTypes.BINARY}


class FollowupHitSerializer(serializers.Serializer[Any]):
    """A frame (or a window of a mosaic) that shows the place."""

    rank = serializers.IntegerField()
    index = serializers.IntegerField(allow_null=True, help_text="Frame; null on a mosaic")
    pts = serializers.IntegerField(allow_null=True)
    time_s = serializers.FloatField(allow_null=True)
    inliers = serializers.IntegerField(help_text="Matches that agree on one map")
    matches = serializers.IntegerField(help_text="Matches before verification")
    outline = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField(), min_length=2, max_length=2),
        help_text="The place on the target, its level-0 pixels",
    )
    picture_url = serializers.CharField(help_text="Both views with the matches drawn, JPEG")
    viewer_url = serializers.CharField()


class FollowupSerializer(serializers.Serializer[Any]):
    """A follow-up; ``results`` is empty once it is ready where the place was not found."""

    id = serializers.UUIDField()
    roi = serializers.UUIDField(source="roi_id")
    roi_version = serializers.IntegerField()
    target = serializers.UUIDField(source="target_id")
    state = serializers.ChoiceField(ItemState.choices)
    error = serializers.SerializerMethodField()
    searched_count = serializers.IntegerField(help_text="Frames or windows looked at")
    seconds = serializers.FloatField()
    results = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()

    @extend_schema_field(ItemErrorSerializer(allow_null=True))
    def get_error(self, followup: Followup) -> dict[str, str] | None:
        """Null unless the state is *failed*."""
        if followup.state != ItemState.FAILED:
            return None
        return {"code": followup.error_code, "message": followup.error_message}

    @extend_schema_field(FollowupHitSerializer(many=True))
    def get_results(self, followup: Followup) -> list[dict[str, Any]]:
        """Ranked, the surest first."""
        return [hit_represent(followup, hit) for hit in followup.result]


class FollowupAcceptedSerializer(FollowupSerializer):
    """With the job that looks."""

    job = JobSerializer(allow_null=True)


class FollowupCreateSerializer(serializers.Serializer[Any]):
    """Which place, and where to look for it."""

    roi = serializers.UUIDField(help_text="An ROI on a frame of a video, or on a mosaic")
    target = serializers.UUIDField(
        help_text="Canvas of another video or mosaic of the same patient"
    )


class FollowupFilter(filters.FilterSet):
    """Filters of the list."""

    roi = filters.UUIDFilter(field_name="roi_id")
    target = filters.UUIDFilter(field_name="target_id")
    state = filters.ChoiceFilter(choices=ItemState.choices)

    class Meta:
        model = Followup
        fields = ("roi", "target", "state")


class FollowupViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Any]
):
    """Places of one examination looked for in another of the same patient."""

    queryset = Followup.objects.none()
    serializer_class = FollowupSerializer
    filterset_class = FollowupFilter
    lookup_value_regex = UUID_REGEX

    def get_queryset(self) -> QuerySet[Followup]:
        """What this user may see."""
        return followups.followup_list(user_of(self.request))

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """An image element asks for image/*; errors are problem+json all the same."""
        return super().perform_content_negotiation(request, force or self.action == "picture")

    @extend_schema(
        request=FollowupCreateSerializer,
        responses={
            202: OpenApiResponse(FollowupAcceptedSerializer, "Being looked for"),
            200: OpenApiResponse(FollowupAcceptedSerializer, "Looked for before"),
        },
        summary="Find a place in another examination of the patient",
    )
    def create(self, request: Request) -> Response:
        """The same outline and target give the same follow-up."""
        sent = FollowupCreateSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        user = user_of(request)
        asked = followup_create(
            roi=roi_get(user, sent.validated_data["roi"]),
            target=canvas_get(user=user, canvas_id=sent.validated_data["target"]),
            user=user,
        )
        return job_answered(asked.job, request, **FollowupSerializer(asked.followup).data)

    @extend_schema(responses=JPEG, filters=False)
    def picture(self, request: Request, pk: str, rank: int) -> HttpResponse:
        """The place beside one result, with the verified matches drawn."""
        followup: Followup = self.get_object()
        data = followups.hit_picture(followup, rank)
        etag = f'"f-{followup.pk}-{rank}-{followup.updated_at.timestamp():.0f}"'
        return bytes_response(request._request, data, etag=etag)


def hit_represent(followup: Followup, hit: dict[str, Any]) -> dict[str, Any]:
    """A stored hit with its addresses."""
    names = ("rank", "index", "pts", "time_s", "inliers", "matches", "outline")
    viewer = reverse("archive:viewer", args=[followup.target_id])
    x, y = (sum(axis) / len(axis) for axis in zip(*hit["outline"], strict=True))
    at = "" if hit["pts"] is None else f"t={hit['pts']}&"
    picture = reverse("api:followup-picture", kwargs={"pk": followup.pk, "rank": hit["rank"]})
    return {
        **{name: hit[name] for name in names},
        "picture_url": f"{picture}?v={followup.updated_at.timestamp():.0f}",
        "viewer_url": f"{viewer}?{at}x={x:.1f}&y={y:.1f}",
    }
