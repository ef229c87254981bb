"""Two people edit the same on pages: who saves second overwrites nothing, and sees both."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from portal.annotations.models import Label
from portal.annotations.services.labels import label_set_ensure, label_update, labels_order
from portal.archive.models import IntakeRules
from portal.archive.services.cases import case_create
from portal.labs.models import Lab, User
from portal.webhooks.models import Webhook
from tests.clients import client_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def both(manager: User) -> Client:
    """One session is enough: what counts is what each page was made from."""
    return client_of(manager)


def seen(answer: Any, *, near: str = "") -> str:
    """State that a page shows in its form for ``near``."""
    text = answer.content.decode()
    match = re.search(r'name="edit_tag" value="([0-9a-f]{16})"', text[text.index(near) :])
    assert match, "the form does not say what it shows"
    return match[1]


def test_a_conflict_shows_the_saved_and_the_submitted_case(
    both: Client, lab: Lab, manager: User
) -> None:
    case = case_create(lab=lab, user=manager, accession="S-1", organ="colon", tags=["a"])
    at = reverse("archive:case_edit", args=[case.pk])
    old = seen(both.get(at))
    first = {"accession": "S-1", "sex": "female", "age_band": "unknown", "organ": "lung"}
    mine = first | {"organ": "skin", "sex": "unknown", "tags": "a"}
    assert both.post(at, first | {"edit_tag": old}).status_code == 302
    late = both.post(at, mine | {"edit_tag": old})
    text = html.unescape(late.content.decode())
    assert late.status_code == 422 and "Someone else changed this" in text
    assert "Saved now: lung" in text and 'value="skin"' in text, "both"
    assert "Saved now: Female" in text and "Saved now: nothing" in text, "by their titles"
    assert "Saved now: S-1" not in text, "only what differs"
    case.refresh_from_db()
    assert case.organ == "lung", "nothing was overwritten"
    assert both.post(at, mine | {"edit_tag": seen(late)}).status_code == 302
    case.refresh_from_db()
    assert (case.organ, case.tags) == ("skin", ["a"]), "knowing it, it can be"


def test_a_webhook_too(both: Client, lab: Lab, manager: User, settings: Any) -> None:
    hook = Webhook.objects.create(lab=lab, name="LIS", url="https://lis.example/", created_by=None)
    at = reverse("webhooks:edit", args=[hook.pk])
    sent = {
        "url": "https://lis.example/",
        "types": ["case.created"],
        "edit_tag": seen(both.get(at)),
    }
    assert both.post(at, sent | {"name": "RIS"}).status_code == 302
    late = both.post(at, sent | {"name": "PACS", "types": []})
    text = html.unescape(late.content.decode())
    assert "Saved now: RIS" in text and 'value="PACS"' in text
    hook.refresh_from_db()
    assert (hook.name, hook.types) == ("RIS", ["case.created"])


def test_a_conflict_of_labels_and_rules_is_reported(both: Client, lab: Lab) -> None:
    label_set_ensure(lab=lab)
    label = Label.objects.filter(lab=lab).first()
    assert label is not None
    page = both.get(reverse("annotations:labels"))
    assert f'data-tag="{seen(page, near=str(label.pk))}"' in page.content.decode()
    sent = {"color": label.color, "edit_tag": seen(page, near=str(label.pk))}
    at = reverse("annotations:label_edit", args=[label.pk])
    both.post(at, sent | {"name": "Crypt"})
    late = both.post(at, sent | {"name": "Gland 2"}, follow=True).content.decode()
    assert "Someone else has changed “Crypt” in the meantime" in late and "“Gland 2”" in late
    assert Label.objects.get(pk=label.pk).name == "Crypt"
    rules = {"lab": lab.slug, "edit_tag": seen(both.get(reverse("archive:intake")), near="Rules")}
    both.post(reverse("archive:intake_rules"), rules | {"must_be_clean": "on"})
    late = both.post(reverse("archive:intake_rules"), rules, follow=True).content.decode()
    assert "Someone else has changed the rules in the meantime" in late
    assert IntakeRules.objects.get(lab=lab).must_be_clean


def test_moving_labels_does_not_undo_a_concurrent_renaming(
    both: Client, lab: Lab, manager: User
) -> None:
    label_set_ensure(lab=lab)
    labels = list(Label.objects.filter(lab=lab).order_by("position"))
    first, before = labels[0], Label.objects.get(pk=labels[0].pk)
    page = both.get(reverse("annotations:labels"))
    order = [(item.pk, None) for item in reversed(labels)]
    labels_order(lab=lab, user=manager, order=order)
    sent = {"color": first.color, "name": "Crypt", "edit_tag": seen(page, near=str(first.pk))}
    both.post(reverse("annotations:label_edit", args=[first.pk]), sent)
    now = Label.objects.get(pk=first.pk)
    assert (now.name, now.position) == ("Crypt", len(labels) - 1)
    label_update(label=before, user=manager, changes={"color": "#112233"})  # read before it all
    now.refresh_from_db()
    assert (now.name, now.color, now.position) == ("Crypt", "#112233", len(labels) - 1)
