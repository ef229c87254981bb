"""``/api/v1/audit/``: the log of a lab, for its managers."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from portal.audit import selectors, services
from portal.audit.chain import entry_represent
from portal.audit.forms import EntryForm
from portal.audit.models import AuditEntry
from portal.audit.rules import require_read
from portal.audit.serializers import AuditEntrySerializer, AuditHeadSerializer
from portal.core.api.views import ApiViewSet
from portal.core.errors import InvalidInputError, NotFoundError
from portal.core.http.acting import set_audited_id
from portal.core.http.audit_rules import AuditRule, audited
from portal.labs.models import Lab, Role, TokenArea
from portal.labs.requests import user_of
from portal.labs.selectors import lab_chosen

_LAB = OpenApiParameter(
    "lab", str, description="Id of the lab; may be left out by managers of a single lab"
)


class LabQuerySerializer(serializers.Serializer[Any]):
    """Query parameters: the lab."""

    lab = serializers.UUIDField(required=False)


@audited(list=AuditRule("audit.viewed", "lab"), head=None)
class AuditViewSet(ApiViewSet[AuditEntry]):
    """The audit log: actor, action, object and time."""

    area = TokenArea.LAB
    queryset = AuditEntry.objects.none()
    serializer_class = AuditEntrySerializer
    filter_backends = ()

    @extend_schema(
        parameters=[
            _LAB,
            OpenApiParameter("actor", str, description="Id of a person"),
            OpenApiParameter(
                "action", str, description="Action of the entries, such as case.viewed"
            ),
            OpenApiParameter("case", str, description="Id of a case"),
            OpenApiParameter("object", str, description="Id of anything"),
            OpenApiParameter("since", str, description="A day, YYYY-MM-DD, UTC"),
            OpenApiParameter("until", str, description="The last day"),
        ],
        responses=AuditEntrySerializer(many=True),
        summary="Search the audit log of a lab",
    )
    def list(self, request: Request) -> Response:
        """List entries, newest first. Managers of the lab only."""
        lab = _lab(request)
        form = EntryForm(QueryDict(request.query_params.urlencode()))
        if not form.is_valid():
            details = {name: [str(e) for e in errors] for name, errors in form.errors.items()}
            raise InvalidInputError("The filter is not valid.", details={"errors": details})
        services.entries_seal()
        entries = selectors.entry_list(user_of(request), lab=lab, filters=form.filters)
        rows = self.paginate_queryset(entries) or []
        return self.get_paginated_response([entry_represent(entry) for entry in rows])

    @extend_schema(
        parameters=[_LAB],
        responses=AuditHeadSerializer,
        summary="Show the last entry of the audit log's hash chain",
    )
    @action(detail=False, methods=["get"], pagination_class=None)
    def head(self, request: Request) -> Response:
        """Number and hash of the last entry.

        Stored elsewhere, they let `manage.py audit_verify --expect` prove that no entry was cut
        off.
        """
        lab = _lab(request)
        services.entries_seal_all()
        head = selectors.chain_head(lab.pk)
        if head is None:
            raise NotFoundError("Nothing has been logged in this lab yet.")
        return Response(AuditHeadSerializer(head).data)


def _lab(request: Request) -> Lab:
    query = LabQuerySerializer(data=request.query_params)
    query.is_valid(raise_exception=True)
    lab = lab_chosen(user_of(request), query.validated_data.get("lab"), at_least=Role.MANAGER)
    set_audited_id(request, lab.pk)
    require_read(user_of(request), lab.pk)
    return lab


router_entries = [("audit", AuditViewSet, "audit")]
