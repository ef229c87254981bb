"""Background work of the inbox."""

from __future__ import annotations

import uuid

from portal.core.mail import mail_works
from portal.core.tasks import JobContext, JobResult, Priority, job_task
from portal.inbox import sending
from portal.inbox.models import MailChoice


@job_task(
    sending.MAIL_KIND,
    title="Send notifications by mail",
    priority=Priority.BULK,
    is_internal=True,
)
def notifications_mail(context: JobContext, *, lab_id: str, choice: str) -> JobResult:
    """Send one message to each person of a lab with unread notifications.

    A message is recorded after it was sent: if the mail server or the worker fails, the next
    attempt continues with the people who were not reached.
    """
    count = 0
    if not mail_works():
        return {"count": count}
    lab, mail_choice = uuid.UUID(lab_id), MailChoice(choice)
    for user in sending.recipients_due(lab, mail_choice):
        message = sending.message_to(user, lab, mail_choice)
        if message is None:
            continue
        message.mail.send()
        with context.part():
            sending.mailed(message.notification_ids)
        count += 1
    return {"count": count}
