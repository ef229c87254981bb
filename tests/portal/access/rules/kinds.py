"""The kinds of rules: what each actor is answered at a page, a resource, an account, to all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.portal.access.actors import ACTORS, LOGIN

ROLES = ("viewer", "annotator", "reviewer", "manager")
BY_TOKEN = ("viewer_token", "read_token", "write_token")
Answer = str | int
Body = Callable[[Any], dict[str, Any] | bytes]


@dataclass(frozen=True)
class Rule:
    """The answer to each actor, and the request that is sent."""

    answers: Mapping[str, Answer]
    body: Body = lambda scene: {}
    headers: Mapping[str, str] = field(default_factory=dict)
    path: Callable[[Any, str], str] | None = None  # of the scene and the actor
    is_csrf_exempt: bool = False

    def __post_init__(self) -> None:
        if set(self.answers) != set(ACTORS):
            raise ValueError(f"answers for {set(ACTORS) ^ set(self.answers)} are missing or extra")


def nearest_actors(rule: Rule) -> list[str]:
    """Actors that show each answer of a rule, and the roles on both sides of its bounds."""
    requested = ["anonymous", "stranger"]
    answers = [rule.answers[role] for role in ROLES]
    bounds = [i for i in range(1, len(ROLES)) if answers[i] != answers[i - 1]]
    requested += [ROLES[k] for i in bounds for k in (i - 1, i)] or ["viewer"]
    if rule.answers["read_token"] != rule.answers["write_token"]:
        requested += ["read_token", "write_token"]
    for actor in ACTORS:
        if rule.answers[actor] not in {rule.answers[request] for request in requested}:
            requested.append(actor)
    return list(dict.fromkeys(requested))


def page(
    ok: Answer = 200,
    *,
    at_least: str = "viewer",
    elsewhere: Answer = 404,
    removed: Answer | None = None,
    body: Body = lambda scene: {},
    **other: Any,
) -> Rule:
    """A page of a lab: sessions only; another lab's object is not found."""
    answers: dict[str, Answer] = dict.fromkeys(ACTORS, LOGIN)
    answers |= {role: _by_role(role, at_least, ok) for role in ROLES}
    answers |= {"stranger": elsewhere, "removed": elsewhere if removed is None else removed}
    return Rule(answers, body=body, **other)


def rest(
    ok: Answer = 200,
    *,
    at_least: str = "viewer",
    writes: bool = False,
    elsewhere: Answer = 404,
    removed: Answer | None = None,
    body: Body = lambda scene: {},
    **other: Any,
) -> Rule:
    """A resource of the API: sessions and tokens, a token never beyond its owner and its scope."""
    answers: dict[str, Answer] = dict.fromkeys(ACTORS, 401)
    answers |= {role: _by_role(role, at_least, ok) for role in ROLES}
    answers |= {"stranger": elsewhere, "stranger_token": elsewhere}
    answers |= {"removed": elsewhere if removed is None else removed}
    answers |= {"viewer_token": answers["viewer"], "write_token": answers["manager"]}
    answers |= {"read_token": 403 if writes else answers["manager"]}
    return Rule(answers, body=body, **other)


def own_page(ok: Answer = 200, *, others: Answer | None = None, **options: Any) -> Rule:
    """Rule for a page of the manager's private data; ``others`` is the response to other people."""
    rule = page(ok, elsewhere=ok if others is None else others, **options)
    answers = dict(rule.answers)
    if others is not None:
        answers |= dict.fromkeys(("viewer", "annotator", "reviewer"), others)
    return Rule(answers, body=rule.body)


def own_rest(ok: Answer = 200, *, others: Answer | None = None, **options: Any) -> Rule:
    """The same over REST, with a session only: 403 to every token."""
    rule = own_page(ok, others=others, **options)
    answers = {who: 401 if result == LOGIN else result for who, result in rule.answers.items()}
    answers |= dict.fromkeys((*BY_TOKEN, "stranger_token"), 403)
    return Rule(answers, body=rule.body)


def by_session(rule: Rule) -> Rule:
    """Not by a token, whosever it is."""
    tokens = dict.fromkeys((*BY_TOKEN, "stranger_token"), 403)
    return replace(rule, answers=dict(rule.answers) | tokens)


def public(ok: Answer, *, signed_in: Answer | None = None, **other: Any) -> Rule:
    """For everybody; ``signed_in``: where a session changes the answer."""
    answers: dict[str, Answer] = dict.fromkeys(ACTORS, ok)
    if signed_in is not None:
        answers |= dict.fromkeys((*ROLES, "stranger", "removed"), signed_in)
    return Rule(answers, **other)


def public_api(ok: Answer) -> Rule:
    """For everybody, but a token that is sent has to be a live one."""
    answers: dict[str, Answer] = dict.fromkeys(ACTORS, ok)
    return Rule(answers | dict.fromkeys(("unknown_token", "deactivated_token"), 401))


def account(ok: Answer) -> Rule:
    """A page of one's own account: any session."""
    return page(ok, elsewhere=ok)


def _by_role(role: str, at_least: str, ok: Answer) -> Answer:
    return ok if ROLES.index(role) >= ROLES.index(at_least) else 403
