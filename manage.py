#!/usr/bin/env python
"""Django's command line, with the development settings by default."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run a management command."""
    if sys.argv[1:2] == ["web"]:
        # Before NumPy and FAISS are loaded, as apps do: requests run in parallel already, and
        # threads within one wait for each other on busy processors.
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
            os.environ.setdefault(name, "1")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings.development")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"Tessera is not set up correctly: {error}")


if __name__ == "__main__":
    main()
