"""Send mail at once or in the background.

Mail is optional: callers learn that nothing was sent and show a link instead.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string

logger = logging.getLogger(__name__)

REACHES_NOBODY = (
    "django.core.mail.backends.dummy.EmailBackend",
    "django.core.mail.backends.console.EmailBackend",
)
SENDERS = 2  # threads; a hanging mail server blocks one for EMAIL_TIMEOUT
MAX_WAITING = 200  # more mail is dropped and logged, so that strangers cannot fill the memory
_SENDERS = ThreadPoolExecutor(SENDERS, thread_name_prefix="mail")
_SLOTS = threading.BoundedSemaphore(MAX_WAITING)


def mail_works() -> bool:
    """Return whether the mail backend reaches mailboxes."""
    return settings.EMAIL_BACKEND not in REACHES_NOBODY


def mail_make(template: str, *, to: str, context: Mapping[str, Any]) -> EmailMessage:
    """Message from ``<template>_subject.txt`` and ``<template>_message.txt``."""
    values = dict(context)
    subject = " ".join(render_to_string(f"{template}_subject.txt", values).split())
    body = render_to_string(f"{template}_message.txt", values).strip() + "\n"
    return EmailMessage(subject, body, settings.DEFAULT_FROM_EMAIL, [to])


def mail_now(message: EmailMessage) -> bool:
    """Send and wait; False if mail is not set up or the server refused it."""
    if not mail_works():
        return False
    try:
        return message.send() > 0
    except OSError:  # smtplib's errors are OSErrors
        logger.exception("mail: the server did not accept a message")
        return False


def mail_later(message: EmailMessage) -> None:
    """Send in the background, so that the response time does not reveal whether mail is sent."""
    if not _SLOTS.acquire(blocking=False):
        logger.error("mail: %d messages are waiting; one was dropped", MAX_WAITING)
        return
    _SENDERS.submit(message.send).add_done_callback(_finish_send)


def mail_flush() -> None:
    """Wait until all mail in the background has been sent (tests, commands)."""
    for _ in range(MAX_WAITING):
        _SLOTS.acquire()
    for _ in range(MAX_WAITING):
        _SLOTS.release()


def _finish_send(future: Future[int]) -> None:
    _SLOTS.release()
    if (error := future.exception()) is not None:
        logger.error("mail: a message could not be sent: %s", type(error).__name__, exc_info=error)
