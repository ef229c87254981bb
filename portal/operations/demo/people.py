"""The demo lab and its members."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from portal.annotations.models import Label
from portal.annotations.services.labels import label_create
from portal.labs.models import Lab, Membership, Role, User
from portal.labs.services.accounts import user_create
from portal.labs.services.labs import lab_create
from portal.labs.services.members import member_add

PASSWORD = "tessera-demo"  # noqa: S105 - printed by the demo; cast() refuses production
LABELS = {
    "DAB rich": "#8a5a2b",
    "DAB poor": "#4a6fa5",
    "Healthy": "#3f8f5f",
    "Adenomatous": "#c9a227",
    "Moderate": "#cf7a30",
    "Poor": "#b23a48",
}


@dataclass(frozen=True, slots=True)
class Cast:
    """Users of the demo."""

    lab: Lab
    pathologist: User
    endoscopist: User
    manager: User
    labels: dict[str, Label]


def cast() -> Cast:
    """Get or create the lab, its members and its labels."""
    if settings.SESSION_COOKIE_SECURE:
        raise ImproperlyConfigured(
            "The demo has a public password and does not run with production settings."
        )
    lab = Lab.objects.filter(slug="demo-lab").first() or lab_create("Demo lab", slug="demo-lab")
    manager = _person(lab, "manager@demo.example", "Maya Lind, lab manager", Role.MANAGER)
    return Cast(
        lab=lab,
        pathologist=_person(lab, "pathologist@demo.example", "Dr Paula Weiss", Role.REVIEWER),
        endoscopist=_person(lab, "endoscopist@demo.example", "Dr Emil Roth", Role.ANNOTATOR),
        manager=manager,
        labels=_labels(lab, manager),
    )


def _person(lab: Lab, email: str, full_name: str, role: Role) -> User:
    user = User.objects.filter(email=email).first()
    if user is None:
        user = user_create(email, password=PASSWORD, full_name=full_name)
    if not Membership.objects.filter(user=user, lab=lab).exists():
        member_add(lab, user=user, role=role)
    return user


def _labels(lab: Lab, manager: User) -> dict[str, Label]:
    labels = {label.name: label for label in Label.objects.visible_to(manager).filter(lab=lab)}
    for name, color in LABELS.items():
        if name not in labels:
            labels[name] = label_create(lab=lab, user=manager, name=name, color=color)
    return labels
