"""Cases and what they hold: the archive, the trash, annotations."""

from __future__ import annotations

from collections.abc import Mapping

from tests.portal.access.actors import ACTORS
from tests.portal.access.rules.bodies import (
    bulk_details_body,
    bulk_shares_body,
    bulk_tags_body,
    case_body,
    clip_body,
    comment_body,
    erasure_body,
    erasure_order_body,
    features_body,
    intake_rules_body,
    label_body,
    label_in_body,
    label_merge_body,
    label_order_body,
    label_version_body,
    modality_body,
    outline_body,
    presence_body,
    property_types_body,
    redact_body,
    redact_form,
    release_body,
    review_body,
    review_rules_body,
    roi_body,
    roi_steps_body,
    share_body,
    slide_body,
    stain_body,
    template_body,
    tile_path,
    title_body,
    video_body,
    video_event_body,
    vocabulary_body,
    vocabulary_form,
)
from tests.portal.access.rules.kinds import BY_TOKEN, ROLES, Answer, Rule, page, rest

_SIGNED_OUT = ("anonymous", "deactivated", "deactivated_token", "unknown_token")
_TILE: dict[str, Answer] = dict.fromkeys(ACTORS, 404)
_TILE |= dict.fromkeys(_SIGNED_OUT, 403) | dict.fromkeys((*ROLES, *BY_TOKEN), 200)
_IF_MATCH = {"If-Match": '"1"'}
_TUS = {"Tus-Resumable": "1.0.0"}

