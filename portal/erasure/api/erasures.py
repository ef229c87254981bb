"""REST: erasure of a patient's data."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.api.views import ApiViewSet
from portal.core.http.audit_rules import AuditRule, audited, rejections
from portal.erasure.models import Erasure, ErasureState
from portal.erasure.rules import require_erase
from portal.erasure.selectors.erasures import erasure_get, erasure_list
from portal.erasure.services.erasures import cases_of
from portal.erasure.services.requests import erasure_preview, erasure_request
from portal.jobs.api import job_accepted
from portal.jobs.serializers import JobSerializer
from portal.labs.models import Role, TokenArea
from portal.labs.requests import UUID_REGEX, user_of
from portal.labs.selectors import lab_chosen


class ErasureSerializer(serializers.ModelSerializer[Erasure]):
    """Erasure; the certificate is empty until it has ended."""

    lab = serializers.UUIDField(source="lab_id")
    state = serializers.ChoiceField(choices=ErasureState.choices)
    certificate = serializers.DictField()

    class Meta:
        model = Erasure
        fields: tuple[str, ...] = (
            "id",
            "lab",
            "state",
            "reason",
            "created_at",
            "finished_at",
            "error_message",
            "certificate",
        )


class ErasureAcceptedSerializer(ErasureSerializer):
    """Erasure with its job."""

    job = JobSerializer()

    class Meta(ErasureSerializer.Meta):
        fields = (*ErasureSerializer.Meta.fields, "job")


class ErasureCreateSerializer(serializers.Serializer[Any]):
    """Cases to erase, and the typed confirmation."""

    lab = serializers.UUIDField(
        required=False, help_text="May be left out by managers of a single lab"
    )
    accession = serializers.CharField(
        required=False, max_length=64, help_text="Accession number of one case"
    )
    patient_key = serializers.CharField(
        required=False, max_length=64, help_text="Or this: all cases of the patient"
    )
    typed = serializers.CharField(
        required=False,
        max_length=64,
        help_text="The accession number (or the patient key) once more; if left out, a dry run",
    )
    reason = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="Kept in the certificate; it must not name the patient",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require exactly one of accession and patient_key."""
        if ("accession" in attrs) == ("patient_key" in attrs):
            raise serializers.ValidationError("Give accession or patient_key.")
        return attrs


class ErasurePreviewSerializer(serializers.Serializer[Any]):
    """Extent of an erasure before it is requested."""

    typed = serializers.CharField(help_text="Send this as `typed`")
    accessions = serializers.ListField(child=serializers.CharField())
    counts = serializers.DictField(child=serializers.IntegerField())
    originals = serializers.IntegerField(help_text="Files that no other case uses")
    size_bytes = serializers.IntegerField()
    backups = serializers.IntegerField(
        help_text="Backup generations that still hold it until they are dropped"
    )


@audited(
    list=AuditRule("erasure.viewed"),
    create=rejections("erasure.requested"),
    retrieve=AuditRule("erasure.viewed", "erasure", "pk"),
)
class ErasureViewSet(mixins.ListModelMixin, ApiViewSet[Erasure]):
    """Erasures of the labs that one manages."""

    area = TokenArea.LAB
    serializer_class = ErasureSerializer
    queryset = Erasure.objects.none()
    filter_backends = ()
    lookup_value_regex = UUID_REGEX

    def get_queryset(self) -> QuerySet[Erasure]:
        """Restrict to the labs that the user manages."""
        return erasure_list(user_of(self.request))

    def retrieve(self, request: Request, pk: str) -> Response:
        """State of an erasure, and its certificate."""
        erasure = erasure_get(user_of(request), uuid.UUID(pk))
        require_erase(user_of(request), erasure.lab_id)
        return Response(ErasureSerializer(erasure).data)

    @extend_schema(
        request=ErasureCreateSerializer,
        responses={
            200: OpenApiResponse(ErasurePreviewSerializer, "A dry run: what it would erase"),
            202: OpenApiResponse(ErasureAcceptedSerializer, "Being erased"),
        },
        summary="Erase a case, or a patient",
    )
    def create(self, request: Request) -> Response:
        """Erase a case or a patient for good; without ``typed``, preview the erasure.

        Managers only.
        """
        serializer = ErasureCreateSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data, user = serializer.validated_data, user_of(request)
        lab = lab_chosen(user, data.get("lab"), at_least=Role.MANAGER)
        require_erase(user, lab.pk)
        key = data.get("patient_key", "")
        cases = cases_of(lab=lab, accession=data.get("accession", ""), patient_key=key)
        if "typed" not in data:
            preview = erasure_preview(lab=lab, cases=cases, user=user, patient_key=key)
            return Response(ErasurePreviewSerializer(preview).data)
        erasure, job = erasure_request(
            lab=lab,
            cases=cases,
            user=user,
            typed=data["typed"],
            patient_key=key,
            reason=data.get("reason", ""),
        )
        return job_accepted(job, request, **ErasureSerializer(erasure).data)
