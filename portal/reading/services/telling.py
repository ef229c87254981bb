"""Events of reading, and mail to those who are given work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db import transaction

from portal.core.events import event_emit, events_emit
from portal.core.mail import mail_later, mail_make, mail_works
from portal.labs.models import User
from portal.reading.models import Assignment, Study


def study_tell(name: str, study: Study, **more: Any) -> None:
    """Emit ``study.created``, ``.completed``, ``.unblinded`` or ``.decided``."""
    payload = {"study_id": str(study.pk), **more}
    event_emit(f"study.{name}", lab_id=study.lab_id, payload=payload)


def assignments_tell(name: str, rows: Sequence[Assignment]) -> None:
    """Emit ``assignment.made``, ``.submitted``, ``.reopened``, ``.changed`` or ``.removed``."""
    if not rows:
        return
    payloads = [
        {
            "assignment_id": str(row.pk),
            "canvas_id": str(row.canvas_id),
            "case_id": str(row.canvas.case_id),
            "person": str(row.person_id),
            "study": str(row.study_id) if row.study_id else None,
        }
        for row in rows
    ]
    events_emit(f"assignment.{name}", lab_id=rows[0].lab_id, payloads=payloads)


def mail_readers(rows: Sequence[Assignment], *, by: User) -> None:
    """One message a person, once the rows are kept; nothing where mail is not set up.

    It names no case: a mailbox is no place for what may point to a patient.
    """
    if not mail_works():
        return
    of_person: defaultdict[User, list[Assignment]] = defaultdict(list)
    for row in rows:
        if row.person_id != by.pk:
            of_person[row.person].append(row)
    for person, own in of_person.items():
        context = {
            "count": len(own),
            "by": str(by),
            "study": own[0].study,
            "due_on": own[0].due_on,
            "note": own[0].note,
        }
        message = mail_make("reading/mail/assigned", to=person.email, context=context)
        transaction.on_commit(partial(mail_later, message))
