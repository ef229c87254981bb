"""``manage.py second_factor_remove EMAIL``: help a person who lost every second factor.

Verify the person's identity first: afterwards the password is enough until a new factor is set up.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.labs.models import User
from portal.labs.services.accounts import factors_remove


class Command(BaseCommand):
    """Remove all second factors of an account."""

    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the address of the account."""
        parser.add_argument("email")

    def handle(self, *args: Any, **options: Any) -> None:
        """Remove the factors and end all sessions, in case the lost factor was found by others."""
        user = User.objects.filter(email=options["email"].strip().lower()).first()
        count = factors_remove(user) if user else 0
        if not count:
            raise CommandError(f"{options['email']} has no second factor.")
        self.stdout.write(f"Removed all second factors of {options['email']}.")
