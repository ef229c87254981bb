"""``/api/v1/assignments/``: who is to work on which image."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import mixins, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.api.views import ApiView, ApiViewSet
from portal.core.errors import InvalidInputError
from portal.labs.models import TokenArea
from portal.labs.requests import UUID_REGEX, user_of
from portal.reading import selectors, services
from portal.reading.models import Assignment
from portal.reading.selectors.choosing import canvases_named, people_named
from portal.reading.serializers import (
    AssignedSerializer,
    AssignmentChangeSerializer,
    AssignmentQuerySerializer,
    AssignmentSerializer,
    AssignSerializer,
)


class AssignmentApi(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiViewSet[Assignment]):
    """Assignments: the caller's own, and all of the labs they manage."""

    area = TokenArea.ROIS
    if_match: ClassVar = {"PATCH": True, "DELETE": False}
    queryset = Assignment.objects.none()
    serializer_class = AssignmentSerializer
    filter_backends = ()
    lookup_value_regex = UUID_REGEX

    def get_queryset(self):  # type: ignore[no-untyped-def]
        """Open ones come first, by their day."""
        query = AssignmentQuerySerializer(data=self.request.query_params)
        query.is_valid(raise_exception=True)
        asked = query.validated_data
        names = ("person", "lab", "study", "canvas")
        wanted: dict[str, Any] = {f"{name}_id": asked.get(name) for name in names}
        wanted["is_done"] = asked["done"]
        return selectors.work_list(user_of(self.request), selectors.WorkFilter(**wanted))

    def get_object(self) -> Assignment:
        """One of those that are listed."""
        found = selectors.assignment_get(user_of(self.request), uuid.UUID(self.kwargs["pk"]))
        return self.seen(found)

    def shown(self, row: Assignment) -> Any:
        """As everywhere."""
        return AssignmentSerializer(self.get_object()).data

    @extend_schema(parameters=[AssignmentQuerySerializer], summary="List who is to work on what")
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Open ones come first, by their day."""
        return super().list(request, *args, **kwargs)

    @extend_schema(
        request=AssignSerializer,
        responses={201: AssignedSerializer},
        summary="Hand out images to people",
    )
    def create(self, request: Request) -> Response:
        """For managers. With `study`: to be read for it, by two people at least."""
        body = AssignSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        asked, user = body.validated_data, user_of(request)
        canvases = canvases_named(user, canvases=asked["canvases"], cases=asked["cases"])
        if not canvases:
            raise InvalidInputError("canvases, cases: name at least one image.")
        lab = canvases[0].lab
        wanted = services.WantedReadings(
            canvases=canvases,
            people=people_named(lab, asked["people"]),
            due_on=asked.get("due_on"),
            note=asked.get("note", ""),
        )
        if asked.get("study"):
            study = selectors.study_get(user, asked["study"])
            made = services.readings_assign(study=study, user=user, wanted=wanted)
        else:
            made = services.work_assign(lab=lab, user=user, wanted=wanted)
        total = len(wanted.canvases) * len(wanted.people)
        told = {"made": len(made), "known": total - len(made)}
        return Response(told, status=status.HTTP_201_CREATED)

    @extend_schema(
        request=AssignmentChangeSerializer,
        responses=AssignmentSerializer,
        summary="Change the day or the note of an assignment",
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        """For managers; what is left out stays."""
        row = self.get_object()
        body = AssignmentChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        asked = {"due_on": row.due_on, "note": row.note} | body.validated_data
        services.assignment_update(assignment=row, user=user_of(request), **asked)
        return Response(AssignmentSerializer(self.get_object()).data)

    @extend_schema(responses={204: None}, summary="Withdraw an assignment")
    def destroy(self, request: Request, pk: str) -> Response:
        """For managers. What was drawn stays."""
        services.assignment_remove(assignment=self.get_object(), user=user_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class AssignmentSubmitApi(ApiView):
    """Hand an assignment in."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="assignments_submit",
        request=None,
        responses=AssignmentSerializer,
        summary="Hand in an assignment",
    )
    def post(self, request: Request, id: uuid.UUID) -> Response:
        """By the person it is assigned to. A reading keeps its regions as they are now."""
        user = user_of(request)
        row = selectors.assignment_get(user, id)
        services.assignment_submit(assignment=row, user=user)
        return Response(AssignmentSerializer(selectors.assignment_get(user, id)).data)


class AssignmentReopenApi(ApiView):
    """Give an assignment back."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="assignments_reopen",
        request=None,
        responses=AssignmentSerializer,
        summary="Return an assignment to its person",
    )
    def post(self, request: Request, id: uuid.UUID) -> Response:
        """For managers, while the person has not seen the others' regions."""
        user = user_of(request)
        services.assignment_reopen(assignment=selectors.assignment_get(user, id), user=user)
        return Response(AssignmentSerializer(selectors.assignment_get(user, id)).data)
