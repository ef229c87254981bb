from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest
from django.utils import timezone

from portal.core.errors import ConflictError, ForbiddenError, InvalidInputError
from portal.core.models import Event
from portal.labs import services
from portal.labs.models import ApiToken, Lab, Membership, Role, TokenScope, User

pytestmark = pytest.mark.django_db


def membership_of(user: User) -> Membership:
    return Membership.objects.get(user=user)


def make_token(user: User, **changes: object) -> tuple[ApiToken, str]:
    wanted = {"name": "LIS", "scope": TokenScope.READ, "expires_in": timedelta(days=1)}
    return services.token_create(user, **(wanted | changes))  # type: ignore[arg-type]


def test_a_lab_gets_a_slug_its_manager_and_an_event(viewer: User) -> None:
    lab = services.lab_create("East Wing 2", manager=viewer)
    assert lab.slug == "east-wing-2"
    assert Membership.objects.get(lab=lab).role == Role.MANAGER
    assert Event.objects.filter(name="lab.created", lab_id=lab.id).count() == 1


def test_a_second_lab_of_the_same_slug_is_refused() -> None:
    services.lab_create("East")
    with pytest.raises(ConflictError, match="'east'"):
        services.lab_create("East")


@pytest.mark.parametrize("name", ["", "   ", "!!!"])
def test_a_lab_without_a_usable_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="needs a name"):
        services.lab_create(name)


def test_a_user_is_stored_with_a_lower_case_address() -> None:
    user = services.user_create(" Ada@Lab.Example ", password="a long enough one")
    assert user.email == "ada@lab.example"
    assert user.check_password("a long enough one")


def test_a_user_without_password_has_no_usable_one() -> None:
    assert not services.user_create("ada@lab.example").has_usable_password()


@pytest.mark.parametrize(
    ("email", "password", "complaint"),
    [
        ("no address", None, "valid email"),
        ("ada@lab.example", "short", "too short"),
        ("ada@lab.example", "password123", "too common"),
    ],
)
def test_a_bad_address_or_password_is_refused_with_the_reason(
    email: str, password: str | None, complaint: str
) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        services.user_create(email, password=password)
    assert not User.objects.exists()


def test_an_address_that_has_an_account_is_refused_in_any_case_of_letters(viewer: User) -> None:
    with pytest.raises(ConflictError) as caught:
        services.user_create(viewer.email.upper())
    assert caught.value.code == "email-taken"


def test_a_member_is_added_once(lab: Lab, manager: User, stranger: User) -> None:
    services.member_add(lab, user=stranger, role=Role.VIEWER, by=manager)
    with pytest.raises(ConflictError, match="already a member"):
        services.member_add(lab, user=stranger, role=Role.REVIEWER, by=manager)
    assert Membership.objects.get(lab=lab, user=stranger).role == Role.VIEWER


def test_only_a_manager_of_this_lab_changes_its_members(
    lab: Lab, viewer: User, annotator: User, reviewer: User, stranger: User
) -> None:
    for person in (viewer, annotator, reviewer, stranger):
        with pytest.raises(ForbiddenError, match="lab manager"):
            services.member_add(lab, user=stranger, role=Role.VIEWER, by=person)
        with pytest.raises(ForbiddenError):
            services.member_set_role(membership_of(viewer), role=Role.MANAGER, by=person)
        with pytest.raises(ForbiddenError):
            services.member_remove(membership_of(viewer), by=person)
        with pytest.raises(ForbiddenError):
            services.member_invite(lab, email="new@lab.example", role=Role.VIEWER, by=person)
    assert not User.objects.filter(email="new@lab.example").exists()


def test_an_invitation_makes_an_account_where_there_is_none(lab: Lab, manager: User) -> None:
    membership, is_new = services.member_invite(
        lab, email="New@lab.example", role=Role.REVIEWER, by=manager, full_name="Nele"
    )
    assert is_new
    assert (membership.user.email, membership.user.full_name) == ("new@lab.example", "Nele")


def test_an_invitation_never_sets_the_password_of_an_account_that_exists(
    lab: Lab, manager: User, stranger: User
) -> None:
    _, is_new = services.member_invite(
        lab, email=stranger.email, role=Role.VIEWER, by=manager, password="taken over by me"
    )
    stranger.refresh_from_db()
    assert not is_new
    assert stranger.check_password("correct horse battery")


def test_the_last_manager_is_neither_removed_nor_demoted(lab: Lab, manager: User) -> None:
    with pytest.raises(ConflictError, match="last manager"):
        services.member_remove(membership_of(manager), by=manager)
    with pytest.raises(ConflictError, match="last manager"):
        services.member_set_role(membership_of(manager), role=Role.REVIEWER, by=manager)
    assert membership_of(manager).role == Role.MANAGER


def test_a_manager_may_go_once_there_is_another(lab: Lab, manager: User, viewer: User) -> None:
    services.member_set_role(membership_of(viewer), role=Role.MANAGER, by=manager)
    services.member_remove(membership_of(manager), by=manager)
    assert list(Membership.objects.filter(lab=lab).values_list("user", flat=True)) == [viewer.pk]


def test_every_change_of_members_is_on_record(lab: Lab, manager: User, viewer: User) -> None:
    services.member_set_role(membership_of(viewer), role=Role.REVIEWER, by=manager)
    services.member_remove(membership_of(viewer), by=manager)
    events = Event.objects.filter(name__startswith="member.", lab_id=lab.id)
    assert [(e.name, e.payload["role"], e.payload["by"]) for e in events] == [
        ("member.role_changed", "reviewer", str(manager.id)),
        ("member.removed", "reviewer", str(manager.id)),
    ]


def test_the_secret_of_a_token_is_nowhere_in_the_database(viewer: User) -> None:
    token, secret = make_token(viewer)
    row = " ".join(str(value) for value in ApiToken.objects.values_list().get(pk=token.pk))
    events = " ".join(str(payload) for payload in Event.objects.values_list("payload", flat=True))
    assert secret not in row
    assert secret not in events
    assert secret.startswith(token.prefix)
    assert token.sha256 == hashlib.sha256(secret.encode()).hexdigest()


def test_a_secret_is_long_and_never_the_same(viewer: User) -> None:
    secrets = {make_token(viewer)[1] for _ in range(20)}
    assert len(secrets) == 20
    assert {len(secret) for secret in secrets} == {len("tess_") + 43}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"name": "  "}, "name"),
        ({"name": "x" * 81}, "80"),
        ({"scope": "admin"}, "scope must be one of"),
        ({"expires_in": timedelta(0)}, "366 days"),
        ({"expires_in": timedelta(days=367)}, "366 days"),
    ],
)
def test_a_token_that_is_not_acceptable_is_refused(
    viewer: User, changes: dict[str, object], complaint: str
) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        make_token(viewer, **changes)
    assert not ApiToken.objects.exists()


def test_revoking_twice_keeps_the_first_time(viewer: User) -> None:
    token, _ = make_token(viewer)
    first = services.token_revoke(token).revoked_at
    assert first is not None
    assert services.token_revoke(token).revoked_at == first
    assert Event.objects.filter(name="token.revoked").count() == 1


def test_a_token_is_live_until_it_expires_or_is_revoked(viewer: User) -> None:
    token, _ = make_token(viewer)
    assert token.is_live
    token.expires_at = timezone.now()
    assert not token.is_live
    token, _ = make_token(viewer)
    assert not services.token_revoke(token).is_live
