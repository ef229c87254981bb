"""REST: maps of a lab's regions, and what is read from them."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.selectors import roi_get
from portal.archive.selectors import canvas_get
from portal.core.api.views import ApiView, ApiViewSet
from portal.core.http.acting import about
from portal.core.http.files import REVALIDATE
from portal.jobs.api import job_accepted
from portal.jobs.serializers import JobSerializer
from portal.labs.models import Role, TokenArea
from portal.labs.requests import user_of
from portal.labs.selectors import lab_chosen
from portal.retrieval import selectors, services
from portal.retrieval.models import EncoderKind, RegionMap
from portal.retrieval.selectors.browse import (
    Between,
    map_counted,
    map_list,
    map_points,
    map_seen,
    near_duplicates,
    unannotated,
    unlike_their_label,
)
from portal.retrieval.serializers.maps import (
    BrowseAskSerializer,
    DuplicatesAskSerializer,
    MapAskSerializer,
    MapPointsSerializer,
    MapSerializer,
    MapWholeSerializer,
    NearDuplicatesSerializer,
    UnannotatedListSerializer,
    UnlikeListSerializer,
    duplicates_represent,
    map_represent,
    points_represent,
    unannotated_represent,
    unlike_represent,
)


class MapViewSet(mixins.ListModelMixin, ApiViewSet[RegionMap]):
    """Maps: all regions of a lab that its encoder embedded, laid out by likeness."""

    area = TokenArea.SEARCH
    serializer_class = MapSerializer
    queryset = RegionMap.objects.none()
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[RegionMap]:
        """The newest first."""
        return map_list(user_of(self.request))

    @extend_schema(
        request=MapAskSerializer,
        responses={
            202: OpenApiResponse(JobSerializer, description="The result of the job names the map")
        },
    )
    def create(self, request: Request) -> Response:
        """Draw the map anew. `409` `nothing-embedded`: there is nothing to draw."""
        user = user_of(request)
        asked = MapAskSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        wanted = asked.validated_data
        lab = lab_chosen(user, wanted.get("lab"), at_least=Role.ANNOTATOR)
        job = services.map_draw(lab=lab, kind=EncoderKind(wanted["kind"]), user=user)
        return job_accepted(job, request)

    @extend_schema(responses=MapWholeSerializer)
    def retrieve(self, request: Request, pk: str) -> Response:
        """One map, how many regions of it you may see, and how many are newer."""
        user = user_of(request)
        return Response(map_represent(map_counted(user, self.get_object())))

    @extend_schema(operation_id="map_points", responses=MapPointsSerializer)
    @action(detail=True, methods=["get"])
    def points(self, request: Request, pk: str) -> Response:
        """All points at once, with their present labels, cases and review states."""
        user = user_of(request)
        seen = map_seen(user, self.get_object())
        told = points_represent(map_points(seen))
        return Response(told, headers={"Cache-Control": REVALIDATE})

    @extend_schema(
        operation_id="map_near_duplicates",
        parameters=[DuplicatesAskSerializer],
        responses=NearDuplicatesSerializer,
    )
    @action(detail=True, methods=["get"], url_path="near-duplicates")
    def near_duplicates(self, request: Request, pk: str) -> Response:
        """Pairs of regions closer than any two unrelated ones of the lab usually are."""
        asked = DuplicatesAskSerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        user, wanted = user_of(request), asked.validated_data
        found = near_duplicates(
            user,
            map_seen(user, self.get_object()),
            between=Between(wanted["between"]) if "between" in wanted else None,
            start=wanted["start"],
            count=wanted["limit"],
        )
        return Response(duplicates_represent(found))

    @extend_schema(
        operation_id="map_unlike", parameters=[BrowseAskSerializer], responses=UnlikeListSerializer
    )
    @action(detail=True, methods=["get"])
    def unlike(self, request: Request, pk: str) -> Response:
        """Regions whose nearest regions of other patients are labelled differently."""
        asked = BrowseAskSerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        user, wanted = user_of(request), asked.validated_data
        seen = map_seen(user, self.get_object())
        found = unlike_their_label(user, seen, start=wanted["start"], count=wanted["limit"])
        return Response(unlike_represent(found))


class UnannotatedAskSerializer(BrowseAskSerializer, MapAskSerializer):
    """Which images are wanted."""


class UnannotatedApi(ApiView):
    """What is not annotated yet."""

    area = TokenArea.SEARCH

    @extend_schema(
        operation_id="unannotated",
        parameters=[UnannotatedAskSerializer],
        responses=UnannotatedListSerializer,
        summary="List images without a region, and slides with tissue unlike all regions",
    )
    def get(self, request: Request) -> Response:
        """Slides that were looked through come first, those most unlike all regions before."""
        asked = UnannotatedAskSerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        user, wanted = user_of(request), asked.validated_data
        lab = lab_chosen(user, wanted.get("lab"), at_least=Role.VIEWER)
        kind = EncoderKind(wanted["kind"])
        found = unannotated(
            user,
            lab=lab,
            kind=kind,
            encoder=selectors.encoder_default(kind),
            start=wanted["start"],
            count=wanted["limit"],
        )
        return Response(unannotated_represent(found))


class CanvasLookApi(ApiView):
    """Looks through a slide's tissue for what is unlike all regions."""

    area = TokenArea.SEARCH

    @extend_schema(
        operation_id="canvas_look_through",
        request=None,
        parameters=[OpenApiParameter("canvas_id", uuid.UUID, OpenApiParameter.PATH)],
        responses={202: JobSerializer, 204: None},
        summary="Sample the tissue of a slide",
    )
    def post(self, request: Request, canvas_id: uuid.UUID) -> Response:
        """`204` where you have looked through it already."""
        user = user_of(request)
        canvas = canvas_get(user=user, canvas_id=canvas_id)
        job = services.slide_look_through(canvas=canvas, user=user)
        return job_accepted(job, request) if job else Response(status=204)


class LabelConfirmationApi(ApiView):
    """The label of a region is right, however unlike it the region looks."""

    area = TokenArea.SEARCH

    @extend_schema(
        operation_id="roi_label_confirm",
        request=None,
        parameters=[OpenApiParameter("roi_id", uuid.UUID, OpenApiParameter.PATH)],
        responses={204: None},
        summary="Confirm the label of a region",
    )
    def put(self, request: Request, roi_id: uuid.UUID) -> Response:
        """It holds for the present label: with another one the region is examined again."""
        user = user_of(request)
        services.label_confirm(roi=_roi(request, roi_id), user=user)
        return Response(status=204)

    @extend_schema(
        operation_id="roi_label_confirmation_clear",
        parameters=[OpenApiParameter("roi_id", uuid.UUID, OpenApiParameter.PATH)],
        responses={204: None},
        summary="Withdraw the confirmation of a region's label",
    )
    def delete(self, request: Request, roi_id: uuid.UUID) -> Response:
        """Nothing happens where there is no confirmation."""
        services.label_confirmation_clear(roi=_roi(request, roi_id), user=user_of(request))
        return Response(status=204)


def _roi(request: Request, roi_id: uuid.UUID) -> Any:
    about(request, roi_id)
    return roi_get(user_of(request), roi_id, with_shared=False)
