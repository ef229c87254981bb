"""Browser sessions of users."""

from __future__ import annotations

from django.db import models

from portal.core.models import BaseModel
from portal.labs.models.people import User


class BrowserSession(BaseModel):
    """A session as displayed to its user; the session itself is Django's row."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    session_key = models.CharField(max_length=40, unique=True)
    address = models.CharField(max_length=45)
    browser = models.CharField(max_length=60)
