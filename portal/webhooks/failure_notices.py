"""Mail to a lab's managers about a webhook that was switched off."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.urls import reverse

from portal.core.mail import mail_later, mail_make, mail_works
from portal.labs.models import Membership, Role
from portal.webhooks.models import Webhook


def managers_notify(webhook_id: uuid.UUID) -> int:
    """Mail each manager of the lab, if mail is configured; return the number of messages."""
    hook = Webhook.objects.select_related("lab").filter(pk=webhook_id).first()
    if hook is None or not mail_works():
        return 0
    link = settings.TESSERA_URL + reverse("webhooks:webhook", args=[hook.pk])
    managers = Membership.objects.filter(
        lab=hook.lab, role=Role.MANAGER, user__is_active=True, user__is_service=False
    )
    people = managers.values_list("user__email", flat=True)
    for email in people:
        context = {"webhook": hook, "link": link}
        mail_later(mail_make("webhooks/mail/disabled", to=email, context=context))
    return len(people)