RECORDS: Mapping[str, Mapping[str, Rule]] = {
    # --- archive ----------------------------------------------------------------------------------
    "archive:case_list": {"GET": page(elsewhere=200)},
    "archive:case_new": {
        "GET": page(at_least="annotator", elsewhere=200, removed=403),
        "POST": page(
            302,
            at_least="annotator",
            elsewhere=422,  # the lab is none of theirs
            removed=403,
            body=lambda scene: case_body(scene) | {"lab": scene.ids["labs"]},
        ),
    },
    "archive:case_detail": {"GET": page()},
    "archive:case_edit": {
        "GET": page(at_least="annotator"),
        "POST": page(302, at_least="annotator", body=case_body),
    },
    "archive:case_delete": {"POST": page(302, at_least="annotator")},  # says what it holds
    "archive:case_upload": {
        "GET": page(at_least="annotator"),
        "POST": page(
            302, at_least="annotator", body=lambda scene: {"file": slide_body(scene)["file"]}
        ),
    },
    "archive:item_card": {"GET": page()},
    "archive:item_retry": {"POST": page(302, at_least="annotator")},
    "archive:item_rename": {"POST": page(302, at_least="annotator", body=title_body)},
    "archive:item_delete": {"POST": page(302, at_least="annotator")},
    "archive:slide_open": {"GET": page(302)},
    "archive:case_modality": {"POST": page(302, at_least="annotator", body=modality_body)},
    "archive:slide_stain": {"POST": page(302, at_least="annotator", body=stain_body)},
    "archive:video_open": {"GET": page(302)},
    "archive:viewer": {"GET": page()},
    "archive:tray": {"GET": page()},
    "archive:compare": {"GET": page()},
    "archive:compare_choices": {"GET": page()},
    "archive:tile": {"GET": Rule(_TILE, path=tile_path)},
    "api:case-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(
            201,
            at_least="annotator",
            writes=True,
            body=lambda scene: case_body(scene) | {"lab": scene.ids["labs"]},
        ),
    },
    "api:case-detail": {
        "GET": rest(),
        "PUT": rest(at_least="annotator", writes=True, body=case_body),
        "PATCH": rest(at_least="annotator", writes=True, body=lambda scene: {"organ": "colon"}),
        "DELETE": rest(409, at_least="annotator", writes=True),  # its mosaic is being built
    },
    "api:case-bulk-tags": {  # the result for each case is in the answer
        "POST": rest(elsewhere=200, removed=200, writes=True, body=bulk_tags_body),
    },
    "api:case-bulk-details": {
        "POST": rest(elsewhere=200, removed=200, writes=True, body=bulk_details_body),
    },
    "api:case-bulk-export": {
        "POST": rest(
            202,
            at_least="manager",
            writes=True,
            body=lambda scene: {"cases": [scene.ids["cases"]]},
        ),
    },
    "api:case-bulk-export-file": {"GET": rest(404)},  # the job is of another kind
    "interop:cases_export": {"GET": page(404)},  # the job is of another kind
    "api:case-bulk-shares": {
        "POST": rest(
            at_least="manager", elsewhere=200, removed=403, writes=True, body=bulk_shares_body
        ),
    },
    "api:slide-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(200, at_least="annotator", writes=True, body=slide_body),  # there already
    },
    "api:slide-detail": {
        "GET": rest(),
        "PATCH": rest(at_least="annotator", writes=True, body=title_body),
        "DELETE": rest(204, at_least="annotator", writes=True),
    },
    "api:upload-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(400, writes=True, elsewhere=400, headers=_TUS),  # which case, it does not say
    },
    "api:upload-detail": {
        "GET": rest(),
        "PATCH": rest(415, at_least="annotator", writes=True, headers=_TUS),  # JSON is no piece
        "DELETE": rest(204, at_least="annotator", writes=True, headers=_TUS),
    },
    "api:upload-import": {
        "POST": rest(409, at_least="manager", writes=True),  # a file of a case is no crate
    },
    "api:video-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(200, at_least="annotator", writes=True, body=video_body),  # there already
    },
    "api:video-detail": {
        "GET": rest(),
        "PATCH": rest(at_least="annotator", writes=True, body=title_body),
        "DELETE": rest(409, at_least="annotator", writes=True),  # its mosaic is being built
    },
    "api:video-frames": {"GET": rest()},
    "api:video-clip": {
        "GET": rest(404, body=clip_body),  # none is written yet
        "POST": rest(202, writes=True, body=clip_body),
    },
    "api:video-media": {"GET": rest()},
    "api:canvas-detail": {
        "GET": rest(),
        "PATCH": rest(  # its file names the pixel size
            409, at_least="annotator", writes=True, body=lambda scene: {"mpp_x": 0.25}
        ),
    },
    "api:canvas-annotations": {"GET": rest()},
    "api:canvas-image": {"GET": rest()},
    "api:canvas-image-base": {"GET": rest(303)},
    "api:canvas-image-info": {"GET": rest()},
    "api:canvas-manifest": {"GET": rest()},
    "api:case-export": {
        "GET": rest(404, at_least="manager"),  # none is written yet
        "POST": rest(202, at_least="manager", writes=True),
    },
    "interop:case_import": {"POST": page(302, at_least="manager")},
    "interop:case_import_cancel": {"POST": page(302, at_least="manager")},
    "interop:case_imports": {"GET": page(at_least="manager", elsewhere=200, removed=403)},
    "interop:case_export": {
        "GET": page(404, at_least="manager"),
        "POST": page(302, at_least="manager"),
    },
    "api:case-fhir": {"GET": rest()},
    "api:case-manifest": {"GET": rest()},
    "api:canvas-tile": {"GET": rest()},
    "api:canvas-thumbnail": {"GET": rest()},
    "api:canvas-frame": {"GET": rest()},
    "api:canvas-filmstrip": {"GET": rest()},
    "archive:intake": {"GET": page(at_least="manager", elsewhere=200, removed=404)},  # one's own
    "archive:intake_rules": {"POST": page(302, at_least="manager", elsewhere=302, removed=404)},
    "archive:original_delete": {"POST": page(302, at_least="manager")},
    "archive:quarantine_delete": {"POST": page(302, at_least="manager")},
    "archive:quarantine_redact": {
        "GET": page(at_least="manager"),
        "POST": page(302, at_least="manager", body=redact_form),
    },
    "archive:quarantine_release": {"POST": page(302, at_least="manager", body=release_body)},
    "archive:quarantine_retry": {"POST": page(302, at_least="manager")},
    "archive:vocabulary": {
        "GET": page(at_least="manager", elsewhere=200, removed=404),  # one's own
        "POST": page(302, at_least="manager", elsewhere=302, removed=404, body=vocabulary_form),
    },
    "archive:vocabulary_remove": {
        "POST": page(
            302,
            at_least="manager",
            elsewhere=302,
            removed=404,
            body=lambda scene: {"term": scene.ids["vocabulary"]},
        ),
    },
    "api:vocabulary-list": {"GET": rest(elsewhere=200)},
    "api:vocabulary-detail": {"DELETE": rest(204, at_least="manager", writes=True)},
    "api:vocabulary-file": {"GET": rest(elsewhere=200)},
    "api:vocabulary-load": {
        "POST": rest(
            at_least="manager", elsewhere=200, removed=403, writes=True, body=vocabulary_body
        ),
    },
    "api:vocabulary-remove": {
        "POST": rest(
            at_least="manager",
            writes=True,
            body=lambda scene: {"lab": scene.ids["labs"], "terms": [scene.ids["vocabulary"]]},
        ),
    },
    "api:intake-rules": {
        "GET": rest(),
        "PUT": rest(at_least="manager", writes=True, body=intake_rules_body),
    },
    "archive:template_apply": {"POST": page(302, at_least="manager")},
    "archive:template_delete": {"POST": page(302, at_least="manager")},
    "api:redaction-template-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(201, at_least="manager", writes=True, body=template_body),
    },
    "api:redaction-template-detail": {"DELETE": rest(204, at_least="manager", writes=True)},
    "api:redaction-template-apply": {"POST": rest(202, at_least="manager", writes=True)},
    "api:quarantine-list": {"GET": rest(elsewhere=200)},
    "api:quarantine-detail": {
        "GET": rest(at_least="manager"),
        "DELETE": rest(204, at_least="manager", writes=True),
    },
    "api:original-list": {"GET": rest(elsewhere=200)},
    "api:original-detail": {"DELETE": rest(204, at_least="manager", writes=True)},
    "api:original-file": {"GET": rest(at_least="manager")},
    "api:quarantine-frame": {"GET": rest(at_least="manager")},
    "api:quarantine-picture": {"GET": rest(at_least="manager")},
    "api:quarantine-redact": {"POST": rest(202, at_least="manager", writes=True, body=redact_body)},
    "api:quarantine-release": {
        "POST": rest(202, at_least="manager", writes=True, body=release_body)
    },
    "api:quarantine-retry": {"POST": rest(202, at_least="manager", writes=True)},
    "archive:case_shares": {
        "GET": page(at_least="manager"),
        "POST": page(302, at_least="manager", body=share_body),
    },
    "archive:lab_shares": {"GET": page(elsewhere=200, removed=404)},  # of one's own lab
    "archive:share_accept": {"POST": page(403)},  # that takes a manager of the other lab
    "archive:share_end": {"POST": page(302, at_least="manager")},
    "api:case-shares": {
        "GET": rest(),
        "POST": rest(201, at_least="manager", writes=True, body=share_body),
    },
    "api:share-list": {"GET": rest(elsewhere=200)},
    "api:share-accept": {"POST": rest(403, writes=True)},
    "api:share-end": {"POST": rest(at_least="manager", writes=True)},
    # --- trash and erasure ------------------------------------------------------------------------
    "archive:trash": {"GET": page(at_least="annotator", elsewhere=200, removed=404)},  # one's own
    "annotations:trash": {"GET": page(at_least="annotator", elsewhere=200, removed=404)},
    "archive:trash_restore": {"POST": page(302, at_least="annotator")},
    "archive:trash_purge": {"POST": page(302, at_least="manager")},
    "annotations:roi_restore": {"POST": page(302, at_least="annotator")},
    "annotations:roi_purge": {"POST": page(302, at_least="manager")},
    "annotations:trash_events": {"GET": page(at_least="annotator", elsewhere=200, removed=404)},
    "annotations:video_event_restore": {"POST": page(302, at_least="annotator")},
    "annotations:video_event_purge": {"POST": page(302, at_least="manager")},
    "erasure:erasures": {
        "GET": page(at_least="manager", elsewhere=200, removed=404),  # of one's own lab
        "POST": page(at_least="manager", elsewhere=422, removed=404, body=erasure_body),
    },
    "erasure:erasure": {"GET": page(at_least="manager")},
    "api:erasure-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(202, at_least="manager", writes=True, body=erasure_order_body),
    },
    "api:erasure-detail": {"GET": rest(at_least="manager")},
    "api:roi-purge": {"POST": rest(204, at_least="manager", writes=True)},
    "api:video-event-purge": {"POST": rest(204, at_least="manager", writes=True)},
    "api:trash-list": {"GET": rest(elsewhere=200)},
    "api:trash-detail": {"DELETE": rest(204, at_least="manager", writes=True)},
    "api:trash-restore": {"POST": rest(204, at_least="annotator", writes=True)},
    # --- annotations ------------------------------------------------------------------------------
    "annotations:roi_open": {"GET": page(302)},
    "annotations:measurements": {"GET": page()},
    "annotations:case_measurements": {"GET": page()},
    "annotations:labels": {
        "GET": page(elsewhere=200, removed=404),  # of one's own lab
        "POST": page(302, at_least="manager", elsewhere=302, removed=404, body=label_body),
    },
    "annotations:properties": {
        "GET": page(elsewhere=200, removed=404),  # of one's own lab
        "POST": page(400, at_least="manager", elsewhere=400, removed=404),
    },
    "annotations:property_edit": {
        "POST": page(302, at_least="manager", elsewhere=302, removed=404),
    },
    "annotations:label_edit": {"POST": page(302, at_least="manager", body=label_body)},
    "annotations:label_remove": {"POST": page(302, at_least="manager")},
    "api:canvas-roi-file": {
        "GET": rest(),
        "POST": rest(at_least="annotator", writes=True, body=features_body),
    },
    "api:canvas-outline": {"POST": rest(at_least="annotator", writes=True, body=outline_body)},
    "api:roi-import": {"GET": rest()},
    "api:roi-import-start": {  # nothing is kept of it
        "POST": rest(409, at_least="annotator", writes=True, body=lambda scene: {})
    },
    "api:roi-import-table": {"GET": rest(404)},
    "api:roi-import-undo": {"POST": rest(at_least="annotator", writes=True)},
    "api:roi-bulk": {"POST": rest(at_least="annotator", writes=True, body=roi_steps_body)},
    "api:roi-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(201, at_least="annotator", writes=True, body=roi_body),
    },
    "api:roi-detail": {
        "GET": rest(),
        "PATCH": rest(
            at_least="annotator",
            writes=True,
            headers=_IF_MATCH,
            body=lambda scene: {"name": "named"},
        ),
        "DELETE": rest(204, at_least="annotator", writes=True, headers=_IF_MATCH),
    },
    "api:roi-restore": {"POST": rest(at_least="annotator", writes=True)},
    "api:roi-revisions": {"GET": rest()},
    "api:video-event-list": {
        "GET": rest(body=lambda scene: {"canvas": scene.ids["video_canvases"]}),
        "POST": rest(201, at_least="annotator", writes=True, body=video_event_body),
    },
    "api:video-event-names": {
        "GET": rest(body=lambda scene: {"canvas": scene.ids["video_canvases"]}),
    },
    "api:video-event-detail": {
        "GET": rest(),
        "PATCH": rest(
            at_least="annotator",
            writes=True,
            headers=_IF_MATCH,
            body=lambda scene: {"name": "named"},
        ),
        "DELETE": rest(204, at_least="annotator", writes=True, headers=_IF_MATCH),
    },
    "api:video-event-restore": {"POST": rest(at_least="annotator", writes=True)},
    "api:video-event-revisions": {"GET": rest()},
    # --- review -----------------------------------------------------------------------------------
    "review:queue": {"GET": page(elsewhere=200, removed=200)},  # of one's own labs
    "review:rules": {"POST": page(302, at_least="manager", elsewhere=302, removed=404)},
    "api:canvas-live": {
        # Later changes come with their ROI, whenever it is requested.
        "GET": rest(body=lambda scene: {"since": "2020-01-01T00:00:00Z"}),
        "PUT": rest(204, writes=True, body=presence_body),
        "DELETE": rest(204, writes=True, body=presence_body),
    },
    "api:review-list": {"GET": rest(elsewhere=200, removed=200)},
    "api:review-rules": {
        "GET": rest(),
        "PUT": rest(at_least="manager", writes=True, body=review_rules_body),
    },
    "api:roi-review": {  # what becomes of each is in the answer
        "POST": rest(elsewhere=200, removed=200, writes=True, body=review_body),
    },
    "api:roi-thread": {
        "GET": rest(),
        "POST": rest(201, at_least="annotator", writes=True, body=comment_body),
    },
    "api:label-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(201, at_least="manager", writes=True, body=label_in_body),
    },
    "api:label-order": {  # of one's own lab
        "POST": rest(at_least="manager", writes=True, body=label_order_body),
    },
    "api:label-properties": {  # of one's own lab
        "GET": rest(elsewhere=200, removed=403),
        "PUT": rest(at_least="manager", writes=True, body=property_types_body),
    },
    "api:label-merge": {"POST": rest(at_least="manager", writes=True, body=label_merge_body)},
    "api:label-merge-undo": {"POST": rest(at_least="manager", writes=True)},
    "api:label-version-list": {
        "GET": rest(elsewhere=200, removed=200),
        "POST": rest(201, at_least="manager", writes=True, body=label_version_body),
    },
    "api:label-detail": {
        "GET": rest(),
        "PATCH": rest(at_least="manager", writes=True, body=label_body),
        "DELETE": rest(409, at_least="manager", writes=True),  # it is in use
    },
}
