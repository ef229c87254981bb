"""Register, approve and switch encoders."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from portal.core.errors import ConflictError
from portal.core.events import event_emit
from portal.embeddings.models import Encoder
from portal.embeddings.selectors.embeddings import embeddings_of_other_kinds
from portal.embeddings.selectors.encoders import (
    BACKFILL_KIND,
    backfill_jobs_open,
    encoder_default,
    encoder_next,
)
from portal.jobs.services import job_submit
from portal.labs.models import Lab


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """Identity of an encoder, without torch."""

    name: str
    version: str
    config_hash: str
    dim: int
    kind: str


def encoder_register(*, facts: EncoderIdentity, is_default: bool) -> Encoder:
    """Return the encoder's row, created on first use. Only workers call this: they load encoders.

    The first default of a kind becomes the default at once. A replacement is ``is_next`` until it
    has embedded every lab's ROIs (``encoder_switch_if_complete``); until then searches use the old
    one.
    """
    existing = Encoder.objects.filter(
        name=facts.name, version=facts.version, config_hash=facts.config_hash
    ).first()
    if existing is not None and (existing.is_default or existing.is_next or not is_default):
        return existing
    with transaction.atomic():
        encoder, _ = Encoder.objects.get_or_create(
            name=facts.name,
            version=facts.version,
            config_hash=facts.config_hash,
            defaults={"dim": facts.dim, "kind": facts.kind},
        )
        if is_default:
            _promote(encoder)
    return encoder


def _promote(encoder: Encoder) -> None:
    """Make it the default of its kind, or the next default if there is one already."""
    is_first = encoder_default(encoder.kind) is None
    common = Encoder.objects.filter(kind=encoder.kind, lab=None)
    common.filter(is_next=True).update(is_next=False)
    encoder.is_default, encoder.is_next = is_first, not is_first
    encoder.save(update_fields=["is_default", "is_next", "updated_at"])
    # ROIs may have been embedded by an encoder of another kind.
    if encoder.is_next or embeddings_of_other_kinds(encoder).exists():
        _backfill_submit(encoder)


def encoder_switch_if_complete() -> bool:
    """Make each next encoder the default of its kind if no job that embeds with it is left.

    Called when such a job ends. ROIs that cannot be embedded (no tissue) do not delay it. With
    ``TESSERA_ENCODER_APPROVAL`` it waits for ``encoder_approve`` instead.
    """
    if settings.TESSERA_ENCODER_APPROVAL:
        return False
    waiting = Encoder.objects.filter(is_next=True, lab=None)
    switched = [_switch_if_complete(encoder) for encoder in waiting]
    return any(switched)


def encoder_approve(kind: str) -> Encoder:
    """Make the next encoder of a kind its default, as decided by a person.

    Raises:
        ConflictError: No encoder is waiting, or it has not embedded all ROIs.
    """
    encoder = _waiting(kind)
    if not _switch_if_complete(encoder):
        count = backfill_jobs_open(encoder).count()
        raise ConflictError(
            f"{encoder} has not finished embedding the archive: {count} jobs are left."
        )
    encoder.refresh_from_db()
    return encoder


def encoder_reject(kind: str) -> Encoder:
    """Keep the default of a kind and stop waiting for the next encoder. Its embeddings stay.

    Raises:
        ConflictError: No encoder is waiting.
    """
    encoder = _waiting(kind)
    Encoder.objects.filter(pk=encoder.pk).update(is_next=False)
    encoder.refresh_from_db()
    return encoder


def _waiting(kind: str) -> Encoder:
    encoder = encoder_next(kind)
    if encoder is None:
        raise ConflictError(f"No {kind} encoder is waiting to become the default.")
    return encoder


def _switch_if_complete(encoder: Encoder) -> bool:
    if backfill_jobs_open(encoder).exists():
        return False
    with transaction.atomic():
        if not Encoder.objects.filter(pk=encoder.pk, is_next=True).update(is_next=False):
            return False
        # Labs' own encoders build on vectors of the old one, which new regions no longer get.
        rows = Encoder.objects.filter(kind=encoder.kind)
        rows.exclude(lab=None).update(is_default=False, is_next=False)
        rows.filter(is_default=True).update(is_default=False)
        rows.filter(pk=encoder.pk).update(is_default=True)
        event_emit("encoder.switched", lab_id=None, payload={"encoder_id": str(encoder.pk)})
    return True


def _backfill_submit(encoder: Encoder) -> None:
    for lab in Lab.objects.all():
        job_submit(
            kind=BACKFILL_KIND,
            args={"lab_id": str(lab.pk), "encoder_id": str(encoder.pk)},
            lab=lab,
            user=None,
            target_name=f"All regions with {encoder}",
        )
