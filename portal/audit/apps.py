"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AuditConfig(AppConfig):
    """Tessera's app for the audit log."""

    name = "portal.audit"
    label = "audit"

    def ready(self) -> None:
        """Listen, seal in the reaper's process, and have the database keep the log."""
        from portal.audit.append_only import after_migrate
        from portal.audit.receivers import listen
        from portal.audit.services import entries_seal, entries_seal_all
        from portal.core.housekeeping import daily, each_pass

        listen()
        each_pass("audit seals", entries_seal)
        daily("audit seals", entries_seal_all)
        post_migrate.connect(after_migrate, sender=self, dispatch_uid="audit.append_only")
