"""``manage.py first_run``: print the link of the set-up page while no account exists."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError
from django.urls import reverse

from portal.labs.services.set_up import first_run_open


class Command(BaseCommand):
    """Print the set-up link when the web process starts, into its log."""

    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the URL of the portal."""
        parser.add_argument("--url", default=settings.TESSERA_URL)

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the link if there is no account; never prevent the web process from starting."""
        try:
            secret = first_run_open()
        except DatabaseError:
            self.stderr.write(
                "The database does not answer or has not been migrated yet. Run manage.py migrate,"
                " then manage.py first_run: it prints how to create the first lab."
            )
            return
        if secret is None:
            return
        self.stdout.write(
            "\nNobody has an account here yet. Create the first lab and its manager at\n    "
            f"{options['url']}{reverse('labs:set_up')}\nwith this token, which works once, within "
            f"a day:\n    {secret}\nor run manage.py setup_lab\n"
        )
