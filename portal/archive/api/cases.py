"""REST: cases."""

from __future__ import annotations

from typing import ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.archive.filters import CaseFilter
from portal.archive.models import Case
from portal.archive.selectors.cases import case_list
from portal.archive.selectors.sharing import share_seen
from portal.archive.serializers.records import CaseSerializer
from portal.archive.services.cases import case_create, case_delete, case_update
from portal.archive.services.modality import case_modality_set
from portal.core.api.etags import ETAG_MADE
from portal.core.api.views import ApiViewSet
from portal.core.errors import InvalidInputError
from portal.core.http.audit_rules import AuditRule, audited, rejections
from portal.labs.models import Role, TokenArea
from portal.labs.requests import UUID_REGEX, user_of
from portal.labs.selectors import lab_chosen


@audited(
    list=AuditRule("case.listed"),
    create=rejections("case.created"),
    retrieve=AuditRule("case.viewed", "case", "pk"),
    update=rejections("case.changed", "case", "pk"),
    partial_update=rejections("case.changed", "case", "pk"),
    destroy=rejections("trash.put", "case", "pk"),
)
class CaseViewSet(ApiViewSet[Case]):
    """Cases of the labs one is a member of, and, by id, those that other labs share."""

    area = TokenArea.CASES
    if_match: ClassVar = {"PUT": True, "PATCH": True, "DELETE": False}
    serializer_class = CaseSerializer
    filterset_class = CaseFilter
    queryset = Case.objects.none()
    lookup_value_regex = UUID_REGEX

    def get_queryset(self) -> QuerySet[Case]:
        """Restrict to cases visible to the user; lists contain the cases of the user's own labs."""
        is_list = self.action == "list"
        return case_list(user=user_of(self.request), with_shared=not is_list)

    def list(self, request: Request) -> Response:
        """List cases: search (``q``), filters, order (``ordering``), pages."""
        rows = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(self.get_serializer(rows, many=True).data)

    def retrieve(self, request: Request, pk: str) -> Response:
        """A case. For a case of another lab, ``shared_until`` is the end of the share."""
        case = self.get_object()
        share = share_seen(user_of(request), case)
        context = {**self.get_serializer_context(), "share": share}
        return Response(CaseSerializer(case, context=context).data)

    @extend_schema(parameters=[ETAG_MADE], responses={201: CaseSerializer})
    def create(self, request: Request) -> Response:
        """Create a case in ``lab``. 409 if the lab has a case with this accession number."""
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = dict(serializer.validated_data)
        lab = lab_chosen(user_of(request), values.pop("lab_id", None), at_least=Role.ANNOTATOR)
        modality = values.pop("modality", "")
        case = case_create(lab=lab, user=user_of(request), **values)
        if modality:
            case_modality_set(case=case, user=user_of(request), modality=modality)
        return Response(
            self.get_serializer(self.register_created(case)).data, status=status.HTTP_201_CREATED
        )

    def update(self, request: Request, pk: str, *, partial: bool = False) -> Response:
        """Replace the details of a case."""
        case = self.get_object()
        serializer = self.get_serializer(case, data=request.data, partial=partial)
        serializer.is_valid(raise_exception=True)
        values = dict(serializer.validated_data)
        if values.pop("lab_id", case.lab_id) != case.lab_id:
            raise InvalidInputError("lab: a case cannot move to another lab.")
        modality = values.pop("modality", None)
        if modality is not None and (partial or modality != case.modality):
            case_modality_set(case=case, user=user_of(request), modality=modality)
        if values or modality is None:
            case = case_update(case=case, user=user_of(request), **values)
        return Response(self.get_serializer(case).data)

    def partial_update(self, request: Request, pk: str) -> Response:
        """Change some details of a case."""
        return self.update(request, pk, partial=True)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Move a case with all its contents to the trash; 409 while an item in it is being
        prepared.
        """
        case_delete(case=self.get_object(), user=user_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
