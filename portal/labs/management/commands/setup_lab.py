"""``manage.py setup_lab``: create a lab and its first manager, without mail or prompts.

The manager gets a one-time link to choose a password, or a password read from standard input or
``TESSERA_SETUP_PASSWORD``; never from the command line, which every process can read.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from portal.core.errors import PortalError
from portal.labs.services.set_up import lab_set_up


class Command(BaseCommand):
    """Create a lab and its manager."""

    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare flags; there are no prompts."""
        parser.add_argument("--lab", required=True, help="the lab's name")
        parser.add_argument("--slug", default="", help="its short name in URLs")
        parser.add_argument("--manager", required=True, metavar="EMAIL")
        parser.add_argument("--name", default="", help="the manager's name")
        parser.add_argument(
            "--password-stdin",
            action="store_true",
            help="read a password from the standard input; otherwise a link is printed",
        )
        parser.add_argument("--url", default=settings.TESSERA_URL, help="of the portal")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create a lab and its first manager in one transaction, and print the sign-in link."""
        try:
            lab, secret = lab_set_up(
                options["lab"],
                slug=options["slug"],
                email=options["manager"],
                full_name=options["name"],
                password=_password(from_stdin=options["password_stdin"]),
            )
        except PortalError as error:
            raise CommandError(error.message) from None
        self.stdout.write(f"Created the lab {lab.name} ({lab.slug}).")
        if secret is None:
            self.stdout.write(f"{options['manager']} can sign in.")
            return
        link = f"{options['url']}{reverse('labs:invitation_open', args=[secret])}"
        self.stdout.write(f"Link for {options['manager']}; it works once, within a week:\n{link}")


def _password(*, from_stdin: bool) -> str | None:
    if from_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
        if not password:
            raise CommandError("--password-stdin: the standard input was empty.")
        return password
    return os.environ.get("TESSERA_SETUP_PASSWORD") or None
