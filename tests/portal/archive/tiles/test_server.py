"""Tiles before Django: grants, permission, ETags."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest
from django.db import DatabaseError

from portal.archive import selectors
from portal.archive.models import Slide, Video
from portal.archive.tiles import server
from portal.archive.tiles.grants import BUCKET_S, GrantError, grant_issue, grant_read
from portal.archive.tiles.server import TileFastPath, TileServer
from portal.labs.models import Membership, User

pytestmark = pytest.mark.django_db


class Wsgi:
    """Calls a WSGI application and keeps what it said."""

    def __init__(self) -> None:
        self.application = TileFastPath(lambda environ, start: [b"behind"])

    def __call__(self, path: str, method: str = "GET", **environ: str) -> tuple[int, Any, bytes]:
        said: dict[str, Any] = {}

        def start_response(status: str, headers: list[tuple[str, str]]) -> None:
            said.update(status=int(status[:3]), headers=dict(headers))

        environ |= {"PATH_INFO": path, "REQUEST_METHOD": method}
        body = b"".join(self.application(environ, start_response))
        return said.get("status", 0), said.get("headers", {}), body


@pytest.fixture
def ask() -> Wsgi:
    return Wsgi()


def address(slide: Slide, user: User, tail: str = "0/0/0.jpg", **when: float) -> str:
    assert slide.canvas_id is not None
    return f"/tiles/{grant_issue(canvas_id=slide.canvas_id, user_id=user.pk, **when)}/{tail}"


def test_other_paths_go_to_the_application_behind(ask: Wsgi) -> None:
    assert ask("/cases/")[2] == b"behind"


def test_a_tile_is_a_jpeg_that_may_be_kept_for_good(ask: Wsgi, slide: Slide, viewer: User) -> None:
    status, headers, body = ask(address(slide, viewer))
    assert status == 200
    assert body.startswith(b"\xff\xd8\xff")
    assert headers["Content-Length"] == str(len(body))
    assert headers["Cache-Control"] == "private, max-age=31536000, immutable"


def test_the_answer_is_the_same_as_over_rest(
    ask: Wsgi, slide: Slide, viewer: User, api: Any
) -> None:
    assert slide.canvas is not None
    tail = f"{len(slide.canvas.levels) - 1}/3/1.jpg"
    _, headers, body = ask(address(slide, viewer, tail))
    rest = api.get(f"/api/v1/canvases/{slide.canvas_id}/tiles/{tail}")
    assert (rest.content, rest.headers["ETag"]) == (body, headers["ETag"])


def test_a_known_etag_is_not_sent_again(ask: Wsgi, slide: Slide, viewer: User) -> None:
    etag = ask(address(slide, viewer))[1]["ETag"]
    for sent in (etag, f'"x", W/{etag}', "*"):
        status, headers, body = ask(address(slide, viewer), HTTP_IF_NONE_MATCH=sent)
        assert (status, body, headers["ETag"]) == (304, b"", etag)
    assert ask(address(slide, viewer), HTTP_IF_NONE_MATCH='"other"')[0] == 200


def test_head_has_no_body(ask: Wsgi, slide: Slide, viewer: User) -> None:
    status, headers, body = ask(address(slide, viewer), "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 0


def test_tiles_are_only_read(ask: Wsgi, slide: Slide, viewer: User) -> None:
    status, headers, _ = ask(address(slide, viewer), "POST")
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "tail",
    ["9/0/0.jpg", "0/9/0.jpg", "0/0/9.jpg", "00/0/0.jpg", "-1/0/0.jpg", "0/0.jpg", "0/0/0.png", "",
     "0/0/٣.jpg", "0/0/99999999999999999999.jpg", "../../x"],
)  # fmt: skip
def test_what_is_no_tile_is_not_found(ask: Wsgi, slide: Slide, viewer: User, tail: str) -> None:
    assert ask(address(slide, viewer, tail))[0] == 404


def test_a_grant_is_the_same_within_its_bucket() -> None:
    ids = {"canvas_id": uuid.uuid4(), "user_id": uuid.uuid4()}
    start = BUCKET_S * 1000
    assert grant_issue(**ids, now_s=start) == grant_issue(**ids, now_s=start + BUCKET_S - 1)
    assert grant_issue(**ids, now_s=start) != grant_issue(**ids, now_s=start + BUCKET_S)


def test_a_grant_says_what_it_was_made_of() -> None:
    canvas_id, user_id = uuid.uuid4(), uuid.uuid4()
    grant = grant_read(grant_issue(canvas_id=canvas_id, user_id=user_id, now_s=0))
    assert (grant.canvas_id, grant.user_id, grant.expires_s) == (canvas_id, user_id, 2 * BUCKET_S)


def test_a_forged_grant_is_refused(ask: Wsgi, slide: Slide, viewer: User, settings: Any) -> None:
    good = address(slide, viewer).split("/")[2]
    swapped = good[:5] + ("A" if good[5] != "A" else "B") + good[6:]
    for token in (swapped, good[:-1], good + "A", "", "é" * 20, good + "=", "A" * 70):
        assert ask(f"/tiles/{token}/0/0/0.jpg")[0] == 404
        with pytest.raises(GrantError):
            grant_read(token)
    settings.SECRET_KEY = "another key of this portal"
    with pytest.raises(GrantError):
        grant_read(good)


def test_an_expired_grant_is_refused(ask: Wsgi, slide: Slide, viewer: User) -> None:
    old = address(slide, viewer, now_s=time.time() - 3 * BUCKET_S)
    status, _, body = ask(old)
    assert status == 403
    assert b"has expired" in body


def test_another_labs_canvas_is_not_found(ask: Wsgi, foreign_slide: Slide, viewer: User) -> None:
    assert ask(address(foreign_slide, viewer))[0] == 404


@pytest.mark.parametrize("ending", ["membership", "user"])
def test_who_may_no_longer_see_it_is_shut_out_after_the_recheck(
    ask: Wsgi, slide: Slide, viewer: User, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(server.time, "monotonic", lambda: now)
    assert ask(address(slide, viewer))[0] == 200
    if ending == "membership":
        Membership.objects.filter(user=viewer).delete()
    else:
        User.objects.filter(pk=viewer.pk).update(is_active=False)
    assert ask(address(slide, viewer))[0] == 200
    now += server.RECHECK_S + 1
    assert ask(address(slide, viewer))[0] == 404


def test_a_hundred_tiles_cost_one_look_at_the_database(
    ask: Wsgi, slide: Slide, viewer: User, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(2):
        for _ in range(100):
            assert ask(address(slide, viewer))[0] == 200


def test_a_database_that_is_down_is_said_and_not_remembered(
    ask: Wsgi, slide: Slide, viewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(**_: object) -> None:
        raise DatabaseError

    with monkeypatch.context() as patch:
        patch.setattr(selectors, "canvas_of_grant", down)
        assert ask(address(slide, viewer))[0] == 503
    assert ask(address(slide, viewer))[0] == 200


def test_a_video_has_no_tiles(ask: Wsgi, video: Video, viewer: User) -> None:
    assert ask(address(video, viewer))[0] == 404  # type: ignore[arg-type]


def test_invented_grants_fill_no_memory(ask: Wsgi, slide: Slide, viewer: User) -> None:
    server = TileServer()
    for number in range(50):
        server.answer("GET", f"/tiles/invented{number}/0/0/0.jpg", "")
    assert not server._permits


def test_django_answers_tiles_where_the_fast_path_is_not_in_front(
    client: Any, slide: Slide, viewer: User
) -> None:
    response = client.get(address(slide, viewer))
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "image/jpeg"
