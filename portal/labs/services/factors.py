"""Writes: second factors."""

from __future__ import annotations

from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import hotp_value, yield_hotp_counters_from_time
from allauth.mfa.utils import decrypt
from django.db import transaction
from django.utils import timezone

from portal.labs.hashing import sha256_of
from portal.labs.session_store import GUEST_LIFE_S

SPENT = "spent"  # stored with the secret: the 30 s time step of the last used code
CHALLENGES = "challenges"  # stored with a passkey: those answered within the last hour, and when
CHALLENGE_LIFE_S = 2 * GUEST_LIFE_S  # longer than the browser keeps a challenge


@transaction.atomic
def app_code_spend(authenticator: Authenticator, code: str) -> bool:
    """Use up a valid code of an app; False if it, or a later one, was used before.

    allauth remembers codes for half a minute, in the cache. With the neighbouring time steps a code
    is valid for a minute and a half, and the cache may be down.
    """
    row = Authenticator.objects.select_for_update().filter(pk=authenticator.pk).first()
    if row is None:
        return False
    secret, digits = decrypt(row.data["secret"]), code.replace(" ", "")
    steps = [s for s in yield_hotp_counters_from_time() if f"{hotp_value(secret, s):06}" == digits]
    if not steps or steps[0] <= row.data.get(SPENT, 0):
        return False
    row.data[SPENT] = steps[0]
    row.save(update_fields=["data"])
    return True


@transaction.atomic
def passkey_challenge_spend(authenticator: Authenticator, challenge: str) -> bool:
    """Use up an answered passkey challenge; False if it was used before.

    The session of a guest is a cookie: an attacker with a copy of the cookie and of the response
    could replay both.
    """
    row = Authenticator.objects.select_for_update().filter(pk=authenticator.pk).first()
    if row is None:
        return False
    now, key = timezone.now().timestamp(), sha256_of(challenge)
    spent = {k: at for k, at in row.data.get(CHALLENGES, {}).items() if now - at < CHALLENGE_LIFE_S}
    if key in spent:
        return False
    row.data[CHALLENGES] = spent | {key: now}
    row.save(update_fields=["data"])
    return True
