"""REST: files in quarantine, and how a lab takes files in."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import mixins, serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from ml.types import JsonObject
from portal.archive import selectors, services
from portal.archive.models import Evidence, IntakeRules, Seen, Upload
from portal.archive.rules import require_intake
from portal.archive.services import IntakeWanted, ItemReceived
from portal.core.api.views import ApiView, ApiViewSet
from portal.core.errors import NotFoundError
from portal.core.http.files import bytes_response
from portal.jobs.api import job_answered
from portal.jobs.serializers import JobSerializer
from portal.labs.models import TokenArea
from portal.labs.requests import UUID_REGEX, user_of
from portal.labs.selectors import lab_named


class RevealingSerializer(serializers.Serializer[Any]):
    """A place in the picture of a file that may reveal somebody."""

    kind = serializers.ChoiceField(choices=("text", "face", "outside"))
    x = serializers.FloatField(help_text="Left edge, as a share of the picture's width")
    y = serializers.FloatField(help_text="Upper edge, as a share of its height")
    width = serializers.FloatField()
    height = serializers.FloatField()
    at_s = serializers.FloatField(
        allow_null=True,
        help_text="Seconds into a video; null for a picture, or if seen throughout the video",
    )


class QuarantinedSerializer(serializers.ModelSerializer[Upload]):
    """A file that did not pass the gate."""

    can_release = serializers.SerializerMethodField()
    quarantined_at = serializers.DateTimeField(source="updated_at")
    found = serializers.SerializerMethodField(
        help_text="Places in its picture that may reveal somebody; `picture/` shows it"
    )

    class Meta:
        model = Upload
        fields = (
            "id",
            "lab",
            "case",
            "filename",
            "name",
            "size_bytes",
            "sha256",
            "error_code",
            "error_message",
            "can_release",
            "found",
            "created_at",
            "quarantined_at",
        )

    def get_can_release(self, upload: Upload) -> bool:
        """Whether only a rule of the lab held it back."""
        return upload.error_code in services.RELEASABLE

    @extend_schema_field(RevealingSerializer(many=True))
    def get_found(self, upload: Upload) -> list[JsonObject]:
        """What was seen in its pixels; empty if they were not the reason."""
        seen: Evidence | None = getattr(upload, "evidence", None)
        return list(seen.found) if seen else []


class ReleaseSerializer(serializers.Serializer[Any]):
    """Why a file may pass."""

    reason = serializers.CharField(max_length=300)


class ReleasedSerializer(serializers.Serializer[Any]):
    """The slide or video that is being made of it."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=("slide", "video"))
    name = serializers.CharField()
    job = JobSerializer(allow_null=True)


_ACCEPTED = {202: OpenApiResponse(ReleasedSerializer, description="`Location` names the job")}


class QuarantineViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiViewSet[Upload]):
    """Files in quarantine, for the managers of their labs."""

    area = TokenArea.CASES
    serializer_class = QuarantinedSerializer
    queryset = Upload.objects.none()
    lookup_value_regex = UUID_REGEX
    filter_backends = ()

    def get_queryset(self) -> QuerySet[Upload]:
        """Of the labs that this user manages."""
        return selectors.quarantine_list(user=user_of(self.request))

    def get_object(self) -> Upload:
        """One of them; 403 to members who do not manage the lab."""
        return selectors.quarantine_get(
            user=user_of(self.request), upload_id=uuid.UUID(self.kwargs["pk"])
        )

    @extend_schema(
        responses={(200, "image/jpeg"): OpenApiTypes.BINARY},
        summary="What was found in its pixels",
    )
    @action(detail=True, methods=["get"])
    def picture(self, request: Request, pk: str) -> HttpResponse:
        """An overview with the places framed, and each of them enlarged; 404 without any."""
        upload = self.get_object()
        seen: Evidence | None = getattr(upload, "evidence", None)
        if seen is None:
            raise NotFoundError("Nothing was found in the pixels of this file.")
        return bytes_response(request, bytes(seen.picture), etag=f'"e-{seen.pk.hex}"')

    @extend_schema(request=None, responses=_ACCEPTED)
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: str) -> Response:
        """Prepare it again."""
        received = services.quarantine_retry(upload=self.get_object(), user=user_of(request))
        return _answered(request, received)

    @extend_schema(request=ReleaseSerializer, responses=_ACCEPTED)
    @action(detail=True, methods=["post"])
    def release(self, request: Request, pk: str) -> Response:
        """Let it pass, with a reason. 409 if it cannot be opened at all."""
        upload, body = self.get_object(), ReleaseSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        received = services.quarantine_release(
            upload=upload, user=user_of(request), reason=body.validated_data["reason"]
        )
        return _answered(request, received)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete the file for good."""
        services.quarantine_delete(upload=self.get_object(), user=user_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class IntakeRulesSerializer(serializers.Serializer[Any]):
    """How a lab takes files in."""

    lab = serializers.UUIDField(source="lab_id", read_only=True)
    takes_names_out = serializers.BooleanField(
        help_text="Labels, macro images and fields that may name somebody are removed from files"
    )
    must_be_clean = serializers.BooleanField(
        help_text="A file is put into quarantine if something cannot be removed from it"
    )
    titles_from_files = serializers.BooleanField(
        help_text=(
            "An item without a title is named after its file; otherwise it is numbered within the "
            "case"
        )
    )
    text_in_pixels = serializers.ChoiceField(
        choices=Seen.choices,
        required=False,
        help_text="What happens to a file with text in its picture; unchanged if left out",
    )
    faces_in_pixels = serializers.ChoiceField(
        choices=Seen.choices,
        required=False,
        help_text=(
            "The same for faces; frames outside the body only cause a warning, unless this is off"
        ),
    )


class IntakeRulesApi(ApiView):
    """How a lab takes files in."""

    area = TokenArea.LAB
    if_match: ClassVar = {"PUT": True}

    @extend_schema(
        operation_id="intake_rules_retrieve",
        responses=IntakeRulesSerializer,
        summary="How a lab takes files in",
    )
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """For its members."""
        lab = lab_named(user_of(request), id)
        return Response(self.shown(self.seen(selectors.intake_rules_of(lab.pk))))

    @extend_schema(
        operation_id="intake_rules_update",
        request=IntakeRulesSerializer,
        responses=IntakeRulesSerializer,
        summary="Set how a lab takes files in",
    )
    def put(self, request: Request, id: uuid.UUID) -> Response:
        """For its managers. Files that are there already stay as they are."""
        lab = lab_named(user_of(request), id)
        require_intake(user_of(request), lab.pk)
        body = IntakeRulesSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        present = self.seen(selectors.intake_rules_of(lab.pk))
        kept = {name: getattr(present, name) for name in ("text_in_pixels", "faces_in_pixels")}
        wanted = IntakeWanted(**kept | body.validated_data)
        rules = services.intake_rules_set(lab=lab, user=user_of(request), wanted=wanted)
        return Response(self.shown(rules))

    def shown(self, row: IntakeRules) -> Any:
        """The rules as every answer has them."""
        return IntakeRulesSerializer(row).data


def _answered(request: Request, received: ItemReceived) -> Response:
    item = received.item
    return job_answered(
        received.job,
        request,
        id=str(item.pk),
        kind=str(item._meta.model_name),
        name=item.name,
    )
