"""What the audit log notes of each address: one line for each method of the URL table.

Writes are noted by their events, in their own transactions (``portal.audit.receivers``); here
are reads, downloads, and what was refused. Every address has its line, or is in ``NOTHING``: a test
compares this table with the URLs.
"""

from __future__ import annotations

from collections.abc import Mapping

from portal.config.auditing.watch import HOUR_S, ITEM, MINUTE_S, Watch
from portal.config.auditing.watch import told as _told
from portal.config.auditing.watched_dicom import DICOM
from portal.config.auditing.watched_search import SEARCHES

_CASE = Watch("case.viewed", "case", "case_id")
_CANVAS = Watch("canvas.read", "canvas", "pk", every_s=HOUR_S)
_IIIF = Watch("canvas.read", "canvas", "id", every_s=HOUR_S)
_MOSAIC = Watch("mosaic.viewed", "mosaic", "pk", every_s=HOUR_S)
_DOWNLOAD = Watch("mosaic.downloaded", "mosaic", "pk", every_s=MINUTE_S)
_HOOK = Watch("webhook.viewed", "webhook", "pk", every_s=MINUTE_S)
_ROI = Watch("roi.viewed", "roi", "pk", every_s=MINUTE_S)
_STUDY = Watch("study.viewed", "study", "study_id", every_s=MINUTE_S)

