"""Mail: whether there is any, and sending it at once or in the background.

Without mail nothing fails: the caller learns that nothing was sent and shows a link instead.
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
SENDERS = 2  # a mail server that hangs holds one of them for EMAIL_TIMEOUT
MOST_WAITING = 200  # beyond it mail is dropped and logged: strangers must not fill the memory
_SENDERS = ThreadPoolExecutor(SENDERS, thread_name_prefix="mail")
_ROOM = threading.BoundedSemaphore(MOST_WAITING)


def mail_works() -> bool:
    """Whether mail is set up to reach mailboxes; the console does not count."""
    return settings.EMAIL_BACKEND not in REACHES_NOBODY


def mail_make(template: str, *, to: str, context: Mapping[str, Any]) -> EmailMessage:
    """The message of ``<template>_subject.txt`` and ``<template>_message.txt``."""
    values = dict(context)
    subject = " ".join(render_to_string(f"{template}_subject.txt", values).split())
    body = render_to_string(f"{template}_message.txt", values).strip() + "\n"
    return EmailMessage(subject, body, settings.DEFAULT_FROM_EMAIL, [to])


def mail_now(message: EmailMessage) -> bool:
    """Send and wait; False if there is no mail or the server did not take it."""
    if not mail_works():
        return False
    try:
        return message.send() > 0
    except OSError:  # smtplib's errors are OSErrors
        logger.exception("mail: the server did not accept a message")
        return False


def mail_later(message: EmailMessage) -> None:
    """Send in the background, so that the answer does not reveal whether there was mail."""
    if not _ROOM.acquire(blocking=False):
        logger.error("mail: %d messages are waiting; one was dropped", MOST_WAITING)
        return
    _SENDERS.submit(message.send).add_done_callback(_sent)


def mail_flush() -> None:
    """Wait until what was to be sent later has been sent (tests, commands)."""
    for _ in range(MOST_WAITING):
        _ROOM.acquire()
    for _ in range(MOST_WAITING):
        _ROOM.release()


def _sent(future: Future[int]) -> None:
    _ROOM.release()
    if (error := future.exception()) is not None:
        logger.error("mail: a message could not be sent: %s", type(error).__name__, exc_info=error)
