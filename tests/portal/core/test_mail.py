"""A name in a mail adds no header to it."""

from __future__ import annotations

import pytest

from portal.core.mail import mail_make
from portal.labs.models import Lab, User

HOSTILE = [
    "A\r\nBcc: x@y.example",
    "A\nSubject: B",
    "A\x0bB\x0cC",
    "A\x85B\u2028C\u2029D",
    "\r\n\r\nBody",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_adds_no_header(name: str) -> None:
    context = {"user": User(email="a@b.example", full_name=name), "lab": Lab(name=name)}
    message = mail_make("labs/mail/proven_member", to="c@d.example", context=context).message()
    assert message.get_all("To") == ["c@d.example"]
    assert message["Bcc"] is None and len(message.get_all("Subject")) == 1
    head = message.as_bytes().partition(b"\n\n")[0]
    assert b"Bcc:" not in [line[:4] for line in head.splitlines()]
    assert not any(line.startswith(b"B: ") for line in head.splitlines())
