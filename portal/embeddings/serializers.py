"""Serializers of encoders and of pending embeddings."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.embeddings.models import Encoder
from portal.jobs.serializers import JobSerializer


class EncoderSerializer(serializers.ModelSerializer[Encoder]):
    """A model that turns ROIs into vectors. Searches use the lab's own encoder or the shared
    default."""

    class Meta:
        model = Encoder
        fields = (
            *("id", "name", "version", "config_hash", "dim", "kind", "is_default", "is_next"),
            *("lab", "base"),
        )


class EmbeddingPendingSerializer(serializers.Serializer[Any]):
    """The query is being embedded; repeat the request after the job has succeeded."""

    job = JobSerializer()
