"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AuditConfig(AppConfig):
    """App of the audit log."""

    name = "portal.audit"
    label = "audit"

    def ready(self) -> None:
        """Connect receivers, and set the triggers after each migration."""
        from portal.audit.append_only import after_migrate

        post_migrate.connect(after_migrate, sender=self, dispatch_uid="audit.append_only")
