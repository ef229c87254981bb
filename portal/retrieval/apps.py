"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    """Tessera's app for embeddings and search."""

    name = "portal.retrieval"
    label = "retrieval"
