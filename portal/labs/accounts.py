"""How people get an account: managers create them; there is no public sign-up."""

from __future__ import annotations

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class LabAccountAdapter(DefaultAccountAdapter):
    """Sign-up is closed."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """A lab's data is not for strangers."""
        return False
