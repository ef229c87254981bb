"""REST of studies."""

from __future__ import annotations

import uuid

from drf_spectacular.utils import extend_schema
from rest_framework import mixins, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.api.views import ApiView, ApiViewSet
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited, rejections
from portal.labs.models import Role, TokenArea
from portal.labs.requests import UUID_REGEX, user_of
from portal.labs.selectors import lab_chosen
from portal.reader_studies.models import Study
from portal.reader_studies.selectors import studies as selectors
from portal.reader_studies.selectors.candidates import labels_named
from portal.reader_studies.serializers import StudyCreateSerializer, StudySerializer
from portal.reader_studies.services.studies import study_create, study_unblind


@audited(
    list=AuditRule("study.viewed", every_s=HOUR_S),
    create=rejections("study.created"),
    retrieve=AuditRule("study.viewed", "study", "pk", every_s=MINUTE_S),
)
class StudyApi(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiViewSet[Study]):
    """Studies: images that several readers read independently, to be compared."""

    area = TokenArea.ROIS
    queryset = Study.objects.none()
    serializer_class = StudySerializer
    filter_backends = ()
    lookup_value_regex = UUID_REGEX

    def get_queryset(self):  # type: ignore[no-untyped-def]
        """Studies of labs in which the user reviews, and those the user reads in."""
        return selectors.study_list(user_of(self.request)).prefetch_related("labels")

    def get_object(self) -> Study:
        """Study in the list."""
        return selectors.study_get(user_of(self.request), uuid.UUID(self.kwargs["pk"]))

    @extend_schema(
        request=StudyCreateSerializer, responses={201: StudySerializer}, summary="Start a study"
    )
    def create(self, request: Request) -> Response:
        """Create a study. Managers only; `POST /assignments/` adds images and readers."""
        body = StudyCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data, user = dict(body.validated_data), user_of(request)
        lab = lab_chosen(user, data.pop("lab", None), at_least=Role.MANAGER)
        labels = labels_named(lab, data.pop("labels", []))
        new_study = study_create(lab=lab, user=user, labels=labels, **data)
        study = selectors.study_get(user, new_study.pk)
        return Response(StudySerializer(study).data, status=status.HTTP_201_CREATED)


@audited(POST=rejections("study.unblinded", "study", "id"))
class StudyUnblindApi(ApiView):
    """Let readers see each other's regions."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="studies_unblind",
        request=None,
        responses=StudySerializer,
        summary="Unblind a study",
    )
    def post(self, request: Request, id: uuid.UUID) -> Response:
        """Unblind the study, also for unsubmitted readings.

        Managers only; recorded in the audit log.
        """
        user = user_of(request)
        study_unblind(study=selectors.study_get(user, id), user=user)
        return Response(StudySerializer(selectors.study_get(user, id)).data)
