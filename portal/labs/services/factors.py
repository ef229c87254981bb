"""Writes: second factors."""

from __future__ import annotations

from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import hotp_value, yield_hotp_counters_from_time
from allauth.mfa.utils import decrypt
from django.db import transaction
from django.utils import timezone

from portal.labs.hashing import sha256_of
from portal.labs.session_store import GUEST_LIFE_S

SPENT = "spent"  # beside the secret: the half minute of the last code that was used
CHALLENGES = "challenges"  # stored with a passkey: those answered within the last hour, and when
CHALLENGE_LIFE_S = 2 * GUEST_LIFE_S  # the browser that was asked cannot keep one as long


@transaction.atomic
def app_code_spend(authenticator: Authenticator, code: str) -> bool:
    """Use up a right code of an app; False if it, or a later one, was used before.

    allauth remembers codes for half a minute and in the cache. With the neighbouring half minutes
    a code is right for a minute and a half, and a cache may be away.
    """
    row = Authenticator.objects.select_for_update().filter(pk=authenticator.pk).first()
    if row is None:
        return False
    secret, wanted = decrypt(row.data["secret"]), code.replace(" ", "")
    steps = [s for s in yield_hotp_counters_from_time() if f"{hotp_value(secret, s):06}" == wanted]
    if not steps or steps[0] <= row.data.get(SPENT, 0):
        return False
    row.data[SPENT] = steps[0]
    row.save(update_fields=["data"])
    return True


@transaction.atomic
def passkey_challenge_spend(authenticator: Authenticator, challenge: str) -> bool:
    """Use up the challenge that a passkey has answered; False if it was answered before.

    A guest's session is a cookie: whoever copied it with the answer could send both again.
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
