"""What people said of hits."""

from __future__ import annotations

import uuid

from django.db.models import Exists, OuterRef, QuerySet

from portal.annotations.models import Roi
from portal.labs.models import User
from portal.retrieval.models import CURRENT, Embedding, Encoder, Judgement


def judgements_of(user: User, roi: Roi) -> QuerySet[Judgement]:
    """This person's, of searches with this ROI, the first made first; none of deleted ROIs."""
    return (
        Judgement.objects.owned_by(user)
        .filter(roi=roi, user=user, other__deleted_at__isnull=True)
        .select_related("other__canvas__case", "other__label")
        .order_by("created_at", "pk")
    )


def judgements_to_go_by(user: User, roi: Roi, encoder: Encoder) -> list[tuple[uuid.UUID, str]]:
    """The other ROI and the verdict, of those whose present outline has a vector."""
    vectors = Embedding.objects.filter(CURRENT, encoder=encoder, roi=OuterRef("other_id"))
    rows = judgements_of(user, roi).filter(Exists(vectors))
    return list(rows.values_list("other_id", "verdict"))
