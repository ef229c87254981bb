"""``manage.py password_link EMAIL``: print a one-time link to choose a new password.

For people who forgot theirs where no mail is sent. Give it to nobody but the owner of the account,
and be sure who that is: the link does not prove it.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from portal.labs.models import Purpose
from portal.labs.selectors import person_to_sign_in
from portal.labs.services import link_make


class Command(BaseCommand):
    """Prints a link."""

    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Whose."""
        parser.add_argument("email")
        parser.add_argument("--url", default=settings.TESSERA_URL, help="of the portal")

    def handle(self, *args: Any, **options: Any) -> None:
        """Changes nothing until the link is used."""
        user = person_to_sign_in(options["email"].strip().lower())
        if user is None:
            raise CommandError(f"{options['email']} has no active account.")
        link = reverse("labs:link_open", args=[link_make(Purpose.PASSWORD, user=user)])
        self.stdout.write(f"This link works once, within a day:\n{options['url']}{link}")
