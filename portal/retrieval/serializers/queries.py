"""Queries that are not ROIs, as REST takes and shows them."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.labs.models import Lab
from portal.retrieval.models import EncoderKind, Query, QuerySource
from portal.retrieval.selectors import EXAMPLES_MOST
from portal.retrieval.services import PICTURE_BYTES, QueryAsked

_NAMES = {"canvas": "canvas_id", "roi": "roi_id", "query": "again_id", "picture": "upload"}


class QueryAskSerializer(serializers.Serializer[Any]):
    """What to search with. Each source needs its own fields; the others are passed over."""

    source = serializers.ChoiceField(  # type: ignore[assignment]
        QuerySource.choices,
        required=False,
        help_text="`area`: canvas and geometry, or roi; on a video frame_pts. `frame`: canvas and "
        "frame_pts. `picture`: picture, kind and mpp. `tissue`, `rois`: canvas of a whole slide. "
        "`examples`: liked, and optionally unliked. Leave it out with `query`",
    )
    canvas = serializers.UUIDField(required=False, allow_null=True)
    geometry = serializers.JSONField(
        required=False, allow_null=True, help_text="GeoJSON polygon, level-0 pixels"
    )
    roi = serializers.UUIDField(
        required=False,
        allow_null=True,
        help_text="The ROI whose outline is the area, for a search at another scale",
    )
    query = serializers.UUIDField(
        required=False, allow_null=True, help_text="A query to repeat at another `scale`"
    )
    frame_pts = serializers.IntegerField(required=False, allow_null=True)
    picture = serializers.CharField(
        required=False,
        help_text="base64 of a JPEG, JPEG 2000, PNG, TIFF, WebP or BMP of at most "
        f"{PICTURE_BYTES >> 20} MiB",
    )
    kind = serializers.ChoiceField(EncoderKind.choices, required=False)
    mpp = serializers.FloatField(
        required=False, allow_null=True, help_text="Microns per pixel of the picture"
    )
    lab = serializers.UUIDField(
        required=False,
        allow_null=True,
        help_text="The lab to search in with a picture; may be left out by members of a single lab",
    )
    scale = serializers.FloatField(
        default=1.0, help_text="Search for the same structures this many times as large: 0.25 to 4"
    )
    liked = serializers.ListField(
        child=serializers.UUIDField(), required=False, max_length=EXAMPLES_MOST
    )
    unliked = serializers.ListField(
        child=serializers.UUIDField(), required=False, max_length=EXAMPLES_MOST
    )

    def validate_picture(self, value: str) -> bytes:
        """The bytes."""
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError) as error:
            raise serializers.ValidationError("Send the file as base64.") from error

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """A source, or a query to be asked again."""
        if not attrs.get("source") and not attrs.get("query"):
            raise serializers.ValidationError({"source": ["Say what to search with."]})
        return attrs

    def asked(self, lab: Lab | None) -> QueryAsked:
        """As the service takes it.

        Args:
            lab: of a picture.
        """
        fields = {_NAMES.get(name, name): value for name, value in self.validated_data.items()}
        fields |= {"lab": lab, "source": QuerySource(fields.get("source", QuerySource.AREA))}
        fields |= {name: tuple(fields.get(name, ())) for name in ("liked", "unliked")}
        return QueryAsked(**fields)


class QuerySerializer(serializers.ModelSerializer[Query]):
    """What is searched with, and by whom."""

    name = serializers.CharField(source="__str__", read_only=True)
    geometry = serializers.DictField(
        read_only=True, allow_null=True, help_text="GeoJSON of an area, level-0 pixels"
    )
    is_embedded = serializers.SerializerMethodField(
        help_text=(
            "Whether it has the vector that it needs; `examples` and `rois` need none of their own"
        )
    )
    user = serializers.CharField(read_only=True)
    similar_url = serializers.SerializerMethodField()
    picture_url = serializers.SerializerMethodField(help_text="null if there is none yet")

    class Meta:
        model = Query
        fields = (
            *("id", "lab", "source", "kind", "name", "canvas", "geometry", "frame_pts", "mpp"),
            *("scale", "liked", "unliked", "is_embedded", "user", "created_at"),
            *("similar_url", "picture_url"),
        )

    def get_is_embedded(self, query: Query) -> bool:
        """Whether a search needs no job any more."""
        return query.is_ready

    def get_similar_url(self, query: Query) -> str:
        """Where its answer is."""
        return reverse("api:query-similar", args=[query.pk])

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_picture_url(self, query: Query) -> str | None:
        """A small JPEG."""
        return reverse("retrieval:query_picture", args=[query.pk]) if query.has_picture else None
