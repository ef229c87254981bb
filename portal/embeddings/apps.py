"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class EmbeddingsConfig(AppConfig):
    """Encoders, vectors of ROIs, and their index files."""

    name = "portal.embeddings"
    label = "embeddings"
