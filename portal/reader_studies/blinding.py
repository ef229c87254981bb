"""Hide rows from blinded readers, and their work from everybody else, in all reads.

While a reading is blind (``Assignment.is_blind``):

- regions that its reader drew on the image since the assignment are hidden from everybody else,
  regardless of role: no colleague can describe or change them;
- on that image the reader sees only their own regions;
- ``TissueSample`` rows that others requested for a slide are not used: an immediate response would
  reveal that they have drawn a region, and its size;
- searches without an ROI (``Query``), and reports of searches, are visible only to their authors,
  readers or not.

Every read of the portal begins with ``visible_to`` or ``owned_by``, which exclude the rows
registered here; rows that depend on a region (its vector, its jobs, its comments) are hidden with
it.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence

from django.db.models import Exists, OuterRef, Q, QuerySet

from portal.annotations.models import Roi, RoiImport, VideoEvent
from portal.audit.models import AuditEntry
from portal.core.models import Event
from portal.embeddings.models import Embedding
from portal.explore.models import LabelConfirmation, TissueSample
from portal.jobs.models import Job
from portal.labs.models import User
from portal.labs.models.people import HIDDEN_ROWS
from portal.mosaics.models import Followup
from portal.quantification.models import RoiQuantification
from portal.reader_studies.models import Assignment
from portal.review.models import CanvasPresence, RoiComment
from portal.search.models import (
    Explanation,
    Judgement,
    Query,
    Report,
    ReportInterpretation,
    ReportRegion,
)

_OF_MANY = {"rois.saved_in_bulk": ("canvas_id",), "job.ended": ("target_id",)}
"""Events about regions without ``roi_id``, and their payload keys of the image or the region."""


def blinding_register() -> None:
    """Register the hidden rows of each model; called once, when the portal starts."""
    # By key: a window of an image is counted in an index, without reading its rows.
    HIDDEN_ROWS.register(Roi)(lambda user: Q(pk__in=rois_hidden_from(user)))
    for model in (
        Embedding,
        Followup,
        LabelConfirmation,
        ReportRegion,
        RoiComment,
        RoiQuantification,
    ):
        HIDDEN_ROWS.register(model)(lambda user: Q(roi__in=rois_hidden_from(user)))
    HIDDEN_ROWS.register(Judgement)(_judgements)
    HIDDEN_ROWS.register(Explanation)(_explanations)
    HIDDEN_ROWS.register(RoiImport)(lambda user: _is_hidden_on_canvas(user, author="author"))
    HIDDEN_ROWS.register(VideoEvent)(_video_events)
    HIDDEN_ROWS.register(CanvasPresence)(lambda user: _is_hidden_on_canvas(user, author="user"))
    HIDDEN_ROWS.register(TissueSample)(lambda user: _is_hidden_on_canvas(user, author="user"))
    for searched in (Query, Report):
        HIDDEN_ROWS.register(searched)(_queries)
    HIDDEN_ROWS.register(ReportInterpretation)(_interpretations)
    HIDDEN_ROWS.register(Job)(_jobs)
    HIDDEN_ROWS.register(AuditEntry)(_entries)


def rois_hidden_from(user: User) -> QuerySet[Roi]:
    """Ids of the ROIs hidden from a user, as a subquery that reads few rows.

    Only ROIs of images with a blind reading are examined.
    """
    return Roi.all_objects.filter(_rois(user)).order_by().values("pk")  # type: ignore[return-value]


def events_unseen(events: Sequence[Event]) -> set[int]:
    """Ids of events that are not sent to other systems: those about regions of a blind reader.

    An event of many regions, or of a canvas' vectors, does not name their authors: on an image with
    a blind reading it is excluded as well.
    """
    event_ids_by_object: dict[uuid.UUID, set[int]] = defaultdict(set)
    for event in events:
        keys = ("roi_id",) if event.payload.get("roi_id") else _OF_MANY.get(event.name, ())
        for key in keys:
            if event.payload.get(key):
                event_ids_by_object[uuid.UUID(event.payload[key])].add(event.pk)
    if not event_ids_by_object or not _blind_assignments().exists():
        return set()
    blind = _blind_assignments()
    rois = Roi.all_objects.filter(
        _drawn_blindly(), canvas__in=blind.values("canvas_id"), pk__in=event_ids_by_object
    )
    canvases = blind.filter(canvas__in=event_ids_by_object)
    hidden = {*rois.values_list("pk", flat=True), *canvases.values_list("canvas_id", flat=True)}
    return {pk for object_id in hidden for pk in event_ids_by_object[object_id]}


def canvas_is_blind(canvas_id: uuid.UUID) -> bool:
    """Return whether the image has a blind reading, so that members of its lab see different
    regions."""
    return _blind_assignments().filter(canvas=canvas_id).exists()


def _rois(user: User) -> Q:
    """Condition on others' ROIs of an image that the user reads blindly, and on those that a blind
    reader drew since the assignment.

    Its first part is an uncorrelated subquery, so that other images' ROIs cost one comparison.
    """
    assignments = _blind_assignments().filter(
        Q(person=user)
        | Q(person=OuterRef("created_by_id"), created_at__lte=OuterRef("created_at")),
        canvas=OuterRef("canvas_id"),
    )
    on_blind_canvas = Q(canvas__in=_blind_assignments().values("canvas_id"))
    return on_blind_canvas & ~Q(created_by=user) & Q(Exists(assignments))


def _drawn_blindly() -> Exists:
    """Condition on an ROI: drawn by a blind reader of the image since the assignment."""
    assignments = _blind_assignments().filter(
        canvas=OuterRef("canvas_id"),
        person=OuterRef("created_by_id"),
        created_at__lte=OuterRef("created_at"),
    )
    return Exists(assignments)


def _blind_assignments() -> QuerySet[Assignment]:
    return Assignment.all_objects.filter(is_blind=True).order_by()


def _is_hidden_on_canvas(user: User, *, author: str, canvas: str = "canvas_id") -> Q:
    """Condition on others' work on an image: hidden from its readers, and a reader's from all
    others."""
    read_by_user = _blind_assignments().filter(person=user).values("canvas_id")
    assignments = _blind_assignments().filter(
        canvas=OuterRef(canvas), person=OuterRef(f"{author}_id")
    )
    not_own = ~Q(**{author: user})
    return not_own & (
        Q(**{f"{canvas.removesuffix('_id')}__in": read_by_user}) | Q(Exists(assignments))
    )


def _video_events(user: User) -> Q:
    """Condition on others' events of a video, for its blinded readers, and vice versa."""
    return _is_hidden_on_canvas(user, author="created_by")


