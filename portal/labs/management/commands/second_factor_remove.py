"""``manage.py second_factor_remove EMAIL``: help a person who lost every second factor.

Be sure who asks: from then on the password alone is enough, until a new factor is set up.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.labs.models import User
from portal.labs.services import factors_remove


class Command(BaseCommand):
    """Removes all second factors of one account."""

    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Whose."""
        parser.add_argument("email")

    def handle(self, *args: Any, **options: Any) -> None:
        """Sessions end as well: whoever has the lost factor may be signed in."""
        user = User.objects.filter(email=options["email"].strip().lower()).first()
        count = factors_remove(user) if user else 0
        if not count:
            raise CommandError(f"{options['email']} has no second factor.")
        self.stdout.write(f"Removed all second factors of {options['email']}.")
