"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class KeepingConfig(AppConfig):
    """Tessera's app for backups, the bin and erasure: it stands above all that it keeps."""

    name = "portal.keeping"
    label = "keeping"

    def ready(self) -> None:
        """Empty the bin of what has been there for long enough, daily."""
        from portal.core.housekeeping import daily

        daily("bin", _purge)


def _purge() -> object:
    from portal.keeping.services import bin_purge_due

    return bin_purge_due()
