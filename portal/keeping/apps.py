"""App configuration."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig


class KeepingConfig(AppConfig):
    """Tessera's app for backups, the bin and erasure: it stands above all that it keeps."""

    name = "portal.keeping"
    label = "keeping"

    def ready(self) -> None:
        """Empty the bin daily, check that erasures know every table, keep what is being erased."""
        from django.core.checks import register

        from portal.core.events import subscribe
        from portal.core.housekeeping import daily
        from portal.keeping.services.erasing.tables import every_table_has_a_rule

        daily("bin", _purge)
        register(every_table_has_a_rule)
        subscribe("bin.restored")(_restored)


def _restored(event: Any) -> None:
    from portal.keeping.services.erasing import require_not_erasing

    require_not_erasing(payload=event.payload)


def _purge() -> object:
    from portal.keeping.services import bin_purge_due

    return bin_purge_due()
