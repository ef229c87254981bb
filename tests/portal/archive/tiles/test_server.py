"""Tiles before Django: who may see them, permission, ETags."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth import get_user
from django.db import DatabaseError

from portal.archive.models import Slide, Video
from portal.archive.serializers.canvases import tile_url
from portal.archive.tiles import permits
from portal.archive.tiles.permits import Credential, Permits
from portal.archive.tiles.server import TILES, TileRequest
from portal.labs.models import Membership, TokenScope, User
from portal.labs.services.tokens import token_create, token_revoke
from portal.labs.session_life import SEEN
from tests.clients import client_of

pytestmark = pytest.mark.django_db


class Fetch:
    """Asks for tiles as a signed-in browser does."""

    def __init__(self, user: User) -> None:
        self.client = client_of(user)

    def __call__(
        self,
        path: str,
        method: str = "GET",
        *,
        cookie: str | None = None,
        authorization: str = "",
        if_none_match: str = "",
    ) -> tuple[int, Any, bytes]:
        cookie = self.cookie() if cookie is None else cookie
        credential = Credential(cookie, authorization)
        status, headers, body = TILES.answer(TileRequest(method, path, credential, if_none_match))
        return status, {name.decode().title(): value.decode() for name, value in headers}, body

    def cookie(self) -> str:
        """The header as the browser sends it."""
        return "; ".join(f"{name}={item.value}" for name, item in self.client.cookies.items())


@pytest.fixture
def fetch(viewer: User) -> Fetch:
    return Fetch(viewer)


def address(slide: Slide, tail: str = "0/0/0.jpg") -> str:
    assert slide.canvas is not None
    return tile_url(slide.canvas).replace("{z}/{x}/{y}.jpg", tail)


def test_a_tile_is_a_jpeg_with_an_immutable_cache_policy(
    fetch: Fetch, slide: Slide, viewer: User
) -> None:
    status, headers, body = fetch(address(slide))
    assert status == 200
    assert body.startswith(b"\xff\xd8\xff")
    assert headers["Content-Length"] == str(len(body))
    assert headers["Cache-Control"] == "private, max-age=31536000, immutable"


def test_the_answer_is_the_same_as_over_rest(
    fetch: Fetch, slide: Slide, viewer: User, api: Any
) -> None:
    assert slide.canvas is not None
    tail = f"{len(slide.canvas.levels) - 1}/3/1.jpg"
    _, headers, body = fetch(address(slide, tail))
    rest = api.get(f"/api/v1/canvases/{slide.canvas_id}/tiles/{tail}")
    assert (rest.content, rest.headers["ETag"]) == (body, headers["Etag"])


def test_a_known_etag_is_not_sent_again(fetch: Fetch, slide: Slide, viewer: User) -> None:
    etag = fetch(address(slide))[1]["Etag"]
    for sent in (etag, f'"x", W/{etag}', "*"):
        status, headers, body = fetch(address(slide), if_none_match=sent)
        assert (status, body, headers["Etag"]) == (304, b"", etag)
    assert fetch(address(slide), if_none_match='"other"')[0] == 200


def test_tiles_are_only_read(fetch: Fetch, slide: Slide, viewer: User) -> None:
    status, headers, body = fetch(address(slide), "POST")
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert int(headers["Content-Length"]) == len(body)


@pytest.mark.parametrize(
    "tail",
    ["9/0/0.jpg", "0/9/0.jpg", "0/0/9.jpg", "00/0/0.jpg", "-1/0/0.jpg", "0/0.jpg", "0/0/0.png", "",
     "0/0/٣.jpg", "0/0/99999999999999999999.jpg", "../../x"],
)  # fmt: skip
def test_an_invalid_tile_is_not_found(fetch: Fetch, slide: Slide, viewer: User, tail: str) -> None:
    assert fetch(address(slide, tail))[0] == 404


def test_an_address_without_a_session_is_refused(fetch: Fetch, slide: Slide) -> None:
    assert fetch(address(slide))[0] == 200
    for cookie in ("", "sessionid=invented", "sessionid="):
        status, headers, body = fetch(address(slide), cookie=cookie)
        assert (status, headers["Cache-Control"]) == (403, "no-store")
        assert b"Sign in" in body


def test_no_address_holds_a_secret_or_ends(fetch: Fetch, slide: Slide, viewer: User) -> None:
    assert slide.canvas is not None
    key = fetch.client.cookies["sessionid"].value
    assert key not in address(slide)
    assert tile_url(slide.canvas).split("/")[2] == str(slide.canvas_id)


def test_a_signed_out_session_is_refused_even_with_its_cookie(
    fetch: Fetch, slide: Slide, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(TILES, "permits", Permits(timer=lambda: now))
    cookie = fetch.cookie()
    assert fetch(address(slide), cookie=cookie)[0] == 200
    fetch.client.logout()
    now += 11  # ten seconds are promised (docs/security.md)
    assert fetch(address(slide), cookie=cookie)[0] == 403


def test_an_idle_session_is_refused(fetch: Fetch, slide: Slide) -> None:
    session = fetch.client.session
    session[SEEN] = 1.0
    session.save()
    assert fetch(address(slide))[0] == 403


def test_a_session_of_an_old_password_is_refused(fetch: Fetch, slide: Slide, viewer: User) -> None:
    viewer.set_password("quite another password")
    viewer.save()
    assert fetch(address(slide))[0] == 403


def test_only_the_browser_of_one_session_may_cache_a_tile(fetch: Fetch, slide: Slide) -> None:
    headers = fetch(address(slide))[1]
    assert "private" in headers["Cache-Control"]
    assert headers["Vary"] == "Cookie, Authorization"


def test_a_token_opens_tiles_until_it_is_revoked(
    fetch: Fetch, slide: Slide, viewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, secret = token_create(
        viewer, name="t", scope=TokenScope.READ, expires_in=timedelta(days=1)
    )
    now = time.monotonic()
    monkeypatch.setattr(TILES, "permits", Permits(timer=lambda: now))
    sent = {"cookie": "", "authorization": f"Bearer {secret}"}
    assert fetch(address(slide), **sent)[0] == 200
    assert fetch(address(slide), authorization="Bearer tess_invented")[0] == 403
    token_revoke(token)
    now += 11  # ten seconds are promised (docs/security.md)
    assert fetch(address(slide), **sent)[0] == 403


@pytest.mark.parametrize("whom", ["all", "managers"])
def test_a_user_without_a_required_second_factor_sees_no_tile(
    fetch: Fetch, slide: Slide, manager: User, settings: Any, whom: str
) -> None:
    settings.TESSERA_REQUIRE_SECOND_FACTOR = whom
    owes = fetch if whom == "all" else Fetch(manager)
    status, headers, body = owes(address(slide))
    assert (status, headers["Cache-Control"]) == (403, "no-store") and b"Sign in" in body
    totp = {"secret": "x"}
    user = Membership.objects.get(user__in=User.objects.filter(email=_email(owes))).user
    Authenticator.objects.create(user=user, type=Authenticator.Type.TOTP, data=totp)
    assert owes(address(slide))[0] == 200


def _email(server: Fetch) -> str:
    user = get_user(server.client)  # type: ignore[arg-type] # it has a session
    return str(getattr(user, "email", ""))


def test_another_content_of_the_canvas_is_not_served_under_this_name(
    fetch: Fetch, slide: Slide
) -> None:
    assert slide.canvas is not None
    other = f"/tiles/{slide.canvas_id}/1-{'0' * 24}/0/0/0.jpg"
    assert fetch(other)[0] == 404


def test_cookies_beyond_measure_are_refused(fetch: Fetch, slide: Slide) -> None:
    assert fetch(address(slide), cookie=fetch.cookie() + "; x=" + "y" * 3000)[0] == 403


def test_another_labs_canvas_is_not_found(fetch: Fetch, foreign_slide: Slide, viewer: User) -> None:
    assert fetch(address(foreign_slide))[0] == 404


@pytest.mark.parametrize("ending", ["membership", "user"])
def test_a_user_who_lost_access_is_shut_out_after_the_recheck(
    fetch: Fetch, slide: Slide, viewer: User, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(TILES, "permits", Permits(timer=lambda: now))
    assert fetch(address(slide))[0] == 200
    if ending == "membership":
        Membership.objects.filter(user=viewer).delete()
    else:
        User.objects.filter(pk=viewer.pk).update(is_active=False)
    assert fetch(address(slide))[0] == 200
    now += 11  # ten seconds are promised (docs/security.md)
    assert fetch(address(slide))[0] in (403, 404)


def test_a_hundred_tiles_cost_one_look_at_the_database(
    fetch: Fetch, slide: Slide, viewer: User, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(4):
        for _ in range(100):
            assert fetch(address(slide))[0] == 200


def test_an_unreachable_database_is_reported_and_not_cached(
    fetch: Fetch, slide: Slide, viewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(**_: object) -> None:
        raise DatabaseError

    with monkeypatch.context() as patch:
        patch.setattr(permits, "canvas_get", down)
        assert fetch(address(slide))[0] == 503
    assert fetch(address(slide))[0] == 200


def test_a_video_has_no_tiles(fetch: Fetch, video: Video, viewer: User) -> None:
    assert video.canvas_id is not None
    assert fetch(f"/tiles/{video.canvas_id}/1-{'0' * 24}/0/0/0.jpg")[0] == 404


def test_invented_cookies_fill_no_memory(fetch: Fetch, slide: Slide) -> None:
    before = len(TILES.permits)
    for number in range(50):
        fetch(address(slide), cookie=f"sessionid=invented{number}")
    assert len(TILES.permits) == before


def test_django_answers_tiles_where_no_tile_server_is_in_front(
    client: Any, slide: Slide, viewer: User
) -> None:
    client.force_login(viewer)
    response = client.get(address(slide))
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "image/jpeg"
