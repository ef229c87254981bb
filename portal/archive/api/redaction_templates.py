"""``/api/v1/redaction-templates/``: boxes for all held files of a scope."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import mixins, serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from ml.imaging.results import PictureBox
from ml.types import JsonObject
from portal.archive.api.intake import BoxSerializer
from portal.archive.models import RedactionTemplate
from portal.archive.selectors.intake import quarantine_get
from portal.archive.selectors.redaction_templates import (
    redaction_template_get,
    redaction_template_list,
)
from portal.archive.services.gate.quarantine import MAX_BOXES
from portal.archive.services.gate.redaction_templates import (
    redaction_template_apply,
    redaction_template_delete,
    redaction_template_save,
)
from portal.core.api.views import ApiViewSet
from portal.core.http.audit_rules import HOUR_S, AuditRule, audited, rejections
from portal.labs.models import TokenArea
from portal.labs.requests import UUID_REGEX, user_of


class RedactionTemplateSerializer(serializers.ModelSerializer[RedactionTemplate]):
    """Boxes for all files of one kind, device and picture size."""

    boxes = serializers.SerializerMethodField()
    held_count = serializers.IntegerField(
        help_text="Number of held files of this scope without boxes of their own"
    )

    class Meta:
        model = RedactionTemplate
        fields = (
            "id",
            "lab",
            "kind",
            "device",
            "width_px",
            "height_px",
            "boxes",
            "held_count",
            "created_at",
            "updated_at",
        )
        read_only_fields = fields

    @extend_schema_field(BoxSerializer(many=True))
    def get_boxes(self, template: RedactionTemplate) -> list[JsonObject]:
        """Boxes as shares of the picture's width and height."""
        return template.boxes_named


class RedactionTemplateInputSerializer(serializers.Serializer[Any]):
    """A file in quarantine, whose scope the template is for, and its boxes."""

    upload = serializers.UUIDField(help_text="Id of a file in quarantine with a `scope`")
    boxes = serializers.ListField(child=BoxSerializer(), min_length=1, max_length=MAX_BOXES)


class RedactionTemplateAppliedSerializer(serializers.Serializer[Any]):
    """The jobs that redact the files."""

    count = serializers.IntegerField()
    jobs = serializers.ListField(child=serializers.UUIDField())


@audited(
    list=AuditRule("intake.viewed", every_s=HOUR_S),
    create=rejections("redaction_template.saved"),
    destroy=rejections("redaction_template.deleted", "template", "pk"),
    apply=rejections("quarantine.redacted", "template", "pk"),
)
class RedactionTemplateViewSet(mixins.ListModelMixin, ApiViewSet[RedactionTemplate]):
    """Redaction templates, for the managers of their labs."""

    area = TokenArea.CASES
    serializer_class = RedactionTemplateSerializer
    queryset = RedactionTemplate.objects.none()
    lookup_value_regex = UUID_REGEX
    filter_backends = ()

    def get_queryset(self) -> QuerySet[RedactionTemplate]:
        """Restrict to the labs that the user manages."""
        return redaction_template_list(user=user_of(self.request))

    def get_object(self) -> RedactionTemplate:
        """Return the template of the path; 403 to members who do not manage its lab."""
        template_id = uuid.UUID(self.kwargs["pk"])
        return redaction_template_get(user=user_of(self.request), template_id=template_id)

    @extend_schema(
        request=RedactionTemplateInputSerializer,
        responses={201: RedactionTemplateSerializer},
        summary="Save a redaction template",
    )
    def create(self, request: Request) -> Response:
        """Save boxes for the scope of a file, replacing its template. Nothing is redacted."""
        body = RedactionTemplateInputSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        user, data = user_of(request), body.validated_data
        template = redaction_template_save(
            upload=quarantine_get(user=user, upload_id=data["upload"]),
            user=user,
            boxes=[PictureBox(**box) for box in data["boxes"]],
        )
        saved = redaction_template_get(user=user, template_id=template.pk)
        return Response(RedactionTemplateSerializer(saved).data, status=status.HTTP_201_CREATED)

    @extend_schema(responses={204: None}, summary="Delete a redaction template")
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete a template; redacted files are not changed."""
        redaction_template_delete(template=self.get_object(), user=user_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        request=None,
        responses={202: RedactionTemplateAppliedSerializer},
        summary="Redact all held files of a template's scope",
    )
    @action(detail=True, methods=["post"])
    def apply(self, request: Request, pk: str) -> Response:
        """Submit a job for each file, at most 200 in a request; 409 if no file is held.

        Files with boxes of their own are skipped. A file in which text is still found returns to
        the quarantine.
        """
        received = redaction_template_apply(template=self.get_object(), user=user_of(request))
        jobs = [item.job.pk for item in received if item.job is not None]
        answer = {"count": len(received), "jobs": jobs}
        return Response(
            RedactionTemplateAppliedSerializer(answer).data, status=status.HTTP_202_ACCEPTED
        )
