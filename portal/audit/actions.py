"""Actions of the audit log, and the log rules of other apps' events."""

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
    "assignment.made": "Assigned an image",
    "assignment.removed": "Withdrew an assignment",
    "assignment.reopened": "Returned an assignment",
    "assignment.submitted": "Handed in an assignment",
    "audit.exported": "Exported the audit log",
    "audit.viewed": "Looked at the audit log",
    "trash.purged": "Deleted for good",
    "trash.put": "Moved to the trash",
    "trash.restored": "Restored from the trash",
    "trash.viewed": "Looked into the trash",
    "canvas.exported": "Exported a slide as DICOM",
    "canvas.listed": "Listed the images of a case, or those to compare with",
    "canvas.opened": "Opened in the viewer",
    "canvas.read": "Read pixels or regions",
    "canvas.changed": "Changed the pixel size, display range or modality of an image",
    "canvas.display_range_set": "Set the display range of an image",
    "canvas.modality_set": "Set the modality of an image",
    "canvas.scaled": "Set the pixel size of an image",
    "case.changed": "Changed a case",
    "case.created": "Created a case",
    "case.export_requested": "Requested the export of a whole case",
    "case.exported": "Exported a case as FHIR",
    "case.import_requested": "Requested the import of a whole case",
    "case.imported": "Imported a whole case",
    "case.listed": "Listed or searched cases",
    "case.downloaded": "Downloaded a whole case",
    "case.modality_set": "Set the modality of a case and its images",
    "case.viewed": "Looked at a case",
    "erasure.requested": "Requested an erasure",
    "erasure.viewed": "Looked at erasures",
    "encoder.switched": "Switched the encoder",
    "followup.listed": "Listed follow-ups",
    "followup.requested": "Requested a follow-up",
    "followup.viewed": "Looked at a follow-up",
    "invitation.accepted": "Accepted an invitation",
    "invitation.created": "Invited somebody",
    "invitation.declined": "Declined an invitation",
    "invitation.renewed": "Invited somebody again",
    "invitation.revoked": "Revoked an invitation",
    "inbox.viewed": "Looked at the inbox",
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
    "learning.promoted": "Put what was learned into use",
    "learning.requested": "Started to learn from the archive",
    "learning.rolled_back": "Took what was learned out of use",
    "learning.viewed": "Looked at what was learned from the archive",
    "member.added": "Added a member",
    "member.removed": "Removed a member",
    "member.role_changed": "Changed a role",
    "mosaic.downloaded": "Downloaded a mosaic",
    "mosaic.listed": "Listed mosaics",
    "mosaic.requested": "Requested a mosaic",
    "mosaic.viewed": "Looked at a mosaic",
    "properties.changed": "Changed which properties regions have",
    "original.deleted": "Deleted the original of a redacted file",
    "original.downloaded": "Downloaded the original of a redacted file",
    "quarantine.deleted": "Deleted a file in quarantine",
    "quarantine.put": "Put a file into quarantine",
    "quarantine.redacted": "Redacted a file in quarantine",
    "quarantine.released": "Released a file from quarantine",
    "quarantine.retried": "Tried a file in quarantine again",
    "quantification_settings.changed": "Changed the thresholds of measurements",
    "report.created": "Created a report of a search",
    "report.deleted": "Deleted a report",
    "report.downloaded": "Downloaded a report",
    "report.interpreted": "Changed the interpretation of a report",
    "report.listed": "Listed reports",
    "report.repeated": "Repeated the search of a report",
    "report.viewed": "Looked at a report",
    "review_rules.changed": "Changed how the lab reviews",
    "roi.commented": "Commented on a region",
    "roi.deleted": "Deleted a region",
    "roi.exported": "Exported regions",
    "roi.import_undone": "Undid an import",
    "roi.imported": "Imported regions",
    "roi.listed": "Listed regions",
    "roi.purged": "Deleted a region for good",
    "roi.quantified": "Measured a region",
    "roi.saved": "Saved a region",
    "roi.viewed": "Looked at a region",
    "review.viewed": "Looked at the review queue",
    "search.browsed": "Browsed regions",
    "search.explained": "Asked why a region was found",
    "search.judged": "Marked a search result",
    "search.label_confirmed": "Judged a region's label",
    "search.listed": "Listed searches",
    "search.made": "Searched for similar cases",
    "search.removed": "Removed a search",
    "search.requested": "Searched with something other than a region",
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
    "video.clip_downloaded": "Downloaded a clip of a video",
    "video.clip_requested": "Requested a clip of a video",
    "video.played": "Played a video",
    "video_event.deleted": "Deleted an event of a video",
    "video_event.listed": "Listed the events of a video",
    "video_event.purged": "Deleted an event of a video for good",
    "video_event.saved": "Saved an event of a video",
    "video_event.viewed": "Looked at an event of a video",
    "webhook.changed": "Changed a webhook",
    "webhook.created": "Created a webhook",
    "webhook.deleted": "Deleted a webhook",
    "webhook.disabled": "A webhook was switched off: its receiver failed",
    "webhook.pinged": "Sent a test message to a webhook",
    "webhook.replayed": "Had messages of a webhook sent again",
    "redaction_template.deleted": "Deleted a redaction template",
    "redaction_template.saved": "Saved a redaction template",
    "vocabulary.deleted": "Deleted terms of the vocabulary",
    "vocabulary.imported": "Imported a vocabulary",
    "webhook.secret_changed": "Changed the secret of a webhook",
    "webhook.viewed": "Looked at webhooks",
    "work.viewed": "Looked at assigned work",
}


