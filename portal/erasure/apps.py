"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class ErasureConfig(AppConfig):
    """App for the erasure of a patient's data."""

    name = "portal.erasure"
    label = "erasure"
