"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class ModelTrainingConfig(AppConfig):
    """Metrics and encoders trained on a lab's archive."""

    name = "portal.model_training"
    label = "model_training"
