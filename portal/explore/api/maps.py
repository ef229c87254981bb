"""REST: maps of a lab's regions, near-duplicates, label outliers, images to annotate."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.selectors.rois import roi_get
from portal.archive.models import Modality
from portal.archive.selectors.canvases import canvas_get
from portal.core.api.views import ApiView, ApiViewSet
from portal.core.http.acting import set_audited_id
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited
from portal.core.http.files import REVALIDATE
from portal.embeddings.selectors.encoders import encoder_default
from portal.explore.models import RegionMap
from portal.explore.selectors.duplicates import Between, near_duplicates
from portal.explore.selectors.label_outliers import label_outliers
from portal.explore.selectors.maps import map_counts, map_list, map_visible
from portal.explore.selectors.points import map_points
from portal.explore.selectors.unannotated import unannotated
from portal.explore.serializers.maps import (
    BrowseParamsSerializer,
    DuplicatesParamsSerializer,
    LabelOutlierListSerializer,
    MapCreateSerializer,
    MapDetailSerializer,
    MapPointsSerializer,
    MapSerializer,
    NearDuplicatesSerializer,
    UnannotatedListSerializer,
    duplicates_represent,
    map_represent,
    points_represent,
    unannotated_represent,
    unlike_represent,
)
from portal.explore.services.maps import label_confirm, label_confirmation_clear, map_draw_submit
from portal.explore.services.similar_regions import tissue_sample_submit
from portal.jobs.api import job_accepted
from portal.jobs.serializers import JobSerializer
from portal.labs.models import Role, TokenArea
from portal.labs.requests import user_of
from portal.labs.selectors import lab_chosen


@audited(
    list=AuditRule("search.browsed", every_s=HOUR_S),
    create=AuditRule("search.browsed"),
    retrieve=AuditRule("search.browsed", "map", "pk", every_s=MINUTE_S),
    near_duplicates=AuditRule("search.browsed", "map", "pk", every_s=MINUTE_S),
    points=AuditRule("search.browsed", "map", "pk", every_s=MINUTE_S),
    unlike=AuditRule("search.browsed", "map", "pk", every_s=MINUTE_S),
)
class MapViewSet(mixins.ListModelMixin, ApiViewSet[RegionMap]):
    """Maps: all regions of a lab that its encoder embedded, arranged by similarity."""

    area = TokenArea.SEARCH
    serializer_class = MapSerializer
    queryset = RegionMap.objects.none()
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[RegionMap]:
        """Newest first."""
        return map_list(user_of(self.request))

    @extend_schema(
        request=MapCreateSerializer,
        responses={
            202: OpenApiResponse(JobSerializer, description="The result of the job names the map")
        },
    )
    def create(self, request: Request) -> Response:
        """Submit the job that computes the map; `409` `nothing-embedded` without vectors."""
        user = user_of(request)
        serializer = MapCreateSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        lab = lab_chosen(user, data.get("lab"), at_least=Role.ANNOTATOR)
        job = map_draw_submit(lab=lab, kind=Modality(data["kind"]), user=user)
        return job_accepted(job, request)

    @extend_schema(responses=MapDetailSerializer)
    def retrieve(self, request: Request, pk: str) -> Response:
        """A map, with the number of its regions that the user may see and of newer ones."""
        user = user_of(request)
        return Response(map_represent(map_counts(user, self.get_object())))

    @extend_schema(operation_id="map_points", responses=MapPointsSerializer)
    @action(detail=True, methods=["get"])
    def points(self, request: Request, pk: str) -> Response:
        """All points with their present labels, cases and review states."""
        user = user_of(request)
        visible = map_visible(user, self.get_object())
        points = points_represent(map_points(visible))
        return Response(points, headers={"Cache-Control": REVALIDATE})

    @extend_schema(
        operation_id="map_near_duplicates",
        parameters=[DuplicatesParamsSerializer],
        responses=NearDuplicatesSerializer,
    )
    @action(detail=True, methods=["get"], url_path="near-duplicates")
    def near_duplicates(self, request: Request, pk: str) -> Response:
        """Pairs of regions closer than unrelated regions of the lab usually are."""
        serializer = DuplicatesParamsSerializer(data=request.query_params)
        serializer.is_valid(raise_exception=True)
        user, data = user_of(request), serializer.validated_data
        duplicates = near_duplicates(
            user,
            map_visible(user, self.get_object()),
            between=Between(data["between"]) if "between" in data else None,
            start=data["start"],
            count=data["limit"],
        )
        return Response(duplicates_represent(duplicates))

    @extend_schema(
        operation_id="map_unlike",
        parameters=[BrowseParamsSerializer],
        responses=LabelOutlierListSerializer,
    )
    @action(detail=True, methods=["get"])
    def unlike(self, request: Request, pk: str) -> Response:
        """Regions whose nearest regions of other patients are labelled differently."""
        serializer = BrowseParamsSerializer(data=request.query_params)
        serializer.is_valid(raise_exception=True)
        user, data = user_of(request), serializer.validated_data
        visible = map_visible(user, self.get_object())
        outliers = label_outliers(user, visible, start=data["start"], count=data["limit"])
        return Response(unlike_represent(outliers))


class UnannotatedParamsSerializer(BrowseParamsSerializer, MapCreateSerializer):
    """Query parameters of the list of images to annotate."""


@audited(GET=AuditRule("search.browsed", every_s=HOUR_S))
class UnannotatedApi(ApiView):
    """Images worth annotating next."""

    area = TokenArea.SEARCH

    @extend_schema(
        operation_id="unannotated",
        parameters=[UnannotatedParamsSerializer],
        responses=UnannotatedListSerializer,
        summary="List images without a region, and slides with tissue unlike all regions",
    )
    def get(self, request: Request) -> Response:
        """List canvases without ROIs.

        Sampled slides come first, ordered by the share of unknown tissue.
        """
        serializer = UnannotatedParamsSerializer(data=request.query_params)
        serializer.is_valid(raise_exception=True)
        user, data = user_of(request), serializer.validated_data
        lab = lab_chosen(user, data.get("lab"), at_least=Role.VIEWER)
        kind = Modality(data["kind"])
        canvases = unannotated(
            user,
            lab=lab,
            kind=kind,
            encoder=encoder_default(kind),
            start=data["start"],
            count=data["limit"],
        )
        return Response(unannotated_represent(canvases))


@audited(POST=AuditRule("search.browsed", "canvas", "canvas_id"))
class TissueSampleApi(ApiView):
    """Samples the tissue of a slide to find what is unlike all regions."""

    area = TokenArea.SEARCH

    @extend_schema(
        operation_id="canvas_look_through",
        request=None,
        parameters=[OpenApiParameter("canvas_id", uuid.UUID, OpenApiParameter.PATH)],
        responses={202: JobSerializer, 204: None},
        summary="Sample the tissue of a slide",
    )
    def post(self, request: Request, canvas_id: uuid.UUID) -> Response:
        """Submit the job that samples the tissue of a slide; `204` if the user has sampled it
        already.
        """
        user = user_of(request)
        canvas = canvas_get(user=user, canvas_id=canvas_id)
        job = tissue_sample_submit(canvas=canvas, user=user)
        return job_accepted(job, request) if job else Response(status=204)


@audited(
    PUT=AuditRule("search.label_confirmed", "roi", "roi_id"),
    DELETE=AuditRule("search.label_confirmed", "roi", "roi_id"),
)
class LabelConfirmationApi(ApiView):
    """Confirmation of the label of a region that looks unlike it."""

    area = TokenArea.SEARCH

    @extend_schema(
        operation_id="roi_label_confirm",
        request=None,
        parameters=[OpenApiParameter("roi_id", uuid.UUID, OpenApiParameter.PATH)],
        responses={204: None},
        summary="Confirm the label of a region",
    )
    def put(self, request: Request, roi_id: uuid.UUID) -> Response:
        """Confirm that the present label is right; a later change of the label ends the
        confirmation.
        """
        user = user_of(request)
        label_confirm(roi=_roi(request, roi_id), user=user)
        return Response(status=204)

    @extend_schema(
        operation_id="roi_label_confirmation_clear",
        parameters=[OpenApiParameter("roi_id", uuid.UUID, OpenApiParameter.PATH)],
        responses={204: None},
        summary="Withdraw the confirmation of a region's label",
    )
    def delete(self, request: Request, roi_id: uuid.UUID) -> Response:
        """Withdraw a confirmation; no effect if there is none."""
        label_confirmation_clear(roi=_roi(request, roi_id), user=user_of(request))
        return Response(status=204)


def _roi(request: Request, roi_id: uuid.UUID) -> Any:
    set_audited_id(request, roi_id)
    return roi_get(user_of(request), roi_id, with_shared=False)
