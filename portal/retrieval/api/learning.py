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

from portal.core.api.views import ApiViewSet
from portal.core.http.acting import about
from portal.jobs.api import job_accepted
from portal.jobs.serializers import JobSerializer
from portal.labs.models import Role, TokenArea
from portal.labs.requests import user_of
from portal.labs.rules import require_role
from portal.labs.selectors import lab_chosen, labs_with_role
from portal.retrieval import selectors, services
from portal.retrieval.models import EncoderKind, Learning, LearningMethod
from portal.retrieval.serializers import LearningAskSerializer, LearningSerializer


class LearningViewSet(mixins.ListModelMixin, ApiViewSet[Learning]):
    """What was learned from the archives of the labs that one manages, the newest first."""

    area = TokenArea.LAB
    works_apart = True  # it counts what there is to learn from
    serializer_class = LearningSerializer
    queryset = Learning.objects.none()
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[Learning]:
        """Of the labs that one manages."""
        user = user_of(self.request)
        managed = labs_with_role(user, at_least=Role.MANAGER)
        return selectors.learnings_of(user).filter(lab__in=managed)

    @extend_schema(request=LearningAskSerializer, responses={202: LearningSerializer})
    def create(self, request: Request) -> Response:
        """Learn from a lab's archive; the learning under way, if there is one.

        A `metric` is learned from labels and judgements, over kept vectors: minutes. An `encoder`
        learns from the pixels of the regions, for `steps` or `hours`, whichever ends first.
        `job` does it. `409` where there is too little to learn from: `detail` says how much it
        takes and how much there is.
        """
        sent = LearningAskSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        user = user_of(request)
        lab = lab_chosen(user, sent.validated_data.get("lab"), at_least=Role.MANAGER)
        kind = EncoderKind(sent.validated_data["kind"])
        asked = sent.validated_data
        is_encoder = asked["method"] == LearningMethod.ENCODER
        training = services.WantedTraining(asked["steps"], asked["hours"]) if is_encoder else None
        made = services.learning_ask(lab=lab, kind=kind, user=user, training=training)
        about(request, made.pk)
        return Response(LearningSerializer(made).data, status=202)

    @extend_schema(responses=LearningSerializer)
    def retrieve(self, request: Request, pk: str) -> Response:
        """One of them: what it was learned from, by which rules, and what it is worth."""
        return Response(LearningSerializer(self._managed(request, pk)).data)

    @extend_schema(operation_id="learning_promote", request=None, responses={202: JobSerializer})
    @action(detail=True, methods=["post"])
    def promote(self, request: Request, pk: str) -> Response:
        """Let the lab's searches use it, once the job has embedded the archive with it.

        `409` where it is not better by its own rule, is in use, or was compared with something
        other than what the lab's searches use now.
        """
        learning = self._managed(request, pk)
        job = services.learning_promote(learning=learning, user=user_of(request))
        return job_accepted(job, request)

    @extend_schema(
        operation_id="learning_roll_back", request=None, responses={200: LearningSerializer}
    )
    @action(detail=True, methods=["post"], url_path="roll-back", url_name="roll-back")
    def roll_back(self, request: Request, pk: str) -> Response:
        """Let the lab's searches use what they used before.

        That is `compared_with`. The encoder of all labs takes over at once; one of the lab's own
        as soon as a job has embedded what was drawn in the meantime.
        """
        learning = self._managed(request, pk)
        found = services.learning_roll_back(learning=learning, user=user_of(request))
        return Response(LearningSerializer(found).data)

    def _managed(self, request: Request, pk: Any) -> Learning:
        user = user_of(request)
        found = get_object_or_404(selectors.learnings_of(user), pk=pk)
        require_role(user, found.lab_id, at_least=Role.MANAGER)
        return found
