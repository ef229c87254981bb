"""REST of reviews, the thread of an ROI, and the review settings of a lab."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.models import ReviewRules, Roi
from portal.annotations.selectors.reviewing import review_rules_of
from portal.annotations.selectors.rois import roi_get
from portal.annotations.services.reviewing import review_rules_set
from portal.core.api.paging import InOrder
from portal.core.api.views import ApiView, ApiViewSet
from portal.core.errors import NotFoundError
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited, rejections
from portal.labs.api.settings import LabSettingsApi
from portal.labs.models import Lab, TokenArea, User
from portal.labs.requests import user_of
from portal.review.selectors.queue import QueueFilter, review_queue
from portal.review.selectors.threads import comment_entry, thread_of
from portal.review.serializers import (
    CommentCreateSerializer,
    QueuedSerializer,
    QueueQuerySerializer,
    ReviewedSerializer,
    ReviewRulesSerializer,
    ReviewSerializer,
    ThreadEntrySerializer,
    verdicts_represent,
)
from portal.review.services.comments import comment_add
from portal.review.services.verdicts import rois_review


@audited(list=AuditRule("review.viewed", every_s=HOUR_S))
class ReviewApi(ApiViewSet[Roi]):
    """Review queue."""

    area = TokenArea.ROIS
    queryset = Roi.objects.none()
    serializer_class = QueuedSerializer
    filter_backends = ()

    @extend_schema(
        parameters=[QueueQuerySerializer],
        responses=QueuedSerializer(many=True),
        summary="List ROIs by their review state",
    )
    def list(self, request: Request) -> Response:
        """List ROIs of the user's labs, the least recently changed first."""
        query = QueueQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        data = query.validated_data
        names = ("state", "case", "since", "until")
        filters = QueueFilter(
            lab_id=data.get("lab"),
            canvas_id=data.get("canvas"),
            label_id=data.get("label"),
            person_id=data.get("person"),
            **{name: data[name] for name in names if name in data},
        )
        page = self.paginate_queryset(review_queue(user_of(request), filters))
        return self.get_paginated_response(QueuedSerializer(page, many=True).data)


@audited(POST=rejections("roi.saved"))
class RoiReviewApi(ApiView):
    """Submit, accept or reject ROIs."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="rois_review",
        request=ReviewSerializer,
        responses=ReviewedSerializer,
        summary="Submit, accept or reject ROIs",
    )
    def post(self, request: Request) -> Response:
        """Review each ROI independently; `results` are in the order of the request.

        An ROI whose version differs from the given one is not changed.
        """
        body = ReviewSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        verdicts = rois_review(
            user=user_of(request),
            rois=[(entry["id"], entry["version"]) for entry in data["rois"]],
            state=data["state"],
            comment=data.get("comment", ""),
        )
        return Response(verdicts_represent(verdicts))


@audited(
    GET=AuditRule("roi.viewed", "roi", "id", every_s=MINUTE_S),
    POST=rejections("roi.commented", "roi", "id"),
)
class RoiThreadApi(ApiView, GenericAPIView[Roi]):
    """Comments on an ROI and its review steps."""

    area = TokenArea.ROIS
    queryset = Roi.objects.none()
    serializer_class = ThreadEntrySerializer
    filter_backends = ()

    @extend_schema(
        operation_id="rois_thread_list",
        responses=ThreadEntrySerializer(many=True),
        summary="Show the thread of an ROI",
    )
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """Review steps and comments, first to last; comments of another lab are not shared."""
        entries = thread_of(_roi(request, id))
        thread: Any = InOrder("thread", entries, lambda entry: entry.place)
        page = self.paginate_queryset(thread)
        return self.get_paginated_response(ThreadEntrySerializer(page, many=True).data)

    @extend_schema(
        operation_id="rois_thread_create",
        request=CommentCreateSerializer,
        responses={201: ThreadEntrySerializer},
        summary="Comment on an ROI",
    )
    def post(self, request: Request, id: uuid.UUID) -> Response:
        """Add a comment and return it as an entry of the thread."""
        roi = _roi(request, id)
        body = CommentCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        comment = comment_add(roi=roi, user=user_of(request), text=body.validated_data["text"])
        entry = ThreadEntrySerializer(comment_entry(comment)).data
        return Response(entry, status=status.HTTP_201_CREATED)


@audited(PUT=rejections("review_rules.changed", "lab", "id"))
@extend_schema_view(
    get=extend_schema(operation_id="review_rules_retrieve", summary="Show how a lab reviews"),
    put=extend_schema(operation_id="review_rules_update", summary="Set how a lab reviews"),
)
class ReviewRulesApi(LabSettingsApi[ReviewRules]):
    """Review settings of a lab."""

    serializer_class = ReviewRulesSerializer

    def current(self, lab: Lab) -> ReviewRules:
        """The settings of the lab, or the usual ones."""
        return review_rules_of(lab.pk)

    def change(
        self, lab: Lab, user: User, row: ReviewRules, data: Mapping[str, Any]
    ) -> ReviewRules:
        """Set whether people may judge their own regions."""
        return review_rules_set(lab=lab, user=user, **data)


def _roi(request: Request, roi_id: uuid.UUID) -> Roi:
    roi = roi_get(user_of(request), roi_id, with_shared=False)
    if roi.deleted_at is not None:
        raise NotFoundError("This region was deleted.")
    return roi
