"""REST of assignments."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import mixins, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.api.views import ApiView, ApiViewSet
from portal.core.errors import InvalidInputError
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited, rejections
from portal.labs.models import TokenArea
from portal.labs.requests import UUID_REGEX, user_of
from portal.reader_studies.models import Assignment
from portal.reader_studies.selectors.candidates import canvases_named, people_named
from portal.reader_studies.selectors.studies import study_get
from portal.reader_studies.selectors.work import WorkFilter, assignment_get, work_list
from portal.reader_studies.serializers import (
    AssignedSerializer,
    AssignmentChangeSerializer,
    AssignmentQuerySerializer,
    AssignmentSerializer,
    AssignSerializer,
)
from portal.reader_studies.services.assignments import (
    ReadingPlan,
    assignment_remove,
    assignment_reopen,
    assignment_submit,
    assignment_update,
    work_assign,
)
from portal.reader_studies.services.studies import readings_assign


@audited(
    list=AuditRule("work.viewed", every_s=HOUR_S),
    create=rejections("assignment.made"),
    retrieve=AuditRule("work.viewed", "assignment", "pk", every_s=MINUTE_S),
    partial_update=rejections("assignment.changed", "assignment", "pk"),
    destroy=rejections("assignment.removed", "assignment", "pk"),
)
class AssignmentApi(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiViewSet[Assignment]):
    """Assignments of the user, and all of the labs they manage."""

    area = TokenArea.ROIS
    if_match: ClassVar = {"PATCH": True, "DELETE": False}
    queryset = Assignment.objects.none()
    serializer_class = AssignmentSerializer
    filter_backends = ()
    lookup_value_regex = UUID_REGEX

    def get_queryset(self):  # type: ignore[no-untyped-def]
        """Assignments, open ones first, by due date."""
        query = AssignmentQuerySerializer(data=self.request.query_params)
        query.is_valid(raise_exception=True)
        data = query.validated_data
        names = ("person", "lab", "study", "canvas")
        filters: dict[str, Any] = {f"{name}_id": data.get(name) for name in names}
        filters["is_done"] = data["done"]
        return work_list(user_of(self.request), WorkFilter(**filters))

    def get_object(self) -> Assignment:
        """Assignment in the list."""
        assignment = assignment_get(user_of(self.request), uuid.UUID(self.kwargs["pk"]))
        return self.register(assignment)

    def representation(self, row: Assignment) -> Any:
        """Representation of an assignment in answers."""
        return AssignmentSerializer(self.get_object()).data

    @extend_schema(parameters=[AssignmentQuerySerializer], summary="List assignments")
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List assignments, open ones first, by due date."""
        return super().list(request, *args, **kwargs)

    @extend_schema(
        request=AssignSerializer,
        responses={201: AssignedSerializer},
        summary="Assign images to people",
    )
    def create(self, request: Request) -> Response:
        """Assign images to people.

        Managers only. With `study`, each image needs at least two readers.
        """
        body = AssignSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data, user = body.validated_data, user_of(request)
        canvases = canvases_named(user, canvases=data["canvases"], cases=data["cases"])
        if not canvases:
            raise InvalidInputError("canvases, cases: name at least one image.")
        lab = canvases[0].lab
        plan = ReadingPlan(
            canvases=canvases,
            people=people_named(lab, data["people"]),
            due_on=data.get("due_on"),
            note=data.get("note", ""),
        )
        if data.get("study"):
            study = study_get(user, data["study"])
            assignments = readings_assign(study=study, user=user, plan=plan)
        else:
            assignments = work_assign(lab=lab, user=user, plan=plan)
        total = len(plan.canvases) * len(plan.people)
        counts = {"made": len(assignments), "known": total - len(assignments)}
        return Response(counts, status=status.HTTP_201_CREATED)

    @extend_schema(
        request=AssignmentChangeSerializer,
        responses=AssignmentSerializer,
        summary="Change the due date or the note of an assignment",
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change the due date or the note. Managers only; omitted fields are not changed."""
        row = self.get_object()
        body = AssignmentChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data = {"due_on": row.due_on, "note": row.note} | body.validated_data
        assignment_update(assignment=row, user=user_of(request), **data)
        return Response(AssignmentSerializer(self.get_object()).data)

    @extend_schema(responses={204: None}, summary="Withdraw an assignment")
    def destroy(self, request: Request, pk: str) -> Response:
        """Withdraw an assignment. Managers only; drawn regions stay."""
        assignment_remove(assignment=self.get_object(), user=user_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


@audited(POST=rejections("assignment.submitted", "assignment", "id"))
class AssignmentSubmitApi(ApiView):
    """Submit an assignment."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="assignments_submit",
        request=None,
        responses=AssignmentSerializer,
        summary="Submit an assignment",
    )
    def post(self, request: Request, id: uuid.UUID) -> Response:
        """Submit an assignment.

        Assigned user only; the present versions of a reading's regions are recorded.
        """
        user = user_of(request)
        row = assignment_get(user, id)
        assignment_submit(assignment=row, user=user)
        return Response(AssignmentSerializer(assignment_get(user, id)).data)


@audited(POST=rejections("assignment.reopened", "assignment", "id"))
class AssignmentReopenApi(ApiView):
    """Reopen an assignment."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="assignments_reopen",
        request=None,
        responses=AssignmentSerializer,
        summary="Reopen an assignment",
    )
    def post(self, request: Request, id: uuid.UUID) -> Response:
        """Reopen a submitted assignment.

        Managers only; 409 if the reader has since seen the others' regions.
        """
        user = user_of(request)
        assignment_reopen(assignment=assignment_get(user, id), user=user)
        return Response(AssignmentSerializer(assignment_get(user, id)).data)
