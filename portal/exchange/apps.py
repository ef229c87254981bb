"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class ExchangeConfig(AppConfig):
    """Tessera's app that speaks the standards of other systems."""

    name = "portal.exchange"
    label = "exchange"

    def ready(self) -> None:
        """Put the export on the page of a case."""
        from portal.archive import extensions
        from portal.archive.models import Case
        from portal.exchange.views import case_section
        from portal.jobs.selectors import target_register

        target_register("case", Case.objects.all)
        if case_section not in extensions.case_sections:
            extensions.case_sections.append(case_section)
