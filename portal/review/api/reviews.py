"""``/api/v1/reviews/``, the thread of an ROI, and a lab's rules."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.models import ReviewRules, Roi
from portal.annotations.selectors import review_rules_of, roi_get
from portal.annotations.services import review_rules_set
from portal.core.api.paging import InOrder
from portal.core.api.views import ApiView, ApiViewSet
from portal.core.errors import NotFoundError
from portal.labs.models import TokenArea
from portal.labs.requests import user_of
from portal.labs.selectors import lab_named
from portal.review import selectors
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
from portal.review.services import comment_add, rois_review


class ReviewApi(ApiViewSet[Roi]):
    """The queue of review."""

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
        """Of the caller's own labs; those that were changed longest ago come first."""
        query = QueueQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        asked = query.validated_data
        names = ("state", "case", "since", "until")
        wanted = selectors.QueueFilter(
            lab_id=asked.get("lab"),
            canvas_id=asked.get("canvas"),
            label_id=asked.get("label"),
            person_id=asked.get("person"),
            **{name: asked[name] for name in names if name in asked},
        )
        page = self.paginate_queryset(selectors.review_queue(user_of(request), wanted))
        return self.get_paginated_response(QueuedSerializer(page, many=True).data)


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
        """Each by itself: `results` says what became of it, in the order of the request.

        One that was changed since it was looked at is left alone.
        """
        body = ReviewSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        verdicts = rois_review(
            user=user_of(request),
            rois=[(one["id"], one["version"]) for one in asked["rois"]],
            state=asked["state"],
            comment=asked.get("comment", ""),
        )
        return Response(verdicts_represent(verdicts))


class RoiThreadApi(ApiView, GenericAPIView[Roi]):
    """What was said about an ROI."""

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
        """Steps of review and comments, first to last. Another lab's comments are not shared."""
        entries = selectors.thread_of(_roi(request, id))
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
        """Returns the comment as the thread shows it."""
        roi = _roi(request, id)
        body = CommentCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        said = comment_add(roi=roi, user=user_of(request), text=body.validated_data["text"])
        entry = ThreadEntrySerializer(selectors.comment_entry(said)).data
        return Response(entry, status=status.HTTP_201_CREATED)


class ReviewRulesApi(ApiView):
    """How a lab reviews."""

    area = TokenArea.LAB
    if_match: ClassVar = {"PUT": False}

    @extend_schema(
        operation_id="review_rules_retrieve",
        responses=ReviewRulesSerializer,
        summary="Show how a lab reviews",
    )
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """For its members."""
        lab = lab_named(user_of(request), id)
        return Response(self.shown(self.seen(review_rules_of(lab.pk))))

    @extend_schema(
        operation_id="review_rules_update",
        request=ReviewRulesSerializer,
        responses=ReviewRulesSerializer,
        summary="Set how a lab reviews",
    )
    def put(self, request: Request, id: uuid.UUID) -> Response:
        """For its managers."""
        lab = lab_named(user_of(request), id)
        self.seen(review_rules_of(lab.pk))
        body = ReviewRulesSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        rules = review_rules_set(lab=lab, user=user_of(request), **body.validated_data)
        return Response(self.shown(rules))

    def shown(self, row: ReviewRules) -> Any:
        """As everywhere."""
        return ReviewRulesSerializer(row).data


def _roi(request: Request, roi_id: uuid.UUID) -> Roi:
    roi = roi_get(user_of(request), roi_id, with_shared=False)
    if roi.deleted_at is not None:
        raise NotFoundError("This ROI was deleted.")
    return roi