def _judgements(user: User) -> Q:
    hidden = rois_hidden_from(user)
    return Q(roi__in=hidden) | Q(other__in=hidden)


def _explanations(user: User) -> Q:
    """Condition on explanations of a hidden region or a hidden search."""
    hidden = rois_hidden_from(user)
    of_rois = Q(embedding__roi__in=hidden) | Q(hit__roi__in=hidden)
    return of_rois | Q(query__in=Query.all_objects.filter(_queries(user)).order_by().values("pk"))


def _queries(user: User) -> Q:
    """Condition on others' queries and reports, for blinded readers, and vice versa."""
    reads = Exists(_blind_assignments().filter(person=user))
    return ~Q(user=user) & (Q(reads) | Q(user__in=_blind_assignments().values("person_id")))


def _interpretations(user: User) -> Q:
    """Condition on others' interpretations of reports, as for their reports."""
    reads = Exists(_blind_assignments().filter(person=user))
    return ~Q(author=user) & (Q(reads) | Q(author__in=_blind_assignments().values("person_id")))


def _jobs(user: User) -> Q:
    """Condition on jobs of a hidden region, or of others' work on an image with a blind reading."""
    created_by_user = Q(created_by=user) & Q(created_by__isnull=False)
    read_by_user = _blind_assignments().filter(person=user).values("canvas_id")
    assignments = _blind_assignments().filter(
        canvas=OuterRef("target_id"), person=OuterRef("created_by_id")
    )
    on_canvas = (
        Q(target_type="canvas")
        & ~created_by_user
        & (Q(target_id__in=read_by_user) | Q(Exists(assignments)))
    )
    queries = Query.all_objects.filter(_queries(user)).order_by().values("pk")
    on_query = Q(target_type="query", target_id__in=queries)
    return Q(target_type="roi", target_id__in=rois_hidden_from(user)) | on_canvas | on_query


def _entries(user: User) -> Q:
    """Condition on audit entries of a hidden region, and of a reader's work on a blind image."""
    assignments = _blind_assignments().filter(
        person=OuterRef("actor_id"), canvas=OuterRef("object_id")
    )
    of_work = Q(action__startswith="roi.") | Q(action__startswith="video_event.")
    on_canvas = Q(kind="canvas") & of_work & ~Q(actor_id=user.pk) & Q(Exists(assignments))
    events = VideoEvent.all_objects.filter(_video_events(user)).order_by().values("pk")
    on_event = Q(kind="video_event", object_id__in=events)
    return Q(kind="roi", object_id__in=rois_hidden_from(user)) | on_canvas | on_event
