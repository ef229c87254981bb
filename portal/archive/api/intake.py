"""REST: files in quarantine, and how a lab takes files in."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, get_args

from django.db.models import QuerySet
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiResponse,
    extend_schema,
    extend_schema_field,
    extend_schema_view,
)
from rest_framework import mixins, serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from ml.imaging.results import PictureBox, PixelKind
from ml.types import JsonObject
from portal.archive.models import Evidence, IntakeRules, PixelRule, Redaction, Upload
from portal.archive.models.intake import MAX_IGNORED_WORD_LETTERS, MAX_IGNORED_WORDS
from portal.archive.selectors.intake import (
    intake_rules_of,
    original_get,
    original_path,
    originals_list,
    preview_of,
    quarantine_get,
    quarantine_list,
)
from portal.archive.services.gate.quarantine import (
    MAX_BOXES,
    RELEASABLE,
    original_delete,
    quarantine_delete,
    quarantine_redact,
    quarantine_release,
    quarantine_retry,
)
from portal.archive.services.gate.rules import IntakeRuleValues, intake_rules_set
from portal.archive.services.items import ItemReceived
from portal.core.api.views import ApiViewSet
from portal.core.errors import NotFoundError
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited, rejections
from portal.core.http.files import bytes_response, range_response
from portal.jobs.api import job_answered
from portal.jobs.serializers import JobSerializer
from portal.labs.api.settings import LabSettingsApi
from portal.labs.models import Lab, TokenArea, User
from portal.labs.requests import UUID_REGEX, user_of


class PixelFindingSerializer(serializers.Serializer[Any]):
    """A place in the picture of a file with text or a person."""

    kind = serializers.ChoiceField(
        choices=get_args(PixelKind),
        help_text=(
            "Kind of identifying text: a date, a time of day with a date, a number, a name, or "
            "none of these (other)"
        ),
    )
    text = serializers.CharField(help_text="Text as read; empty for persons")
    x = serializers.FloatField(help_text="Left edge, as a share of the picture's width")
    y = serializers.FloatField(help_text="Upper edge, as a share of its height")
    width = serializers.FloatField()
    height = serializers.FloatField()
    at_s = serializers.FloatField(
        allow_null=True,
        help_text="Seconds into a video; null for a picture, or if most of the frames show it",
    )


class BoxSerializer(serializers.Serializer[Any]):
    """A rectangle in a picture, as shares of its sides."""

    x = serializers.FloatField(min_value=0, max_value=1, help_text="Left edge")
    y = serializers.FloatField(min_value=0, max_value=1, help_text="Upper edge")
    width = serializers.FloatField(min_value=0, max_value=1)
    height = serializers.FloatField(min_value=0, max_value=1)


class ScopeSerializer(serializers.Serializer[Any]):
    """Files whose pictures have the same layout."""

    kind = serializers.ChoiceField(choices=("slide", "still", "video"))
    device = serializers.CharField(
        help_text="Maker, model and software as the file names them; empty if it names none"
    )
    width_px = serializers.IntegerField()
    height_px = serializers.IntegerField()


class RedactSerializer(serializers.Serializer[Any]):
    """Places to make black."""

    boxes = serializers.ListField(
        child=BoxSerializer(),
        max_length=MAX_BOXES,
        help_text="In every frame of a video; none removes boxes that were drawn before",
    )

    def picture_boxes(self) -> list[PictureBox]:
        """The boxes of valid data."""
        return [PictureBox(**box) for box in self.validated_data["boxes"]]


class FrameParamsSerializer(serializers.Serializer[Any]):
    """Query parameters: the picture of a file, and the place in a video."""

    image = serializers.ChoiceField(
        choices=("label", "macro"),
        required=False,
        help_text="Of a slide; without it the picture itself",
    )
    at = serializers.FloatField(
        min_value=0,
        max_value=1,
        default=0.0,
        help_text="Place in a video: 0 first, 1 last",
    )


class OriginalSerializer(serializers.ModelSerializer[Upload]):
    """The original of a redacted file."""

    redacted_at = serializers.DateTimeField(source="created_at")
    redacted_by = serializers.CharField(source="created_by.full_name", default="")

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
            "redacted_at",
            "redacted_by",
        )


class QuarantinedSerializer(serializers.ModelSerializer[Upload]):
    """A file that did not pass the gate."""

    can_release = serializers.SerializerMethodField()
    quarantined_at = serializers.DateTimeField(source="updated_at")
    findings = serializers.SerializerMethodField(
        help_text="Text and persons in its picture, which `picture/` shows"
    )

    scope = ScopeSerializer(
        source="evidence.scope",
        allow_null=True,
        default=None,
        help_text="Files alike; null if it was not held back for its picture",
    )
    boxes = serializers.SerializerMethodField(
        help_text="Boxes that become black when it is taken in, as drawn before"
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
            "findings",
            "boxes",
            "scope",
            "created_at",
            "quarantined_at",
        )

    def get_can_release(self, upload: Upload) -> bool:
        """Return whether only a rule of the lab held it back."""
        return upload.error_code in RELEASABLE

    @extend_schema_field(PixelFindingSerializer(many=True))
    def get_findings(self, upload: Upload) -> list[JsonObject]:
        """Findings in its pixels; empty if they were not the reason."""
        evidence: Evidence | None = getattr(upload, "evidence", None)
        return list(evidence.findings) if evidence else []

    @extend_schema_field(BoxSerializer(many=True))
    def get_boxes(self, upload: Upload) -> list[JsonObject]:
        """Boxes of an earlier redaction that is not yet in the file."""
        redaction: Redaction | None = getattr(upload, "redaction", None)
        return redaction.boxes_named if redaction else []


class ReleaseSerializer(serializers.Serializer[Any]):
    """Reason to release a file."""

    reason = serializers.CharField(max_length=300)


class ReleasedSerializer(serializers.Serializer[Any]):
    """The slide or video that is being made of it."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=("slide", "video"))
    name = serializers.CharField()
    job = JobSerializer(allow_null=True)