WATCHED: Mapping[str, Mapping[str, Watch]] = {
    "annotations:case_measurements": {"GET": Watch("roi.listed", "case", "case_id")},
    "annotations:measurements": {"GET": Watch("roi.listed", "canvas", "canvas_id")},
    "annotations:labels": {"POST": _told("label.saved")},
    "annotations:label_edit": {"POST": _told("label.saved", "label", "label_id")},
    "annotations:label_remove": {"POST": _told("label.deleted", "label", "label_id")},
    "annotations:properties": {"POST": _told("properties.changed")},
    "annotations:property_edit": {"POST": _told("properties.changed")},
    "api:assignment-detail": {
        "GET": Watch("work.viewed", "assignment", "pk", every_s=MINUTE_S),
        "PATCH": _told("assignment.changed", "assignment", "pk"),
        "DELETE": _told("assignment.removed", "assignment", "pk"),
    },
    "api:assignment-list": {
        "GET": Watch("work.viewed", every_s=HOUR_S),
        "POST": _told("assignment.made"),
    },
    "api:assignment-reopen": {"POST": _told("assignment.reopened", "assignment", "id")},
    "api:assignment-submit": {"POST": _told("assignment.submitted", "assignment", "id")},
    "api:audit-list": {"GET": Watch("audit.viewed", "lab")},
    "api:bin-detail": {"DELETE": _told("bin.purged")},
    "api:bin-list": {"GET": Watch("bin.viewed")},
    "api:bin-restore": {"POST": _told("bin.restored")},
    "api:canvas-annotations": {"GET": Watch("roi.exported", "canvas", "id", every_s=MINUTE_S)},
    "api:canvas-detail": {
        "GET": Watch("canvas.opened", "canvas", "pk"),
        "PATCH": _told("canvas.changed", "canvas", "pk"),
    },
    "api:canvas-filmstrip": {"GET": _CANVAS},
    "api:canvas-frame": {"GET": _CANVAS},
    "api:canvas-image": {"GET": _IIIF},
    "api:canvas-image-base": {"GET": _IIIF},
    "api:canvas-image-info": {"GET": Watch("canvas.opened", "canvas", "id", every_s=MINUTE_S)},
    "api:canvas-live": {
        "GET": Watch("canvas.read", "canvas", "id", every_s=HOUR_S, only_tokens=True)
    },
    "api:canvas-manifest": {"GET": Watch("canvas.opened", "canvas", "id", every_s=MINUTE_S)},
    "api:canvas-outline": {
        "POST": Watch("canvas.read", "canvas", "id", every_s=HOUR_S, only_tokens=True)
    },
    "api:canvas-roi-file": {
        "GET": Watch("roi.exported", "canvas", "id"),
        "POST": Watch("roi.imported", "canvas", "id"),
    },
    "api:canvas-thumbnail": {
        "GET": Watch("canvas.read", "canvas", "pk", every_s=HOUR_S, only_tokens=True)
    },
    "api:canvas-tile": {"GET": _CANVAS},
    "api:case-detail": {
        "GET": Watch("case.viewed", "case", "pk"),
        "PUT": _told("case.changed", "case", "pk"),
        "PATCH": _told("case.changed", "case", "pk"),
        "DELETE": _told("bin.put", "case", "pk"),
    },
    "api:case-list": {"GET": Watch("case.listed"), "POST": _told("case.created")},
    "api:case-export": {
        "GET": Watch("case.taken_along", "case", "id"),
        "POST": Watch("case.export_ordered", "case", "id"),
    },
    "api:case-fhir": {"GET": Watch("case.exported", "case", "id")},
    "api:case-manifest": {"GET": Watch("case.viewed", "case", "id")},
    "api:case-shares": {
        "GET": Watch("case.viewed", "case", "case_id"),
        "POST": _told("share.offered", "case", "case_id"),
    },
    "api:erasure-detail": {"GET": Watch("erasure.viewed", "erasure", "pk")},
    "api:erasure-list": {
        "GET": Watch("erasure.viewed"),
        "POST": _told("erasure.requested"),
    },
    "api:followup-detail": {"GET": Watch("followup.viewed", "followup", "pk", every_s=MINUTE_S)},
    "api:followup-list": {
        "GET": Watch("followup.listed"),
        "POST": Watch("followup.requested", "roi"),
    },
    "api:followup-picture": {"GET": Watch("followup.viewed", "followup", "pk", every_s=HOUR_S)},
    "api:intake-rules": {"PUT": _told("intake_rules.changed", "lab", "id")},
    "api:job-cancel": {"POST": Watch("job.cancelled", "job", "pk")},
    "api:job-cancel-many": {"POST": Watch("job.cancelled")},
    "api:job-retry": {"POST": Watch("job.retried", "job", "pk")},
    "api:label-detail": {
        "PATCH": _told("label.saved", "label", "pk"),
        "DELETE": _told("label.deleted", "label", "pk"),
    },
    "api:label-list": {"POST": _told("label.saved")},
    "api:label-merge": {"POST": _told("label.merged", "label", "pk")},
    "api:label-merge-undo": {"POST": _told("label.merge_undone")},
    "api:label-order": {"POST": _told("label.saved")},
    "api:label-properties": {"PUT": _told("properties.changed")},
    "api:label-version-list": {"POST": _told("label_version.published")},
    "api:mosaic-detail": {
        "GET": Watch("mosaic.viewed", "mosaic", "pk", every_s=MINUTE_S),
        "DELETE": _told("bin.put", "mosaic", "pk"),
    },
    "api:mosaic-frames": {"GET": _MOSAIC},
    "api:mosaic-frames-at-point": {"GET": _MOSAIC},
    "api:mosaic-image": {"GET": _DOWNLOAD},
    "api:mosaic-layer": {"GET": _MOSAIC},
    "api:mosaic-list": {
        "GET": Watch("mosaic.listed"),
        "POST": Watch("mosaic.requested", "video"),
    },
    "api:mosaic-manifest": {"GET": _DOWNLOAD},
    "api:mosaic-outlines": {"GET": _MOSAIC},
    "api:mosaic-preview": {"GET": _MOSAIC},
    "api:mosaic-projected-rois": {"GET": _MOSAIC},
    "api:mosaic-pyramid": {"GET": _DOWNLOAD},
    "api:mosaic-roi-frames": {"GET": _MOSAIC},
    "api:quarantine-detail": {
        "GET": Watch("intake.viewed", "upload", "pk", every_s=MINUTE_S),
        "DELETE": _told("quarantine.deleted", "upload", "pk"),
    },
    "api:quarantine-list": {"GET": Watch("intake.viewed", every_s=HOUR_S)},
    "api:quarantine-picture": {
        "GET": Watch("intake.viewed", "upload", "pk", every_s=MINUTE_S),
    },
    "api:quarantine-release": {"POST": _told("quarantine.released", "upload", "pk")},
    "api:quarantine-retry": {"POST": _told("quarantine.retried", "upload", "pk")},
    "api:review-list": {"GET": Watch("review.viewed", every_s=HOUR_S)},
    "api:review-rules": {"PUT": _told("review_rules.changed", "lab", "id")},
    "api:roi-bulk": {"POST": _told("roi.saved", "canvas")},
    "api:roi-detail": {
        "GET": _ROI,
        "PATCH": _told("roi.saved", "roi", "pk"),
        "DELETE": _told("roi.deleted", "roi", "pk"),
    },
    "api:roi-import": {"GET": Watch("roi.imported", "canvas", every_s=HOUR_S, only_tokens=True)},
    "api:roi-import-start": {"POST": Watch("roi.imported", "canvas")},
    "api:roi-import-table": {"GET": Watch("roi.imported", "canvas")},
    "api:roi-import-undo": {"POST": Watch("roi.import_undone", "canvas")},
    "api:roi-list": {
        "GET": Watch("roi.listed", "canvas", "?canvas", every_s=HOUR_S),
        "POST": _told("roi.saved"),
    },
    "api:roi-purge": {"POST": _told("roi.purged", "roi", "roi_id")},
    "api:roi-restore": {"POST": _told("roi.saved", "roi", "pk")},
    "api:roi-review": {"POST": _told("roi.saved")},
    "api:roi-revisions": {"GET": _ROI},
    "api:roi-thread": {
        "GET": Watch("roi.viewed", "roi", "id", every_s=MINUTE_S),
        "POST": _told("roi.commented", "roi", "id"),
    },
    "api:roi-track": {"POST": _told("roi.saved", "roi", "roi_id")},
    "api:study-agreement": {"GET": Watch("study.viewed", "study", "id", every_s=MINUTE_S)},
    "api:study-agreement-table": {"GET": Watch("study.exported", "study", "id")},
    "api:study-decide": {"POST": _told("study.decided", "study", "id")},
    "api:study-detail": {"GET": Watch("study.viewed", "study", "pk", every_s=MINUTE_S)},
    "api:study-findings": {"GET": Watch("study.viewed", "study", "id", every_s=MINUTE_S)},
    "api:study-list": {
        "GET": Watch("study.viewed", every_s=HOUR_S),
        "POST": _told("study.created"),
    },
    "api:study-unblind": {"POST": _told("study.unblinded", "study", "id")},
    "api:share-accept": {"POST": _told("share.accepted", "share", "pk")},
    "api:share-end": {"POST": _told("share.ended", "share", "pk")},
    "api:share-list": {"GET": Watch("share.listed")},
    "api:slide-detail": {
        "GET": Watch("item.viewed", "slide", "pk"),
        "PATCH": _told("item.renamed", "slide", "pk"),
        "DELETE": _told("bin.put", "slide", "pk"),
    },
    "api:slide-list": {"GET": Watch("item.listed"), "POST": _told("item.received")},
    "api:upload-detail": {
        "GET": Watch("upload.listed", "upload", "pk", every_s=HOUR_S),
        "PATCH": Watch("upload.sent", "upload", "pk", every_s=HOUR_S),
        "DELETE": Watch("upload.discarded", "upload", "pk"),
    },
    "api:upload-import": {"POST": Watch("case.import_ordered", "upload", "id")},
    "api:upload-list": {"GET": Watch("upload.listed"), "POST": Watch("upload.begun", "upload")},
    "api:video-detail": {
        "GET": Watch("item.viewed", "video", "pk"),
        "PATCH": _told("item.renamed", "video", "pk"),
        "DELETE": _told("bin.put", "video", "pk"),
    },
    "api:video-frames": {"GET": Watch("item.viewed", "video", "pk", every_s=HOUR_S)},
    "api:video-list": {"GET": Watch("item.listed"), "POST": _told("item.received")},
    "api:video-media": {"GET": Watch("video.played", "video", "pk", every_s=HOUR_S)},
    "api:webhook-deliveries": {"GET": _HOOK},
    "api:webhook-detail": {
        "GET": _HOOK,
        "PATCH": _told("webhook.changed", "webhook", "pk"),
        "DELETE": _told("webhook.deleted", "webhook", "pk"),
    },
    "api:webhook-list": {
        "GET": Watch("webhook.viewed", every_s=HOUR_S),
        "POST": _told("webhook.created"),
    },
    "api:webhook-ping": {"POST": _told("webhook.pinged", "webhook", "pk")},
    "api:webhook-replay": {"POST": _told("webhook.replayed", "webhook", "pk")},
    "api:webhook-replay-one": {"POST": _told("webhook.replayed", "webhook", "pk")},
    "api:webhook-secret": {"POST": _told("webhook.secret_changed", "webhook", "pk")},
    "archive:beside": {"GET": Watch("canvas.opened", "canvas", "canvas_id")},
    "archive:beside_choices": {
        "GET": Watch("canvas.listed", "canvas", "canvas_id", every_s=MINUTE_S)
    },
    "archive:case_delete": {"POST": _told("bin.put", "case", "case_id")},
    "archive:case_detail": {"GET": _CASE},
    "archive:case_edit": {"GET": _CASE, "POST": _told("case.changed", "case", "case_id")},
    "archive:case_list": {"GET": Watch("case.listed")},
    "archive:case_new": {"POST": _told("case.created")},
    "archive:case_shares": {"GET": _CASE, "POST": _told("share.offered", "case", "case_id")},
    "archive:case_upload": {"GET": _CASE, "POST": _told("item.received", "case", "case_id")},
    "archive:intake": {"GET": Watch("intake.viewed", every_s=HOUR_S)},
    "archive:intake_rules": {"POST": _told("intake_rules.changed")},
    "archive:item_card": {"GET": Watch("item.viewed", ITEM, "item_id", every_s=HOUR_S)},
    "archive:item_delete": {"POST": _told("bin.put", ITEM, "item_id")},
    "archive:item_rename": {"POST": _told("item.renamed", ITEM, "item_id")},
    "archive:item_retry": {"POST": Watch("item.retried", ITEM, "item_id")},
    "archive:lab_shares": {"GET": Watch("share.listed")},
    "archive:quarantine_delete": {"POST": _told("quarantine.deleted", "upload", "upload_id")},
    "archive:quarantine_release": {"POST": _told("quarantine.released", "upload", "upload_id")},
    "archive:quarantine_retry": {"POST": _told("quarantine.retried", "upload", "upload_id")},
    "archive:share_accept": {"POST": _told("share.accepted", "share", "share_id")},
    "archive:share_end": {"POST": _told("share.ended", "share", "share_id")},
    "archive:slide_stain": {"POST": _told("slide.stained", "slide", "slide_id")},
    "archive:viewer": {"GET": Watch("canvas.opened", "canvas", "canvas_id")},
    "audit:export": {"GET": Watch("audit.exported", "lab")},
    "audit:list": {"GET": Watch("audit.viewed", "lab")},
    "hooks:delete": {"POST": _told("webhook.deleted", "webhook", "webhook_id")},
    "hooks:edit": {
        "GET": Watch("webhook.viewed", "webhook", "webhook_id", every_s=MINUTE_S),
        "POST": _told("webhook.changed", "webhook", "webhook_id"),
    },
    "hooks:ping": {"POST": _told("webhook.pinged", "webhook", "webhook_id")},
    "hooks:replay": {"POST": _told("webhook.replayed", "webhook", "webhook_id")},
    "hooks:secret": {"POST": _told("webhook.secret_changed", "webhook", "webhook_id")},
    "hooks:switch": {"POST": _told("webhook.changed", "webhook", "webhook_id")},
    "hooks:webhook": {"GET": Watch("webhook.viewed", "webhook", "webhook_id", every_s=MINUTE_S)},
    "hooks:webhooks": {
        "GET": Watch("webhook.viewed", "lab", every_s=HOUR_S),
        "POST": _told("webhook.created"),
    },
    "jobs:cancel": {"POST": Watch("job.cancelled", "job", "job_id")},
    "jobs:cancel_many": {"POST": Watch("job.cancelled")},
    "jobs:retry": {"POST": Watch("job.retried", "job", "job_id")},
    "keeping:bin": {"GET": Watch("bin.viewed")},
    "keeping:bin_purge": {"POST": _told("bin.purged")},
    "keeping:bin_restore": {"POST": _told("bin.restored")},
    "exchange:case_import": {"POST": Watch("case.import_ordered", "upload", "upload_id")},
    "exchange:case_import_cancel": {"POST": Watch("job.cancelled", "upload", "upload_id")},
    "exchange:case_imports": {"GET": Watch("upload.listed", "lab", every_s=HOUR_S)},
    "exchange:case_export": {
        "GET": Watch("case.taken_along", "case", "case_id"),
        "POST": Watch("case.export_ordered", "case", "case_id"),
    },
    "keeping:erasure": {"GET": Watch("erasure.viewed", "erasure", "erasure_id")},
    "keeping:erasures": {
        "GET": Watch("erasure.viewed", "lab"),
        "POST": _told("erasure.requested", "lab"),
    },
    "keeping:roi_purge": {"POST": _told("roi.purged", "roi", "roi_id")},
    "keeping:roi_restore": {"POST": _told("roi.saved", "roi", "roi_id")},
    "mosaics:case_mosaics": {"GET": Watch("case.viewed", "case", "case_id", every_s=HOUR_S)},
    "mosaics:followup_detail": {
        "GET": Watch("followup.viewed", "followup", "followup_id", every_s=MINUTE_S)
    },
    "mosaics:followup_new": {
        "GET": Watch("roi.viewed", "roi", "roi_id"),
        "POST": Watch("followup.requested", "roi", "roi_id"),
    },
    "mosaics:mosaic_create": {"POST": Watch("mosaic.requested", "video", "video_id")},
    "mosaics:mosaic_delete": {"POST": _told("bin.put", "mosaic", "mosaic_id")},
    "mosaics:mosaic_detail": {
        "GET": Watch("mosaic.viewed", "mosaic", "mosaic_id", every_s=MINUTE_S)
    },
    "mosaics:video_mosaics": {"GET": Watch("item.viewed", "video", "video_id", every_s=MINUTE_S)},
    "reading:assign": {
        "GET": Watch("work.viewed", every_s=HOUR_S),
        "POST": _told("assignment.made"),
    },
    "reading:handed_out": {"GET": Watch("work.viewed", every_s=HOUR_S)},
    "reading:remove": {"POST": _told("assignment.removed", "assignment", "assignment_id")},
    "reading:reopen": {"POST": _told("assignment.reopened", "assignment", "assignment_id")},
    "reading:studies": {
        "GET": Watch("study.viewed", every_s=HOUR_S),
        "POST": _told("study.created"),
    },
    "reading:study": {"GET": _STUDY},
    "reading:study_assign": {
        "GET": _STUDY,
        "POST": _told("assignment.made", "study", "study_id"),
    },
    "reading:study_decide": {"POST": _told("study.decided", "study", "study_id")},
    "reading:study_findings": {"GET": _STUDY},
    "reading:study_table": {"GET": Watch("study.exported", "study", "study_id")},
    "reading:study_unblind": {"POST": _told("study.unblinded", "study", "study_id")},
    "reading:submit": {"POST": _told("assignment.submitted", "assignment", "assignment_id")},
    "reading:work": {"GET": Watch("work.viewed", every_s=HOUR_S)},
    "review:queue": {"GET": Watch("review.viewed", every_s=HOUR_S)},
    "review:rules": {"POST": _told("review_rules.changed")},
    **DICOM,
    **SEARCHES,
}
NOTHING = frozenset(
    # Without patients' data, or a redirect to a page that is noted, or a part of one.
    {"annotations:roi_open", "archive:slide_open", "archive:video_open", "archive:tile", "home"}
    | {"reading:work_next"}
    | {"account_inactive", "account_login", "account_logout", "account_reauthenticate"}
    | {"account_change_password", "account_reset_password", "account_reset_password_done"}
    | {"account_reset_password_from_key", "account_reset_password_from_key_done"}
    | {"account_set_password", "account_signup", "api-docs", "api-not-found", "api-schema"}
    | {"api:events"}  # ids and states, as webhooks tell them
    | {"api:audit-head", "api:encoder-detail", "api:encoder-list", "api:job-detail"}
    | {"api:job-list", "api:me", "api:mosaic-estimate", "api:token-detail", "api:token-list"}
    | {"healthz", "jobs:detail", "jobs:list", "labs:members", "metrics", "readyz"}
    | {"retrieval:embed", "retrieval:query_embed", "retrieval:query_picture"}
    | {"retrieval:report_picture", "retrieval:thumbnail"}
    # Noted by their events.
    | {"mfa_activate_totp", "mfa_add_webauthn", "mfa_authenticate", "mfa_deactivate_totp"}
    | {"mfa_generate_recovery_codes", "mfa_index", "mfa_list_webauthn", "mfa_login_webauthn"}
    | {"mfa_reauthenticate", "mfa_reauthenticate_webauthn", "mfa_remove_webauthn"}
    | {"mfa_view_recovery_codes", "openid_connect_callback", "openid_connect_login"}
    | {"labs:invitation", "labs:invitation_accept", "labs:invitation_decline"}
    | {"labs:invitation_open", "labs:invitation_renew", "labs:invitation_revoke", "labs:invite"}
    | {"api:invitation-detail", "api:invitation-list", "api:invitation-renew"}
    | {"api:member-detail", "api:member-list"}
    | {"labs:current_lab", "labs:link", "labs:link_ask", "labs:link_open", "labs:member_remove"}
    | {"labs:member_role", "labs:session_end", "labs:sessions", "labs:sessions_end"}
    | {"labs:program_remove", "labs:program_token", "labs:program_tokens_revoke"}
    | {"labs:programs", "labs:set_up"}
    | {"api:program-detail", "api:program-list", "api:program-tokens"}
    | {"labs:token_revoke", "labs:tokens"}
)
