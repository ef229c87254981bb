#!/usr/bin/env python
"""Django's command line, with the development settings by default."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run a management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings.development")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"Tessera is not set up correctly: {error}")


if __name__ == "__main__":
    main()
