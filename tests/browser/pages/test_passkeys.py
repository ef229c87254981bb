"""A passkey of chromium's own authenticator, from being added to being removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from allauth.mfa.models import Authenticator

from tests.live_servers import DATABASE

pytestmark = pytest.mark.browser
PASSWORD = "correct horse battery"
FACTORS = "/accounts/factors/"


@pytest.fixture
def open_with_key(browser: Any, open_server: Any) -> Iterator[Callable[[], tuple[Any, str]]]:
    """A page whose browser holds an authenticator that checks its owner; and the server's address.

    Passkeys work at the name ``localhost``, not at its number.
    """
    context = browser.new_context()
    url = open_server.url.replace("127.0.0.1", "localhost")

    def run() -> tuple[Any, str]:
        page = context.new_page()
        page.complaints = []
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        devtools = context.new_cdp_session(page)
        devtools.send("WebAuthn.enable")
        key = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True}
        key |= {"hasUserVerification": True, "isUserVerified": True}
        key |= {"automaticPresenceSimulation": True}
        devtools.send("WebAuthn.addVirtualAuthenticator", {"options": key})
        return page, url

    yield run
    context.close()


def signed_in(page: Any, url: str, user: Any) -> None:
    page.goto(f"{url}/accounts/login/")
    page.get_by_label("E-mail address").fill(user.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def signed_out(page: Any, url: str) -> None:
    page.goto(f"{url}/accounts/logout/")
    page.locator("main").get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/accounts/login/**")


def keys_of(user: Any) -> list[Authenticator]:
    with DATABASE:
        return list(Authenticator.objects.filter(user=user, type=Authenticator.Type.WEBAUTHN))


def test_a_passkey_works_as_second_factor_and_for_sign_in_and_can_be_removed(
    open_with_key: Callable[[], tuple[Any, str]], annotator: Any
) -> None:
    page, url = open_with_key()
    signed_in(page, url, annotator)
    page.wait_for_url(f"{url}/cases/")

    page.goto(f"{url}{FACTORS}")
    page.get_by_role("link", name="Add a passkey").click()
    page.get_by_label("Password").fill(PASSWORD)  # adding asks who it is
    page.locator("main").get_by_role("button").first.click()
    page.get_by_label("Name").fill("Desk")
    page.get_by_label("Sign in with it alone").check()
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("recovery codes").first.wait_for()
    assert [key.wrap().name for key in keys_of(annotator)] == ["Desk"]

    signed_out(page, url)
    signed_in(page, url, annotator)
    page.get_by_role("heading", name="Second factor").wait_for()  # the password alone is not in
    page.goto(f"{url}/cases/")
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(f"{url}/cases/")

    signed_out(page, url)
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(f"{url}/cases/")

    page.goto(f"{url}{FACTORS}")
    page.get_by_role("row", name="Desk").get_by_role("link", name="Remove").click()
    page.get_by_role("link", name="a passkey").click()  # removing asks who it is, too
    page.get_by_role("button", name="Use a passkey").click()
    page.get_by_role("button", name="Remove").click()
    page.get_by_text("No second factor yet").wait_for()
    assert keys_of(annotator) == []

    signed_out(page, url)
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.get_by_role("alert").first.wait_for()  # the browser still holds it, the portal does not
    page.goto(f"{url}/cases/")
    assert "/accounts/login/" in page.url
    assert page.complaints == []
