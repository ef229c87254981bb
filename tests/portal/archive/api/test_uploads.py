"""Files in pieces over REST, as tus 1.0.0 has it."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.archive.models import Case, Slide, Upload
from portal.jobs.models import Job
from tests.portal.archive.support import picture, run_job

pytestmark = pytest.mark.django_db
URL = "/api/v1/uploads/"
CONTENT = picture(60, 40)
TUS = {"Tus-Resumable": "1.0.0"}


def _meta(**found: Any) -> str:
    return ",".join(f"{k} {base64.b64encode(str(v).encode()).decode()}" for k, v in found.items())


def _create(api: APIClient, case: Case, **headers: Any) -> Any:
    sent = {"Upload-Length": len(CONTENT), "Upload-Metadata": _meta(case=case.pk, filename="a.png")}
    return api.post(URL, headers=_texts(TUS | sent | headers))


def _texts(headers: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in headers.items()}


def _piece(
    api: APIClient,
    address: str,
    offset: int,
    data: bytes,
    **headers: Any,
) -> Any:
    return api.generic(
        "PATCH",
        address,
        data,
        content_type="application/offset+octet-stream",
        headers=_texts(TUS | {"Upload-Offset": offset} | headers),
    )


def test_a_file_uploaded_in_pieces_names_its_slide(api: APIClient, case: Case) -> None:
    made = _create(api, case)
    address = made.headers["Location"]
    assert (made.status_code, made.headers["Upload-Offset"]) == (201, "0")
    assert made.headers["Tus-Resumable"] == "1.0.0"
    first = _piece(api, address, 0, CONTENT[:100])
    assert (first.status_code, first.headers["Upload-Offset"]) == (204, "100")
    assert first.headers["Upload-Expires"].endswith("GMT")
    head = api.head(address, headers=TUS)
    assert (head.status_code, head.headers["Upload-Offset"]) == (200, "100")
    assert head.headers["Upload-Length"] == str(len(CONTENT))
    assert head.headers["Cache-Control"] == "no-store"
    again = _piece(api, address, 0, CONTENT)
    assert (again.status_code, again.json()["offset"]) == (409, 100)
    seen = api.get(address).json()
    assert (seen["state"], seen["offset"], seen["item"]) == ("receiving", 100, None)
    assert _piece(api, address, 100, CONTENT[100:]).status_code == 204
    seen = api.get(address).json()
    assert (seen["state"], seen["expires_at"], seen["job"]["kind"]) == (
        "checking",
        None,
        "upload_finish",
    )
    assert api.delete(address, headers=TUS).status_code == 409
    run_job(Job.objects.get(kind="upload_finish"))
    seen = api.get(address).json()
    assert seen["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    slide = Slide.objects.get()
    assert seen["item"] == {"id": str(slide.pk), "kind": "slide", "name": "a.png"}


def test_options_report_the_protocol(api: APIClient) -> None:
    response = api.options(URL)
    assert (response.status_code, response.headers["Tus-Version"]) == (204, "1.0.0")
    assert set(response.headers["Tus-Extension"].split(",")) == {
        *("creation", "expiration", "checksum", "termination", "concatenation")
    }
    assert int(response.headers["Tus-Max-Size"]) > 0


def test_a_damaged_piece_is_sent_again(api: APIClient, case: Case) -> None:
    address = _create(api, case).headers["Location"]
    digest = base64.b64encode(hashlib.sha256(CONTENT).digest()).decode()
    data = {"Upload-Checksum": f"sha256 {digest}"}
    bad = _piece(api, address, 0, CONTENT[::-1], **data)
    assert (bad.status_code, bad.json()["code"]) == (460, "checksum-mismatch")
    assert _piece(api, address, 0, CONTENT, **data).status_code == 204
    other = _create(api, case).headers["Location"]
    for wrong in ("crc32 AAAA", "sha1 ???"):
        assert _piece(api, other, 0, b"", **{"Upload-Checksum": wrong}).status_code == 400


def test_parts_become_one_file(api: APIClient, case: Case) -> None:
    meta = _meta(case=case.pk, filename="a.png")
    addresses = []
    for piece in (CONTENT[:500], CONTENT[500:]):
        made = _create(api, case, **{"Upload-Concat": "partial", "Upload-Length": len(piece)})
        addresses.append(f"https://lab.example{made.headers['Location']}")
        assert _piece(api, made.headers["Location"], 0, piece).status_code == 204
    assert api.head(made.headers["Location"], headers=TUS).headers["Upload-Concat"] == "partial"
    final = {"Upload-Concat": f"final;{' '.join(addresses)}", "Upload-Metadata": meta}
    made = api.post(URL, headers=TUS | final)
    assert made.status_code == 201
    run_job(Job.objects.get(kind="upload_finish"))
    assert Slide.objects.get().asset.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert len(api.get(URL).json()["results"]) == 1  # the parts are no uploads of their own
    for wrong in ("final;/api/v1/cases/", "final;", "half"):
        sent = {"Upload-Concat": wrong, "Upload-Metadata": meta}
        assert api.post(URL, headers=TUS | sent).status_code == 400


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Tus-Resumable": "0.2.2"}, 412),
        ({"Upload-Length": "-1"}, 400),
        ({"Upload-Length": "0"}, 400),
        ({"Upload-Length": "9" * 15}, 413),
        ({"Upload-Metadata": "case ???"}, 400),
        ({"Upload-Metadata": "filename YQ=="}, 400),
        ({"Upload-Metadata": "x" * 9000}, 400),
    ],
)
def test_an_invalid_creation_is_refused(
    api: APIClient, case: Case, headers: dict[str, str], status: int
) -> None:
    answer = _create(api, case, **headers)
    assert (answer.status_code, answer.headers["Tus-Resumable"]) == (status, "1.0.0")
    assert not Upload.objects.exists()


def test_a_piece_that_is_none(api: APIClient, case: Case) -> None:
    address = _create(api, case).headers["Location"]
    assert api.patch(address, {}, format="json", headers=TUS).status_code == 415
    assert _piece(api, address, 0, b"x", **{"Tus-Resumable": "2"}).status_code == 412
    assert _piece(api, address, 0, b"x", **{"Upload-Offset": "x"}).status_code == 400
    assert api.delete(address, headers=TUS).status_code == 204
    assert _piece(api, address, 0, b"x").status_code == 404


def test_transfers_of_other_labs_are_not_there(
    api: APIClient, api_as: Any, case: Case, stranger: Any, viewer: Any
) -> None:
    address = _create(api, case).headers["Location"]
    other = api_as(stranger)
    assert len(other.get(URL).json()["results"]) == 0
    assert _create(other, case).status_code == 404
    assert other.head(address, headers=TUS).status_code == 404
    headers = TUS | {"Upload-Concat": f"final;{address}", "Upload-Metadata": _meta(case=1)}
    assert other.post(URL, headers=headers).status_code == 404
    assert _piece(api_as(viewer), address, 0, CONTENT).status_code == 403


def test_a_page_of_transfers_takes_as_many_queries_as_one(
    api: APIClient, case: Case, django_assert_max_num_queries: Any
) -> None:
    for _ in range(3):
        _create(api, case)
    with django_assert_max_num_queries(8):
        assert len(api.get(URL).json()["results"]) == 3
