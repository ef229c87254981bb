"""Mail to a lab's managers about a webhook that was switched off."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.urls import reverse

from portal.core.mail import mail_later, mail_make, mail_works
from portal.hooks.models import Webhook
from portal.labs.models import Membership, Role


def managers_told(webhook_id: uuid.UUID) -> int:
    """One message each, where mail reaches anybody; the page tells it anyway."""
    hook = Webhook.objects.select_related("lab").filter(pk=webhook_id).first()
    if hook is None or not mail_works():
        return 0
    link = settings.TESSERA_URL + reverse("hooks:webhook", args=[hook.pk])
    managers = Membership.objects.filter(
        lab=hook.lab, role=Role.MANAGER, user__is_active=True, user__is_service=False
    )
    people = managers.values_list("user__email", flat=True)
    for email in people:
        context = {"webhook": hook, "link": link}
        mail_later(mail_make("hooks/mail/disabled", to=email, context=context))
    return len(people)
