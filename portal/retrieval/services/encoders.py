"""Writes of encoders: which is the default, and which takes its place."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from portal.core.errors import ConflictError
from portal.core.events import event_emit
from portal.jobs.services import job_submit
from portal.labs.models import Lab
from portal.retrieval import selectors
from portal.retrieval.models import Encoder
from portal.retrieval.selectors import BACKFILL_KIND


@dataclass(frozen=True, slots=True)
class EncoderFacts:
    """What identifies an encoder, free of torch."""

    name: str
    version: str
    config_hash: str
    dim: int
    kind: str


def encoder_register(*, facts: EncoderFacts, is_default: bool) -> Encoder:
    """The encoder's row, made on first sight. Called by workers, which alone can load encoders.

    The first default of a kind is the default at once. Another one that is to take its place is
    ``is_next`` until it has embedded every lab's ROIs (``encoder_switch_if_complete``); until then
    searches continue with the old one.
    """
    known = Encoder.objects.filter(
        name=facts.name, version=facts.version, config_hash=facts.config_hash
    ).first()
    if known is not None and (known.is_default or known.is_next or not is_default):
        return known
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
    """Make it its kind's default, or the next one where there is a default to search meanwhile."""
    is_first = selectors.encoder_default(encoder.kind) is None
    common = Encoder.objects.filter(kind=encoder.kind, lab=None)
    common.filter(is_next=True).update(is_next=False)
    encoder.is_default, encoder.is_next = is_first, not is_first
    encoder.save(update_fields=["is_default", "is_next", "updated_at"])
    # Before a kind had an encoder of its own, another kind's embedded its ROIs.
    if encoder.is_next or selectors.embeddings_of_other_kinds(encoder).exists():
        _backfill_submit(encoder)


def encoder_switch_if_complete() -> bool:
    """Make each next encoder the default of its kind if no job that embeds with it is left.

    Called whenever such a job ends. ROIs that could not be embedded (no tissue) hold up nothing.
    Where ``TESSERA_ENCODER_APPROVAL`` is set it waits for ``encoder_approve`` instead.
    """
    if settings.TESSERA_ENCODER_APPROVAL:
        return False
    waiting = Encoder.objects.filter(is_next=True, lab=None)
    switched = [_switch_if_complete(encoder) for encoder in waiting]
    return any(switched)


def encoder_approve(kind: str) -> Encoder:
    """Make the next encoder of a kind its default, as a person decided.

    Raises:
        ConflictError: none waits, or it has yet to embed some ROIs.
    """
    encoder = _waiting(kind)
    if not _switch_if_complete(encoder):
        count = selectors.backfill_jobs_open(encoder).count()
        raise ConflictError(
            f"{encoder} has not finished embedding the archive: {count} jobs are left."
        )
    encoder.refresh_from_db()
    return encoder


def encoder_reject(kind: str) -> Encoder:
    """Keep the default of a kind: the next encoder no longer waits. Its embeddings stay.

    Raises:
        ConflictError: none waits.
    """
    encoder = _waiting(kind)
    Encoder.objects.filter(pk=encoder.pk).update(is_next=False)
    encoder.refresh_from_db()
    return encoder


def _waiting(kind: str) -> Encoder:
    encoder = selectors.encoder_next(kind)
    if encoder is None:
        raise ConflictError(f"No {kind} encoder is waiting to become the default.")
    return encoder


def _switch_if_complete(encoder: Encoder) -> bool:
    if selectors.backfill_jobs_open(encoder).exists():
        return False
    with transaction.atomic():
        if not Encoder.objects.filter(pk=encoder.pk, is_next=True).update(is_next=False):
            return False
        # Labs' own are maps of the old one's vectors, which new regions do not get any more.
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
            target_name=f"All ROIs with {encoder}",
        )
