"""``/api/v1/vocabulary/``: a lab's terms for organ and diagnosis."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import IO, Any

from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from portal.archive.models import VocabularyField, VocabularyTerm
from portal.archive.selectors.vocabulary import vocabulary_list, vocabulary_term_get
from portal.archive.services.vocabulary import (
    MAX_FILE_BYTES,
    MAX_TERMS,
    vocabulary_csv,
    vocabulary_delete,
    vocabulary_import,
)
from portal.core.api.views import ApiViewSet
from portal.core.errors import InvalidInputError
from portal.core.http.audit_rules import audited, rejections
from portal.core.http.downloads import attachment
from portal.labs.models import Role, TokenArea
from portal.labs.requests import UUID_REGEX, user_of
from portal.labs.selectors import lab_chosen


class CsvParser(BaseParser):
    """The bytes of a CSV file; the service decodes them."""

    media_type = "text/csv"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Read the body, up to one byte beyond ``MAX_FILE_BYTES``."""
        return bytes(stream.read(MAX_FILE_BYTES + 1))


class VocabularyTermSerializer(serializers.ModelSerializer[VocabularyTerm]):
    """A term that the lab suggests for organ or diagnosis."""

    class Meta:
        model = VocabularyTerm
        fields = ("id", "lab", "field", "term", "code", "created_at", "updated_at")
        read_only_fields = fields


class VocabularyQuerySerializer(serializers.Serializer[Any]):
    """Filters of the list of terms."""

    lab = serializers.UUIDField(required=False)
    field = serializers.ChoiceField(VocabularyField.choices, required=False)
    q = serializers.CharField(
        required=False, max_length=200, help_text="Words of the term, or the beginning of its code"
    )


class VocabularyImportQuerySerializer(serializers.Serializer[Any]):
    """Query parameters of an import."""

    lab = serializers.UUIDField(required=False)
    dry_run = serializers.BooleanField(
        required=False, default=False, help_text="Count what an import would change, write nothing"
    )


class VocabularyImportSerializer(serializers.Serializer[Any]):
    """Numbers of terms of an imported file."""

    added = serializers.IntegerField()
    changed = serializers.IntegerField(help_text="With another code or spelling")
    unchanged = serializers.IntegerField()


class VocabularyRemoveSerializer(serializers.Serializer[Any]):
    """Terms to delete: by id, or all of a field."""

    lab = serializers.UUIDField(required=False)
    terms = serializers.ListField(
        child=serializers.UUIDField(), max_length=MAX_TERMS, required=False
    )
    of_field = serializers.ChoiceField(VocabularyField.choices, required=False)


class VocabularyRemovedSerializer(serializers.Serializer[Any]):
    """Number of terms that were deleted."""

    deleted = serializers.IntegerField()


@audited(
    list=None,
    destroy=rejections("vocabulary.deleted"),
    load=rejections("vocabulary.imported"),
    remove=rejections("vocabulary.deleted"),
    file=None,
)
class VocabularyViewSet(ApiViewSet[VocabularyTerm]):
    """Terms that a lab suggests for organ and diagnosis, with codes. Managers keep them."""

    area = TokenArea.CASES
    queryset = VocabularyTerm.objects.none()
    serializer_class = VocabularyTermSerializer
    filter_backends = ()
    lookup_value_regex = UUID_REGEX

    @extend_schema(
        parameters=[VocabularyQuerySerializer],
        responses=VocabularyTermSerializer(many=True),
        summary="List the terms of a vocabulary",
    )
    def list(self, request: Request) -> Response:
        """List the terms of the user's labs, by field and name."""
        rows = self.paginate_queryset(_terms_requested(request)) or []
        return self.get_paginated_response(VocabularyTermSerializer(rows, many=True).data)

    @extend_schema(
        parameters=[VocabularyImportQuerySerializer],
        request={"text/csv": OpenApiTypes.STR},
        responses=VocabularyImportSerializer,
        summary="Import a vocabulary",
    )
    @action(detail=False, methods=["post"], url_path="import", parser_classes=[CsvParser])
    def load(self, request: Request) -> Response:
        """Import a CSV file, sent as the body, with the columns `field`, `term` and `code`, in
        UTF-8.

        The import is all or nothing: 400 names the row and column that are not valid. Existing
        terms get the code of the file; terms that the file lacks stay.
        """
        query = VocabularyImportQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        user, params = user_of(request), query.validated_data
        lab = lab_chosen(user, params.get("lab"), at_least=Role.MANAGER)
        if not isinstance(request.data, bytes):
            raise InvalidInputError("Send the CSV file as the body, with Content-Type: text/csv.")
        result = vocabulary_import(
            lab=lab, user=user, data=request.data, is_preview=params["dry_run"]
        )
        return Response(VocabularyImportSerializer(result).data)

    @extend_schema(
        parameters=[VocabularyQuerySerializer],
        responses={(200, "text/csv"): OpenApiTypes.STR},
        summary="Download a vocabulary as CSV",
    )
    @action(detail=False, methods=["get"])
    def file(self, request: Request) -> HttpResponse:
        """Download the terms as a file that can be imported."""
        return HttpResponse(
            vocabulary_csv(_terms_requested(request)),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": attachment("vocabulary", ".csv", fallback="")},
        )

    @extend_schema(
        request=VocabularyRemoveSerializer,
        responses=VocabularyRemovedSerializer,
        summary="Delete many terms",
    )
    @action(detail=False, methods=["post"])
    def remove(self, request: Request) -> Response:
        """Delete the terms with the ids `terms`, or all of a field. Cases keep their words."""
        body = VocabularyRemoveSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        user, data = user_of(request), body.validated_data
        lab = lab_chosen(user, data.get("lab"), at_least=Role.MANAGER)
        count = vocabulary_delete(
            lab=lab, user=user, ids=data.get("terms"), field=data.get("of_field", "")
        )
        return Response(VocabularyRemovedSerializer({"deleted": count}).data)

    @extend_schema(responses={204: None}, summary="Delete a term")
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete a term. Cases keep their words."""
        user = user_of(request)
        term = vocabulary_term_get(user=user, term_id=uuid.UUID(pk))
        vocabulary_delete(lab=term.lab, user=user, ids=[term.pk])
        return Response(status=status.HTTP_204_NO_CONTENT)


def _terms_requested(request: Request) -> QuerySet[VocabularyTerm]:
    query = VocabularyQuerySerializer(data=request.query_params)
    query.is_valid(raise_exception=True)
    params = query.validated_data
    return vocabulary_list(
        user=user_of(request),
        lab_id=params.get("lab"),
        field=params.get("field", ""),
        text=params.get("q", ""),
    )
