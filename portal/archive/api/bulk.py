"""``/api/v1/cases/bulk/``: tag, describe and share many cases."""

from __future__ import annotations

from collections.abc import Callable

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.archive.filters import cases_chosen
from portal.archive.serializers.bulk import (
    BulkResultSerializer,
    CasesDetailsSerializer,
    CaseSelectionSerializer,
    CasesShareSerializer,
    CasesTagSerializer,
    DetailsResultSerializer,
)
from portal.archive.services.bulk import BulkResult, cases_tag, cases_update
from portal.archive.services.sharing import shares_offer
from portal.core.api.views import ApiView
from portal.core.http.audit_rules import audited, rejections
from portal.labs.models import TokenArea
from portal.labs.requests import user_of


@audited(POST=rejections("case.changed"))
class CasesTagApi(ApiView):
    """Tags of many cases."""

    area = TokenArea.CASES

    @extend_schema(
        operation_id="cases_bulk_tags",
        request=CasesTagSerializer,
        responses=BulkResultSerializer,
        summary="Tag many cases",
    )
    def post(self, request: Request) -> Response:
        """Add and remove tags in one transaction.

        Requires the role of annotator in the lab of each case.
        """
        return _run_change(request, CasesTagSerializer(data=request.data), cases_tag)


@audited(POST=rejections("case.changed"))
class CasesDetailsApi(ApiView):
    """Organ and diagnosis of many cases."""

    area = TokenArea.CASES

    @extend_schema(
        operation_id="cases_bulk_details",
        request=CasesDetailsSerializer,
        responses=DetailsResultSerializer,
        summary="Set organ and diagnosis of many cases",
    )
    def post(self, request: Request) -> Response:
        """Change several cases in one transaction; the user has to be an annotator of each.

        Words are spelled as each case's lab does. Each row of `before` is a request that takes
        the change back for its cases.
        """
        body = CasesDetailsSerializer(data=request.data)
        return _run_change(request, body, cases_update, DetailsResultSerializer)


@audited(POST=rejections("share.offered"))
class CasesShareApi(ApiView):
    """Shares of many cases with another lab."""

    area = TokenArea.LAB

    @extend_schema(
        operation_id="cases_bulk_shares",
        request=CasesShareSerializer,
        responses=BulkResultSerializer,
        summary="Offer many cases to another lab",
    )
    def post(self, request: Request) -> Response:
        """Offer the cases in one transaction.

        Requires the role of manager in the lab of each case. The other lab accepts them one by one.
        """
        return _run_change(request, CasesShareSerializer(data=request.data), shares_offer)


def _run_change(
    request: Request,
    body: CaseSelectionSerializer,
    change: Callable[..., BulkResult],
    answer: type[BulkResultSerializer] = BulkResultSerializer,
) -> Response:
    """Change the chosen cases by the other fields of the body."""
    body.is_valid(raise_exception=True)
    data, user = dict(body.validated_data), user_of(request)
    result = change(user=user, case_ids=cases_chosen(user, data), **data)
    return Response(answer(result).data)
