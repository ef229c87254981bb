"""The words of the log: what is noted, by which name, and what the events of other apps become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ACTIONS: Mapping[str, str] = {
    "account.deactivated": "Closed an account",
    "account.factor_added": "Added a second factor",
    "account.factor_failed": "Gave a wrong second factor",
    "account.factor_removed": "Removed a second factor",
    "account.password_set": "Set a new password",
    "account.proven": "Proved the address: access made before was removed",
    "account.sign_in_failed": "Failed to sign in",
    "account.signed_in": "Signed in",
    "account.signed_out": "Signed out",
    "assignment.changed": "Changed an assignment",
    "assignment.made": "Handed out an image",
    "assignment.removed": "Withdrew an assignment",
    "assignment.reopened": "Returned an assignment",
    "assignment.submitted": "Handed in an assignment",
    "audit.exported": "Exported the audit log",
    "audit.viewed": "Looked at the audit log",
    "bin.purged": "Deleted for good",
    "bin.put": "Moved to the bin",
    "bin.restored": "Restored from the bin",
    "bin.viewed": "Looked into the bin",
    "canvas.exported": "Exported a slide as DICOM",
    "canvas.listed": "Listed images to compare with one",
    "canvas.opened": "Opened in the viewer",
    "canvas.read": "Read pixels or regions",
    "canvas.changed": "Changed the pixel size or display range of an image",
    "canvas.display_range_set": "Set the display range of an image",
    "canvas.scaled": "Set the pixel size of an image",
    "case.changed": "Changed a case",
    "case.created": "Created a case",
    "case.export_ordered": "Ordered the export of a whole case",
    "case.exported": "Exported a case as FHIR",
    "case.import_ordered": "Ordered the import of a whole case",
    "case.imported": "Imported a whole case",
    "case.listed": "Listed or searched cases",
    "case.taken_along": "Downloaded a whole case",
    "case.viewed": "Looked at a case",
    "erasure.requested": "Ordered an erasure",
    "erasure.viewed": "Looked at erasures",
    "encoder.switched": "Switched the encoder",
    "followup.listed": "Listed follow-ups",
    "followup.requested": "Asked for a follow-up",
    "followup.viewed": "Looked at a follow-up",
    "invitation.accepted": "Accepted an invitation",
    "invitation.created": "Invited somebody",
    "invitation.declined": "Declined an invitation",
    "invitation.renewed": "Invited somebody again",
    "invitation.revoked": "Revoked an invitation",
    "intake.viewed": "Looked at the intake of files",
    "intake_rules.changed": "Changed how files are taken in",
    "item.deidentified": "Removed names from a file",
    "item.listed": "Listed slides or videos",
    "item.received": "Uploaded a file",
    "item.renamed": "Renamed an image or video",
    "item.retried": "Prepared a file again",
    "item.viewed": "Looked at a slide or video",
    "job.cancelled": "Cancelled a job",
    "job.retried": "Tried a job again",
    "lab.created": "Created the lab",
    "label.deleted": "Deleted a label",
    "label.merge_undone": "Undid a merge of labels",
    "label.merged": "Merged a label into another",
    "label.saved": "Saved a label",
    "label_version.published": "Published a version of the labels",
    "learning.asked": "Started to learn from the archive",
    "learning.promoted": "Put what was learned into use",
    "learning.rolled_back": "Took what was learned out of use",
    "learning.viewed": "Looked at what was learned from the archive",
    "member.added": "Added a member",
    "member.removed": "Removed a member",
    "member.role_changed": "Changed a role",
    "mosaic.downloaded": "Downloaded a mosaic",
    "mosaic.listed": "Listed mosaics",
    "mosaic.requested": "Asked for a mosaic",
    "mosaic.viewed": "Looked at a mosaic",
    "properties.changed": "Changed which properties regions have",
    "quarantine.deleted": "Deleted a file in quarantine",
    "quarantine.put": "Put a file into quarantine",
    "quarantine.released": "Released a file from quarantine",
    "quarantine.retried": "Tried a file in quarantine again",
    "report.asked_again": "Repeated the search of a report",
    "report.created": "Created a report of a search",
    "report.deleted": "Deleted a report",
    "report.downloaded": "Downloaded a report",
    "report.listed": "Listed reports",
    "report.viewed": "Looked at a report",
    "review_rules.changed": "Changed how the lab reviews",
    "roi.commented": "Commented on a region",
    "roi.deleted": "Deleted a region",
    "roi.exported": "Exported regions",
    "roi.import_undone": "Undid an import",
    "roi.imported": "Imported regions",
    "roi.listed": "Listed regions",
    "roi.purged": "Deleted a region for good",
    "roi.saved": "Saved a region",
    "roi.viewed": "Looked at a region",
    "review.viewed": "Looked at the review queue",
    "search.asked": "Searched with something other than a region",
    "search.browsed": "Browsed regions",
    "search.explained": "Asked why a region was found",
    "search.judged": "Marked a search result",
    "search.label_confirmed": "Judged a region's label",
    "search.listed": "Listed searches",
    "search.made": "Searched for similar cases",
    "search.removed": "Removed a search",
    "share.accepted": "Accepted a shared case",
    "share.ended": "Ended the sharing of a case",
    "share.listed": "Listed shared cases",
    "share.offered": "Offered a case to another lab",
    "slide.stained": "Said how a slide is stained",
    "study.completed": "Blinding lifted: everything was handed in",
    "study.created": "Started a study",
    "study.decided": "Decided a disagreement between readers",
    "study.exported": "Exported the agreement of readers",
    "study.unblinded": "Unblinded a study",
    "study.viewed": "Looked at a study",
    "token.created": "Created an API token",
    "token.revoked": "Revoked an API token",
    "upload.begun": "Started to send a file",
    "upload.discarded": "Discarded a transfer",
    "upload.listed": "Looked at transfers",
    "upload.sent": "Sent a piece of a file",
    "video.played": "Played a video",
    "webhook.changed": "Changed a webhook",
    "webhook.created": "Created a webhook",
    "webhook.deleted": "Deleted a webhook",
    "webhook.disabled": "A webhook was switched off: its receiver failed",
    "webhook.pinged": "Sent a test message to a webhook",
    "webhook.replayed": "Had messages of a webhook sent again",
    "webhook.secret_changed": "Changed the secret of a webhook",
    "webhook.viewed": "Looked at webhooks",
    "work.viewed": "Looked at assigned work",
}


@dataclass(frozen=True, slots=True)
class Told:
    """How an event of ``portal.core.events`` reads as an entry.

    Attributes:
        key: payload key of the object's id.
        details: payload keys that are kept; their values name no patient.
        of_person: payload key of a person: where the event names no lab, each of their labs gets
            an entry.
    """

    kind: str
    key: str
    details: tuple[str, ...] = ()
    of_person: str = ""


_BIN = Told("item", "target_id", ("kind",))
_INVITATION = Told("invitation", "invitation", ("role",))
_LEARNING = Told("learning", "learning_id", ("method",))
_SHARE = Told("share", "share_id", ("owner", "with", "until"))
_FACTOR = Told("member", "user", ("kind",), of_person="user")
_ASSIGNMENT = Told("assignment", "assignment_id", ("person", "study"))
_HELD = Told("upload", "upload_id", ("code", "reason"))
EVENTS: Mapping[str, Told] = {
    "account.deactivated": Told("member", "user", of_person="user"),
    "account.factor_added": _FACTOR,
    "account.factor_failed": _FACTOR,
    "account.factor_removed": _FACTOR,
    "account.password_set": Told("member", "user", of_person="user"),
    "account.proven": Told("member", "user", ("removed",)),
    "assignment.changed": _ASSIGNMENT,
    "assignment.made": _ASSIGNMENT,
    "assignment.removed": _ASSIGNMENT,
    "assignment.reopened": _ASSIGNMENT,
    "assignment.submitted": _ASSIGNMENT,
    "bin.purged": _BIN,
    "bin.put": _BIN,
    "bin.restored": _BIN,
    "canvas.display_range_set": Told("canvas", "canvas_id", ("low", "high", "before")),
    "canvas.scaled": Told("canvas", "canvas_id", ("mpp_x", "mpp_y", "before")),
    "case.changed": Told("case", "case_id"),
    "case.created": Told("case", "case_id"),
    "case.imported": Told("case", "case_id", ("rows", "originals")),
    "case.taken_along": Told("case", "case_id"),
    "erasure.requested": Told("erasure", "erasure_id"),
    "encoder.switched": Told("encoder", "encoder_id"),
    "invitation.accepted": _INVITATION,
    "invitation.created": _INVITATION,
    "invitation.declined": _INVITATION,
    "invitation.renewed": _INVITATION,
    "invitation.revoked": _INVITATION,
    "intake_rules.changed": Told(
        "lab",
        "lab_id",
        (
            "takes_names_out",
            "must_be_clean",
            "titles_from_files",
            "text_in_pixels",
            "faces_in_pixels",
        ),
    ),
    "item.deidentified": Told("item", "item_id", ("item_kind", "removed")),
    "item.received": Told("item", "item_id", ("item_kind", "sha256")),
    "item.renamed": Told("item", "item_id", ("item_kind",)),
    "slide.stained": Told("slide", "slide_id"),
    "lab.created": Told("lab", "lab"),
    "label.deleted": Told("label", "label_id"),
    "label.merge_undone": Told("label", "label_id"),
    "label.merged": Told("label", "label_id", ("into",)),
    "label.saved": Told("label", "label_id", ("action",)),
    "label_version.published": Told("label_version", "label_version_id", ("number",)),
    "learning.asked": _LEARNING,
    "learning.promoted": _LEARNING,
    "learning.rolled_back": _LEARNING,
    "member.added": Told("member", "user", ("role",)),
    "member.removed": Told("member", "user", ("role",)),
    "member.role_changed": Told("member", "user", ("role",)),
    "properties.changed": Told("lab", "lab_id", ("keys",)),
    "quarantine.deleted": _HELD,
    "quarantine.put": _HELD,
    "quarantine.released": _HELD,
    "quarantine.retried": _HELD,
    "report.created": Told("report", "report_id"),
    "report.deleted": Told("report", "report_id"),
    "review_rules.changed": Told("lab", "lab_id", ("may_judge_own",)),
    "roi.commented": Told("roi", "roi_id", ("version",)),
    "roi.deleted": Told("roi", "roi_id", ("version",)),
    "roi.purged": Told("roi", "roi_id"),
    "roi.saved": Told("roi", "roi_id", ("version", "action")),
    "share.accepted": _SHARE,
    "share.ended": _SHARE,
    "share.offered": _SHARE,
    "study.completed": Told("study", "study_id", ("readings",)),
    "study.created": Told("study", "study_id", ("blind_until",)),
    "study.decided": Told("study", "study_id", ("choice", "count")),
    "study.unblinded": Told("study", "study_id", ("unfinished",)),
    "token.created": Told("token", "token", ("scope",), of_person="user"),
    "token.revoked": Told("token", "token", ("scope",), of_person="user"),
    "webhook.disabled": Told("webhook", "webhook_id", ("why",)),
}
NOT_NOTED = frozenset(
    {"mosaic.deleted"}
    | {
        "bin.purging",
        "followup.finished",
        "job.ended",
        "mosaic.failed",
        "mosaic.finished",
        "roi.embedded",
        "rois.saved_in_bulk",
    }
    | {"slide.ready", "video.ready"}
)
"""Work of the machine on what was asked for and noted, or part of what another event tells."""


def told(name: str) -> Told | None:
    """How to log an event; None if it does not belong in the log.

    One that nobody declared is noted by its name and the id it carries: forgetting loses nothing.
    """
    if name in NOT_NOTED:
        return None
    kind = name.partition(".")[0][:16]
    return EVENTS.get(name) or Told(kind, f"{kind}_id")
