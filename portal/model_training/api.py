"""REST: learning a metric or an encoder from a lab's archive, for managers."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.generics import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from portal.archive.models import Modality
from portal.core.api.views import ApiViewSet
from portal.core.http.acting import set_audited_id
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited, rejections
from portal.jobs.api import job_accepted
from portal.jobs.serializers import JobSerializer
from portal.labs.models import Role, TokenArea
from portal.labs.requests import user_of
from portal.labs.rules import require_role
from portal.labs.selectors import lab_chosen, labs_with_role
from portal.model_training.models import Learning, LearningMethod
from portal.model_training.selectors.learnings import learnings_of
from portal.model_training.serializers import LearningCreateSerializer, LearningSerializer
from portal.model_training.services.learnings import (
    TrainingLimits,
    learning_promote,
    learning_roll_back,
    learning_submit,
)


@audited(
    list=AuditRule("learning.viewed", every_s=HOUR_S),
    create=rejections("learning.requested"),
    retrieve=AuditRule("learning.viewed", "learning", "pk", every_s=MINUTE_S),
    promote=rejections("learning.promoted", "learning", "pk"),
    roll_back=rejections("learning.rolled_back", "learning", "pk"),
)
class LearningViewSet(mixins.ListModelMixin, ApiViewSet[Learning]):
    """Metrics and encoders learned from the archives of the labs that the user manages, newest
    first."""

    area = TokenArea.LAB
    holds_transaction = False  # counts the training data
    serializer_class = LearningSerializer
    queryset = Learning.objects.none()
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[Learning]:
        """Restrict to labs that the user manages."""
        user = user_of(self.request)
        managed = labs_with_role(user, at_least=Role.MANAGER)
        return learnings_of(user).filter(lab__in=managed)

    @extend_schema(request=LearningCreateSerializer, responses={202: LearningSerializer})
    def create(self, request: Request) -> Response:
        """Submit a training on the lab's archive; returns the running one, if there is one.

        A `metric` is learned from labels and judgements on stored vectors, within minutes. An
        `encoder` is trained on the pixels of the regions, for `steps` or `hours`, whichever ends
        first. `409` if there is too little data: `detail` states how much is needed and how much
        there is.
        """
        serializer = LearningCreateSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        user = user_of(request)
        lab = lab_chosen(user, serializer.validated_data.get("lab"), at_least=Role.MANAGER)
        kind = Modality(serializer.validated_data["kind"])
        data = serializer.validated_data
        is_encoder = data["method"] == LearningMethod.ENCODER
        training = TrainingLimits(data["steps"], data["hours"]) if is_encoder else None
        learning = learning_submit(lab=lab, kind=kind, user=user, training=training)
        set_audited_id(request, learning.pk)
        return Response(LearningSerializer(learning).data, status=202)

    @extend_schema(responses=LearningSerializer)
    def retrieve(self, request: Request, pk: str) -> Response:
        """A training: its data, rules and measured effect."""
        return Response(LearningSerializer(self._learning_managed(request, pk)).data)

    @extend_schema(operation_id="learning_promote", request=None, responses={202: JobSerializer})
    @action(detail=True, methods=["post"])
    def promote(self, request: Request, pk: str) -> Response:
        """Use the trained encoder in the lab's searches as soon as a job has embedded the archive
        with it.

        `409` if it is not better by its own rule, is in use, or was compared with an encoder other
        than the one in use.
        """
        learning = self._learning_managed(request, pk)
        job = learning_promote(learning=learning, user=user_of(request))
        return job_accepted(job, request)

    @extend_schema(
        operation_id="learning_roll_back", request=None, responses={200: LearningSerializer}
    )
    @action(detail=True, methods=["post"], url_path="roll-back", url_name="roll-back")
    def roll_back(self, request: Request, pk: str) -> Response:
        """Use the previous encoder (`compared_with`) in the lab's searches again.

        The encoder of all labs takes over at once; one of the lab as soon as a job has embedded the
        regions drawn since.
        """
        learning = self._learning_managed(request, pk)
        previous = learning_roll_back(learning=learning, user=user_of(request))
        return Response(LearningSerializer(previous).data)

    def _learning_managed(self, request: Request, pk: Any) -> Learning:
        user = user_of(request)
        learning = get_object_or_404(learnings_of(user), pk=pk)
        require_role(user, learning.lab_id, at_least=Role.MANAGER)
        return learning


router_entries = [("learnings", LearningViewSet, "learning")]
