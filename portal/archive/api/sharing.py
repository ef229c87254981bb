"""REST: cases that other labs may read for a time."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, serializers, status
from rest_framework.decorators import action
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.archive.models import CaseShare
from portal.archive.selectors.cases import case_get
from portal.archive.selectors.sharing import share_get, share_list, shares_of_case
from portal.archive.services.sharing import share_accept, share_end, share_offer
from portal.core.api.views import ApiView, ApiViewSet
from portal.core.http.audit_rules import AuditRule, audited, rejections
from portal.labs.models import TokenArea
from portal.labs.requests import UUID_REGEX, user_of
from portal.labs.serializers import LabSerializer


class ShareSerializer(serializers.ModelSerializer[CaseShare]):
    """A case that a lab shares with another one."""

    accession = serializers.CharField(source="case.accession")
    lab = LabSerializer(help_text="The lab that owns the case")
    with_lab = LabSerializer(help_text="The lab that may read it")
    until = serializers.DateField(help_text="The last day, UTC")
    state = serializers.ChoiceField(choices=("offered", "accepted", "over", "ended"))

    class Meta:
        model = CaseShare
        fields = (
            "id",
            "case",
            "accession",
            "lab",
            "with_lab",
            "until",
            "state",
            "created_at",
            "accepted_at",
            "ended_at",
        )


class ShareOfferSerializer(serializers.Serializer[Any]):
    """Lab and last day of a new share."""

    with_lab = serializers.CharField(
        max_length=120, help_text="Name or short name of the lab, exactly: labs are not listed"
    )
    until = serializers.DateField(help_text="The last day, UTC; at most a year ahead")


@audited(
    GET=AuditRule("case.viewed", "case", "case_id"),
    POST=rejections("share.offered", "case", "case_id"),
)
class CaseSharesApi(ApiView, GenericAPIView[CaseShare]):
    """Shares of a case with other labs."""

    area = TokenArea.LAB
    serializer_class = ShareSerializer
    queryset = CaseShare.objects.none()
    filter_backends = ()

    @extend_schema(
        responses=ShareSerializer(many=True),
        parameters=[OpenApiParameter("case_id", uuid.UUID, OpenApiParameter.PATH)],
        summary="List the labs that a case is shared with",
    )
    def get(self, request: Request, case_id: uuid.UUID) -> Response:
        """All shares of the case, ended ones too.

        For a case of another lab, only shares with the user's labs.
        """
        user = user_of(request)
        shares = shares_of_case(user, case_get(user=user, case_id=case_id))
        page = self.paginate_queryset(shares)
        return self.get_paginated_response(ShareSerializer(page, many=True).data)

    @extend_schema(
        request=ShareOfferSerializer,
        responses={201: ShareSerializer},
        parameters=[OpenApiParameter("case_id", uuid.UUID, OpenApiParameter.PATH)],
        summary="Offer a case to another lab",
    )
    def post(self, request: Request, case_id: uuid.UUID) -> Response:
        """Offer a case.

        The other lab can read it after one of its managers has accepted. Managers only.
        """
        user = user_of(request)
        case = case_get(user=user, case_id=case_id)
        serializer = ShareOfferSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        share = share_offer(case=case, user=user, **serializer.validated_data)
        return Response(ShareSerializer(share).data, status=status.HTTP_201_CREATED)


@audited(
    list=AuditRule("share.listed"),
    accept=rejections("share.accepted", "share", "pk"),
    end=rejections("share.ended", "share", "pk"),
)
class ShareViewSet(mixins.ListModelMixin, ApiViewSet[CaseShare]):
    """Shares that the user's labs have given or received."""

    area = TokenArea.LAB
    serializer_class = ShareSerializer
    queryset = CaseShare.objects.none()
    filter_backends = ()
    lookup_value_regex = UUID_REGEX

    def get_queryset(self) -> QuerySet[CaseShare]:
        """Open shares of the user's labs."""
        return share_list(user_of(self.request))

    @extend_schema(request=None, responses=ShareSerializer, summary="Accept a shared case")
    @action(detail=True, methods=["post"])
    def accept(self, request: Request, pk: str) -> Response:
        """Accept an offered case for the members of the lab. Managers of the receiving lab only."""
        user = user_of(request)
        share = share_accept(share=share_get(user, uuid.UUID(pk)), user=user)
        return Response(ShareSerializer(share).data)

    @extend_schema(request=None, responses=ShareSerializer, summary="End the sharing of a case")
    @action(detail=True, methods=["post"])
    def end(self, request: Request, pk: str) -> Response:
        """End, decline or withdraw a share at once. Managers of either lab only."""
        user = user_of(request)
        share = share_end(share=share_get(user, uuid.UUID(pk)), user=user)
        return Response(ShareSerializer(share).data)