_MAY_BE_LEFT_OUT = (
    *("identifying_text", "other_text", "faces", "ignored_words"),
    "keeps_originals",
)
_ACCEPTED = {202: OpenApiResponse(ReleasedSerializer, description="`Location` names the job")}


class HeldFilesViewSet(mixins.ListModelMixin, ApiViewSet[Upload]):
    """Files that only the managers of their labs reach.

    Attributes:
        rows, find: Selectors of all of them, and of one.
    """

    area = TokenArea.CASES
    queryset = Upload.objects.none()
    lookup_value_regex = UUID_REGEX
    filter_backends = ()
    rows: ClassVar[Callable[..., QuerySet[Upload]]]
    find: ClassVar[Callable[..., Upload]]

    def get_queryset(self) -> QuerySet[Upload]:
        """Restrict to the labs that the user manages."""
        return self.rows(user=user_of(self.request))

    def get_object(self) -> Upload:
        """Return the file of the path; 403 to members who do not manage its lab."""
        return self.find(user=user_of(self.request), upload_id=uuid.UUID(self.kwargs["pk"]))


@audited(
    list=AuditRule("intake.viewed", every_s=HOUR_S),
    retrieve=AuditRule("intake.viewed", "upload", "pk", every_s=MINUTE_S),
    destroy=rejections("quarantine.deleted", "upload", "pk"),
    picture=AuditRule("intake.viewed", "upload", "pk", every_s=MINUTE_S),
    frame=AuditRule("intake.viewed", "upload", "pk", every_s=MINUTE_S),
    redact=rejections("quarantine.redacted", "upload", "pk"),
    release=rejections("quarantine.released", "upload", "pk"),
    retry=rejections("quarantine.retried", "upload", "pk"),
)
class QuarantineViewSet(mixins.RetrieveModelMixin, HeldFilesViewSet):
    """Files in quarantine, for the managers of their labs."""

    serializer_class = QuarantinedSerializer
    rows, find = staticmethod(quarantine_list), staticmethod(quarantine_get)

    @extend_schema(
        responses={(200, "image/jpeg"): OpenApiTypes.BINARY},
        summary="Show the findings in the pixels of a held file",
    )
    @action(detail=True, methods=["get"])
    def picture(self, request: Request, pk: str) -> HttpResponse:
        """An overview with the findings framed, and each of them enlarged.

        Managers only; 404 without findings.
        """
        upload = self.get_object()
        evidence: Evidence | None = getattr(upload, "evidence", None)
        if evidence is None:
            raise NotFoundError("Nothing was found in the pixels of this file.")
        return bytes_response(request, bytes(evidence.picture), etag=f'"e-{evidence.pk.hex}"')

    @extend_schema(
        parameters=[FrameParamsSerializer],
        responses={(200, "image/jpeg"): OpenApiTypes.BINARY},
        summary="Show an image or a frame of a held file",
    )
    @action(detail=True, methods=["get"])
    def frame(self, request: Request, pk: str) -> HttpResponse:
        """The image, or a frame of the video, at most 1,600 px wide or high.

        Managers only. 404 without such an image, 409 if it cannot be opened.
        """
        upload, params = self.get_object(), FrameParamsSerializer(data=request.query_params)
        params.is_valid(raise_exception=True)
        image, at = params.validated_data.get("image", ""), params.validated_data["at"]
        etag = f'"f-{upload.pk.hex}-{image}-{at:.4f}"'
        return bytes_response(
            request,
            lambda: preview_of(upload, image=image, at=at).picture,
            etag=etag,
            cache="private, no-store",
        )

    @extend_schema(request=RedactSerializer, responses=_ACCEPTED)
    @action(detail=True, methods=["post"])
    def redact(self, request: Request, pk: str) -> Response:
        """Blacken boxes for good and ingest the file if it then passes the checks. Managers only.

        A still, slide or video is rewritten: the pixels below the boxes are in no level and no
        frame of the new file, which has no label, no metadata and no sound. The original is deleted
        for good, unless `keeps_originals` of the lab's rules is set.
        """
        upload, body = self.get_object(), RedactSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        received = quarantine_redact(
            upload=upload, user=user_of(request), boxes=body.picture_boxes()
        )
        return _received_response(request, received)

    @extend_schema(request=None, responses=_ACCEPTED)
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: str) -> Response:
        """Repeat the preparation of the file. Managers only."""
        received = quarantine_retry(upload=self.get_object(), user=user_of(request))
        return _received_response(request, received)

    @extend_schema(request=ReleaseSerializer, responses=_ACCEPTED)
    @action(detail=True, methods=["post"])
    def release(self, request: Request, pk: str) -> Response:
        """Release the file with a reason. Managers only; 409 if it cannot be opened."""
        upload, body = self.get_object(), ReleaseSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        received = quarantine_release(
            upload=upload, user=user_of(request), reason=body.validated_data["reason"]
        )
        return _received_response(request, received)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete the file for good. Managers only."""
        quarantine_delete(upload=self.get_object(), user=user_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


@audited(
    list=AuditRule("intake.viewed", every_s=HOUR_S),
    destroy=rejections("original.deleted", "upload", "pk"),
    file=AuditRule("original.downloaded", "upload", "pk"),
)
class OriginalViewSet(HeldFilesViewSet):
    """Originals of redacted files, where a lab keeps them; for its managers."""

    serializer_class = OriginalSerializer
    rows, find = staticmethod(originals_list), staticmethod(original_get)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete the original for good. Managers only."""
        original_delete(upload=self.get_object(), user=user_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
        summary="Download the original",
    )
    @action(detail=True, methods=["get"])
    def file(self, request: Request, pk: str) -> HttpResponseBase:
        """Download the file as it was uploaded; supports byte ranges. Managers only."""
        upload = self.get_object()
        response = range_response(
            request,
            original_path(upload),
            etag=f'"o-{upload.sha256}"',
            media_type="application/octet-stream",
        )
        response["Content-Disposition"] = content_disposition_header(
            as_attachment=True, filename=upload.filename
        )
        return response


