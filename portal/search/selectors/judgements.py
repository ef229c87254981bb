"""People's judgements of hits."""

from __future__ import annotations

import uuid

from django.db.models import Exists, OuterRef, QuerySet

from portal.annotations.models import Roi
from portal.embeddings.models import CURRENT, Embedding, Encoder
from portal.labs.models import User
from portal.search.models import Judgement


def judgements_of(user: User, roi: Roi) -> QuerySet[Judgement]:
    """The person's judgements of hits of this ROI, oldest first; none of deleted ROIs."""
    return (
        Judgement.objects.owned_by(user)
        .filter(roi=roi, user=user, other__deleted_at__isnull=True)
        .select_related("other__canvas__case", "other__label")
        .order_by("created_at", "pk")
    )


def judgements_with_vectors(user: User, roi: Roi, encoder: Encoder) -> list[tuple[uuid.UUID, str]]:
    """Judged ROI and verdict, for ROIs with a current vector."""
    vectors = Embedding.objects.filter(CURRENT, encoder=encoder, roi=OuterRef("other_id"))
    rows = judgements_of(user, roi).filter(Exists(vectors))
    return list(rows.values_list("other_id", "verdict"))
