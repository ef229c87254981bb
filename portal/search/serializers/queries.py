"""Serializers of queries other than ROIs."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.annotations.serializers import GeometryField
from portal.archive.models import Modality
from portal.labs.models import Lab
from portal.search.models import Query, QuerySource
from portal.search.selectors.similar_cases import MAX_EXAMPLES
from portal.search.services.queries import PICTURE_BYTES, QueryData

_NAMES = {"canvas": "canvas_id", "roi": "roi_id", "query": "repeat_of", "picture": "upload"}


class QueryCreateSerializer(serializers.Serializer[Any]):
    """A query to create. Each source needs its own fields; the others are ignored."""

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
    kind = serializers.ChoiceField(Modality.choices, required=False)
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
        child=serializers.UUIDField(), required=False, max_length=MAX_EXAMPLES
    )
    unliked = serializers.ListField(
        child=serializers.UUIDField(), required=False, max_length=MAX_EXAMPLES
    )

    def validate_picture(self, value: str) -> bytes:
        """Decode the picture."""
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError) as error:
            raise serializers.ValidationError("Send the file as base64.") from error

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require a source or a query to repeat."""
        if not attrs.get("source") and not attrs.get("query"):
            raise serializers.ValidationError({"source": ["Say what to search with."]})
        return attrs

    def query_data(self, lab: Lab | None) -> QueryData:
        """Arguments of ``query_create``.

        Args:
            lab: Lab of a picture.
        """
        fields = {_NAMES.get(name, name): value for name, value in self.validated_data.items()}
        fields |= {"lab": lab, "source": QuerySource(fields.get("source", QuerySource.AREA))}
        fields |= {name: tuple(fields.get(name, ())) for name in ("liked", "unliked")}
        return QueryData(**fields)


class QuerySerializer(serializers.ModelSerializer[Query]):
    """A stored query and its author."""

    name = serializers.CharField(source="__str__", read_only=True)
    geometry = GeometryField(
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
        """Return whether it can be searched with."""
        return query.is_ready

    def get_similar_url(self, query: Query) -> str:
        """URL of the similar regions."""
        return reverse("api:query-similar", args=[query.pk])

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_picture_url(self, query: Query) -> str | None:
        """URL of a small JPEG."""
        return reverse("search:query_picture", args=[query.pk]) if query.has_picture else None
