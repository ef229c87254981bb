"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class ReaderStudiesConfig(AppConfig):
    """Assignments of images to users, and blinded studies of several readers."""

    name = "portal.reader_studies"
    label = "reader_studies"
