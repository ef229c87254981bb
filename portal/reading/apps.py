"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class ReadingConfig(AppConfig):
    """Tessera's app for assigned work, and studies that several people read blindly."""

    name = "portal.reading"
    label = "reading"

    def ready(self) -> None:
        """Hide what a blinded reader must not see, wherever it is read; add to the viewer."""
        from portal.archive import extensions
        from portal.reading.blinding import blinding_register
        from portal.reading.views.work import canvas_action

        blinding_register()
        if canvas_action not in extensions.canvas_actions:
            extensions.canvas_actions.append(canvas_action)
