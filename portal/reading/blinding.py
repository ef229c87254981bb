"""What a blinded reader must not see, and what nobody may see of theirs: one place for all reads.

While a reading is blind (``Assignment.is_blind``):

- what its reader drew on the image since they were asked is seen by nobody else, whatever their
  role: no colleague can describe or change it;
- on that image the reader sees no regions but their own, whoever drew the others, and whenever;
- the ``TissueSample`` that somebody else had made of a slide is not used: an immediate answer would
  reveal that they have drawn something, and its size;
- searches not made from an ROI (``Query``), and reports of searches, are seen by nobody but those
  who made them, reader or colleague.

Every read of the portal begins with ``visible_to`` or ``owned_by``, which leave out what is
registered here; rows that hang on a region (its vector, its jobs, its comments) go with it.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence

from django.db.models import Exists, OuterRef, Q, QuerySet

from portal.annotations.models import Roi, RoiImport
from portal.audit.models import AuditEntry
from portal.core.models import Event
from portal.jobs.models import Job
from portal.labs.models import User, hide_register
from portal.mosaics.models import Followup
from portal.reading.models import Assignment
from portal.retrieval.models import (
    Embedding,
    Explanation,
    Judgement,
    LabelConfirmation,
    Query,
    Report,
    ReportRegion,
    TissueSample,
)
from portal.review.models import CanvasPresence, RoiComment

_OF_MANY = {"rois.saved_in_bulk": ("canvas_id",), "job.ended": ("target_id",)}
"""Events that tell of regions without ``roi_id``, and where they name the image or the region."""


def blinding_register() -> None:
    """Say what is hidden of each model; called once, when the portal starts."""
    hide_register(Roi, lambda user: Q(pk__in=rois_hidden_from(user)))
    for model in (Embedding, Followup, LabelConfirmation, ReportRegion, RoiComment):
        hide_register(model, lambda user: Q(roi__in=rois_hidden_from(user)))
    hide_register(Judgement, _judgements)
    hide_register(Explanation, _explanations)
    hide_register(RoiImport, lambda user: _on_blind_canvas(user, author="author"))
    hide_register(CanvasPresence, lambda user: _on_blind_canvas(user, author="user"))
    hide_register(TissueSample, lambda user: _on_blind_canvas(user, author="user"))
    for searched in (Query, Report):
        hide_register(searched, _queries)
    hide_register(Job, _jobs)
    hide_register(AuditEntry, _entries)


def rois_hidden_from(user: User) -> QuerySet[Roi]:
    """Ids of the ROIs that a person must not see, as a subquery that reads few rows.

    It looks only at ROIs of the images that are being read blindly.
    """
    blind = _blind()
    mine = blind.filter(person=user).values("canvas_id")
    others = _on_blind().exclude(created_by=user).filter(Q(canvas__in=mine) | _drawn_blindly())
    return others.order_by().values("pk")  # type: ignore[return-value]


def events_unseen(events: Sequence[Event]) -> set[int]:
    """Ids of the events that no other system may get: those of what a blind reader has drawn.

    An event of many regions, or of a canvas' vectors, does not say whose they are: on an image that
    is being read blindly it is left out as well.
    """
    named: dict[uuid.UUID, set[int]] = defaultdict(set)
    for event in events:
        keys = ("roi_id",) if event.payload.get("roi_id") else _OF_MANY.get(event.name, ())
        for key in keys:
            if event.payload.get(key):
                named[uuid.UUID(event.payload[key])].add(event.pk)
    if not named or not _blind().exists():
        return set()
    rois = _on_blind().filter(_drawn_blindly(), pk__in=named)
    canvases = _blind().filter(canvas__in=named)
    hidden = {*rois.values_list("pk", flat=True), *canvases.values_list("canvas_id", flat=True)}
    return {pk for object_id in hidden for pk in named[object_id]}


def canvas_is_blind(canvas_id: uuid.UUID) -> bool:
    """Whether somebody reads this image blindly, so that not all of its lab see the same of it."""
    return _blind().filter(canvas=canvas_id).exists()


def _on_blind() -> QuerySet[Roi]:
    return Roi.everything.filter(canvas__in=_blind().values("canvas_id"))


def _drawn_blindly() -> Exists:
    """Of an ROI: its maker reads this image blindly, and drew it since they were asked."""
    theirs = _blind().filter(
        canvas=OuterRef("canvas_id"),
        person=OuterRef("created_by_id"),
        created_at__lte=OuterRef("created_at"),
    )
    return Exists(theirs)


def _blind() -> QuerySet[Assignment]:
    return Assignment.everything.filter(is_blind=True).order_by()


def _on_blind_canvas(user: User, *, author: str, canvas: str = "canvas_id") -> Q:
    """What others do on an image: hidden from its readers, and a reader's from everybody."""
    mine = _blind().filter(person=user).values("canvas_id")
    theirs = _blind().filter(canvas=OuterRef(canvas), person=OuterRef(f"{author}_id"))
    not_own = ~Q(**{author: user})
    return not_own & (Q(**{f"{canvas.removesuffix('_id')}__in": mine}) | Q(Exists(theirs)))


def _judgements(user: User) -> Q:
    hidden = rois_hidden_from(user)
    return Q(roi__in=hidden) | Q(other__in=hidden)


def _explanations(user: User) -> Q:
    """Of a hidden region, or of a search that is hidden."""
    hidden = rois_hidden_from(user)
    of_rois = Q(embedding__roi__in=hidden) | Q(hit__roi__in=hidden)
    return of_rois | Q(query__in=Query.everything.filter(_queries(user)).order_by().values("pk"))


def _queries(user: User) -> Q:
    """Others' queries and reports, from whoever reads blindly; a reader's, from everybody else."""
    reads = Exists(_blind().filter(person=user))
    return ~Q(user=user) & (Q(reads) | Q(user__in=_blind().values("person_id")))


def _jobs(user: User) -> Q:
    """Of a hidden region, or of somebody's work on an image that is read blindly."""
    own = Q(created_by=user) & Q(created_by__isnull=False)
    mine = _blind().filter(person=user).values("canvas_id")
    theirs = _blind().filter(canvas=OuterRef("target_id"), person=OuterRef("created_by_id"))
    on_canvas = Q(target_type="canvas") & ~own & (Q(target_id__in=mine) | Q(Exists(theirs)))
    queries = Query.everything.filter(_queries(user)).order_by().values("pk")
    on_query = Q(target_type="query", target_id__in=queries)
    return Q(target_type="roi", target_id__in=rois_hidden_from(user)) | on_canvas | on_query


def _entries(user: User) -> Q:
    """What the log says of a hidden region, and of what a reader did to an image being read."""
    theirs = _blind().filter(person=OuterRef("actor_id"), canvas=OuterRef("object_id"))
    on_canvas = (
        Q(kind="canvas", action__startswith="roi.") & ~Q(actor_id=user.pk) & Q(Exists(theirs))
    )
    return Q(kind="roi", object_id__in=rois_hidden_from(user)) | on_canvas