class IntakeRulesSerializer(serializers.Serializer[Any]):
    """A lab's rules for incoming files."""

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
    identifying_text = serializers.ChoiceField(
        choices=PixelRule.choices,
        required=False,
        help_text=(
            "What happens to a file with a date, a number like an identifier or a name in its "
            "picture; unchanged if left out"
        ),
    )
    other_text = serializers.ChoiceField(
        choices=PixelRule.choices,
        required=False,
        help_text="The same for text that identifies nobody, such as the settings of a device",
    )
    faces = serializers.ChoiceField(
        choices=PixelRule.choices,
        required=False,
        help_text=(
            "The same for faces; frames outside the body only cause a warning, unless this is off"
        ),
    )
    ignored_words = serializers.ListField(
        child=serializers.CharField(max_length=MAX_IGNORED_WORD_LETTERS),
        max_length=MAX_IGNORED_WORDS,
        required=False,
        help_text="Words and phrases in pictures that are not reported, in any case of letters",
    )
    keeps_originals = serializers.BooleanField(
        required=False,
        help_text=(
            "The original of a redacted file is kept, for managers only; otherwise it is deleted "
            "for good. Unchanged if left out"
        ),
    )


@audited(PUT=rejections("intake_rules.changed", "lab", "id"))
@extend_schema_view(
    get=extend_schema(operation_id="intake_rules_retrieve", summary="How a lab takes files in"),
    put=extend_schema(
        operation_id="intake_rules_update",
        summary="Set how a lab takes files in",
        description="For managers. Files that are there already stay as they are.",
    ),
)
class IntakeRulesApi(LabSettingsApi[IntakeRules]):
    """A lab's rules for incoming files."""

    if_match: ClassVar = {"PUT": True}
    serializer_class = IntakeRulesSerializer

    def current(self, lab: Lab) -> IntakeRules:
        """The rules of the lab, or the usual ones."""
        return intake_rules_of(lab.pk)

    def change(
        self, lab: Lab, user: User, row: IntakeRules, data: Mapping[str, Any]
    ) -> IntakeRules:
        """Set the rules; some keep their value if they are left out."""
        unchanged = {name: getattr(row, name) for name in _MAY_BE_LEFT_OUT}
        return intake_rules_set(lab=lab, user=user, values=IntakeRuleValues(**unchanged | {**data}))


def _received_response(request: Request, received: ItemReceived) -> Response:
    item = received.item
    return job_answered(
        received.job,
        request,
        id=str(item.pk),
        kind=str(item._meta.model_name),
        name=item.name,
    )