@dataclass(frozen=True, slots=True)
class EventRule:
    """Mapping of an event of ``portal.core.events`` to a log entry.

    Attributes:
        key: Payload key of the object's id.
        details: Payload keys to log; their values identify no patient.
        of_person: Payload key of a user: if the event names no lab, an entry is written for each of
            the user's labs.
        unless: Payload key of events that are not logged because another entry covers them.
    """

    kind: str
    key: str
    details: tuple[str, ...] = ()
    of_person: str = ""
    unless: str = ""


_TRASH = EventRule("item", "target_id", ("kind",))
_INVITATION = EventRule("invitation", "invitation", ("role",))
_LEARNING = EventRule("learning", "learning_id", ("method",))
_SHARE = EventRule("share", "share_id", ("owner", "with", "until"))
_FACTOR = EventRule("member", "user", ("kind",), of_person="user")
_ASSIGNMENT = EventRule("assignment", "assignment_id", ("person", "study"))
_HELD = EventRule("upload", "upload_id", ("code", "reason"))
EVENTS: Mapping[str, EventRule] = {
    "account.deactivated": EventRule("member", "user", of_person="user"),
    "account.factor_added": _FACTOR,
    "account.factor_failed": _FACTOR,
    "account.factor_removed": _FACTOR,
    "account.password_set": EventRule("member", "user", of_person="user"),
    "account.proven": EventRule("member", "user", ("removed",)),
    "assignment.changed": _ASSIGNMENT,
    "assignment.made": _ASSIGNMENT,
    "assignment.removed": _ASSIGNMENT,
    "assignment.reopened": _ASSIGNMENT,
    "assignment.submitted": _ASSIGNMENT,
    "trash.purged": _TRASH,
    "trash.put": _TRASH,
    "trash.restored": _TRASH,
    "canvas.display_range_set": EventRule("canvas", "canvas_id", ("low", "high", "before")),
    "canvas.modality_set": EventRule(
        "canvas", "canvas_id", ("modality", "before"), unless="is_of_case"
    ),
    "canvas.scaled": EventRule("canvas", "canvas_id", ("mpp_x", "mpp_y", "before")),
    "case.changed": EventRule("case", "case_id"),
    "case.created": EventRule("case", "case_id"),
    "case.modality_set": EventRule("case", "case_id", ("modality", "before")),
    "case.imported": EventRule("case", "case_id", ("rows", "originals")),
    "case.downloaded": EventRule("case", "case_id"),
    "erasure.requested": EventRule("erasure", "erasure_id"),
    "encoder.switched": EventRule("encoder", "encoder_id"),
    "invitation.accepted": _INVITATION,
    "invitation.created": _INVITATION,
    "invitation.declined": _INVITATION,
    "invitation.renewed": _INVITATION,
    "invitation.revoked": _INVITATION,
    "intake_rules.changed": EventRule(
        "lab",
        "lab_id",
        (
            "takes_names_out",
            "must_be_clean",
            "titles_from_files",
            "identifying_text",
            "other_text",
            "faces",
            "ignored_words",
            "keeps_originals",
        ),
    ),
    "item.deidentified": EventRule("item", "item_id", ("item_kind", "removed")),
    "item.received": EventRule("item", "item_id", ("item_kind", "sha256")),
    "item.renamed": EventRule("item", "item_id", ("item_kind",)),
    "slide.stained": EventRule("slide", "slide_id"),
    "lab.created": EventRule("lab", "lab"),
    "label.deleted": EventRule("label", "label_id"),
    "label.merge_undone": EventRule("label", "label_id"),
    "label.merged": EventRule("label", "label_id", ("into",)),
    "label.saved": EventRule("label", "label_id", ("action",)),
    "label_version.published": EventRule("label_version", "label_version_id", ("number",)),
    "learning.requested": _LEARNING,
    "learning.promoted": _LEARNING,
    "learning.rolled_back": _LEARNING,
    "member.added": EventRule("member", "user", ("role",)),
    "member.removed": EventRule("member", "user", ("role",)),
    "member.role_changed": EventRule("member", "user", ("role",)),
    "properties.changed": EventRule("lab", "lab_id", ("keys",)),
    "original.deleted": _HELD,
    "quarantine.deleted": _HELD,
    "quarantine.put": _HELD,
    "quarantine.redacted": EventRule("upload", "upload_id", ("boxes", "template")),
    "quarantine.released": _HELD,
    "quarantine.retried": _HELD,
    "quantification_settings.changed": EventRule(
        "lab", "lab_id", ("weak_od", "moderate_od", "strong_od", "nucleus_od")
    ),
    "report.created": EventRule("report", "report_id"),
    "report.deleted": EventRule("report", "report_id"),
    "report.interpreted": EventRule("report", "report_id", ("version",)),
    "review_rules.changed": EventRule("lab", "lab_id", ("may_judge_own",)),
    "roi.commented": EventRule("roi", "roi_id", ("version",)),
    "roi.deleted": EventRule("roi", "roi_id", ("version",)),
    "roi.purged": EventRule("roi", "roi_id"),
    "roi.saved": EventRule("roi", "roi_id", ("version", "action")),
    "share.accepted": _SHARE,
    "share.ended": _SHARE,
    "share.offered": _SHARE,
    "study.completed": EventRule("study", "study_id", ("readings",)),
    "study.created": EventRule("study", "study_id", ("blind_until",)),
    "study.decided": EventRule("study", "study_id", ("choice", "count")),
    "study.unblinded": EventRule("study", "study_id", ("unfinished",)),
    "token.created": EventRule("token", "token", ("scope",), of_person="user"),
    "token.revoked": EventRule("token", "token", ("scope",), of_person="user"),
    "video_event.deleted": EventRule("video_event", "video_event_id", ("version",)),
    "video_event.purged": EventRule("video_event", "video_event_id"),
    "video_event.saved": EventRule("video_event", "video_event_id", ("version", "action")),
    "redaction_template.deleted": EventRule("template", "template_id"),
    "redaction_template.saved": EventRule("template", "template_id", ("boxes",)),
    "vocabulary.deleted": EventRule("lab", "lab_id", ("count",)),
    "vocabulary.imported": EventRule("lab", "lab_id", ("added", "changed")),
    "webhook.changed": EventRule("webhook", "webhook_id"),
    "webhook.created": EventRule("webhook", "webhook_id"),
    "webhook.deleted": EventRule("webhook", "webhook_id"),
    "webhook.disabled": EventRule("webhook", "webhook_id", ("reason",)),
    "webhook.pinged": EventRule("webhook", "webhook_id"),
    "webhook.replayed": EventRule("webhook", "webhook_id"),
    "webhook.secret_changed": EventRule("webhook", "webhook_id"),
}
NOT_NOTED = frozenset(
    {"mosaic.deleted"}
    | {
        "trash.purging",
        "followup.finished",
        "job.ended",
        "mosaic.failed",
        "mosaic.finished",
        "roi.embedded",
        "rois.saved_in_bulk",
    }
    | {"slide.ready", "video.ready"}
)
"""Events that are not logged: results of requests that are logged themselves, or parts of other
events."""


def event_rule(name: str) -> EventRule | None:
    """Log rule of an event; None if it is not logged.

    An event without a rule is logged by its name and the id it carries.
    """
    if name in NOT_NOTED:
        return None
    kind = name.partition(".")[0][:16]
    return EVENTS.get(name) or EventRule(kind, f"{kind}_id")
