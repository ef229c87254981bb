"""``/api/v1/studies/``: studies of several readers."""

from __future__ import annotations

import uuid

from drf_spectacular.utils import extend_schema
from rest_framework import mixins, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.api.views import ApiView, ApiViewSet
from portal.labs.models import Role, TokenArea
from portal.labs.requests import UUID_REGEX, user_of
from portal.labs.selectors import lab_chosen
from portal.reading import selectors
from portal.reading.models import Study
from portal.reading.selectors.choosing import labels_named
from portal.reading.serializers import StudyCreateSerializer, StudySerializer
from portal.reading.services import study_create, study_unblind


class StudyApi(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiViewSet[Study]):
    """Studies: images that several people read independently, to be compared."""

    area = TokenArea.ROIS
    queryset = Study.objects.none()
    serializer_class = StudySerializer
    filter_backends = ()
    lookup_value_regex = UUID_REGEX

    def get_queryset(self):  # type: ignore[no-untyped-def]
        """Of the labs in which the caller reviews, and those they read in."""
        return selectors.study_list(user_of(self.request)).prefetch_related("labels")

    def get_object(self) -> Study:
        """One of those that are listed."""
        return selectors.study_get(user_of(self.request), uuid.UUID(self.kwargs["pk"]))

    @extend_schema(
        request=StudyCreateSerializer, responses={201: StudySerializer}, summary="Start a study"
    )
    def create(self, request: Request) -> Response:
        """For managers. Images and readers are added by `POST /assignments/` with `study`."""
        body = StudyCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        asked, user = dict(body.validated_data), user_of(request)
        lab = lab_chosen(user, asked.pop("lab", None), at_least=Role.MANAGER)
        labels = labels_named(lab, asked.pop("labels", []))
        made = study_create(lab=lab, user=user, labels=labels, **asked)
        study = selectors.study_get(user, made.pk)
        return Response(StudySerializer(study).data, status=status.HTTP_201_CREATED)


class StudyUnblindApi(ApiView):
    """Let readers see each other's regions."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="studies_unblind",
        request=None,
        responses=StudySerializer,
        summary="Lift the blinding of a study",
    )
    def post(self, request: Request, id: uuid.UUID) -> Response:
        """For managers; noted in the audit log. Readings not handed in by then are not blind."""
        user = user_of(request)
        study_unblind(study=selectors.study_get(user, id), user=user)
        return Response(StudySerializer(selectors.study_get(user, id)).data)
