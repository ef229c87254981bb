"""``manage.py password_link EMAIL``: print a one-time link to choose a new password.

For people who forgot theirs where no mail is sent. Verify the identity of the account's owner
before handing over the link: the link does not prove it.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from portal.labs.models import Purpose
from portal.labs.selectors import person_to_sign_in
from portal.labs.services.links import link_make


class Command(BaseCommand):
    """Print a link to choose a new password."""

    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the address of the account."""
        parser.add_argument("email")
        parser.add_argument("--url", default=settings.TESSERA_URL, help="of the portal")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the link. Nothing changes until it is used."""
        user = person_to_sign_in(options["email"].strip().lower())
        if user is None:
            raise CommandError(f"{options['email']} has no active account.")
        link = reverse("labs:link_open", args=[link_make(Purpose.PASSWORD, user=user)])
        self.stdout.write(f"This link works once, within a day:\n{options['url']}{link}")
