"""Rules for jobs, searches, maps, trained models and mosaics."""

from __future__ import annotations

from collections.abc import Mapping

from tests.portal.access.rules.bodies import (
    followup_body,
    judgement_body,
    query_body,
    thresholds_body,
)
from tests.portal.access.rules.kinds import Rule, page, rest

WORK: Mapping[str, Mapping[str, Rule]] = {
    # --- jobs -------------------------------------------------------------------------------------
    "jobs:list": {"GET": page(elsewhere=200)},
    "jobs:detail": {"GET": page()},
    "jobs:cancel": {"POST": page(409, at_least="manager")},  # or its owner; it has ended
    "jobs:cancel_many": {"POST": page(302, elsewhere=302)},  # nothing is ticked
    "jobs:retry": {"POST": page(409, at_least="annotator")},  # it succeeded
    "api:events": {"GET": rest(elsewhere=200)},
    "api:job-list": {"GET": rest(elsewhere=200)},
    "api:job-detail": {"GET": rest()},
    "api:job-cancel-many": {  # elsewhere nothing waits that could be cancelled
        "POST": rest(
            202,
            at_least="annotator",
            elsewhere=400,
            writes=True,
            body=lambda scene: {"state": "queued"},
        )
    },
    "api:job-cancel": {"POST": rest(409, at_least="manager", writes=True)},
    "api:job-retry": {"POST": rest(409, at_least="annotator", writes=True)},
    # --- search, explore, model_training ----------------------------------------------------------
    "search:similar": {"GET": page()},
    "search:explanation": {"GET": page(), "POST": page(302)},  # it has no vector: the page says so
    "search:query_explanation": {"GET": page(), "POST": page(302)},
    "api:roi-explanation": {"GET": rest(409)},
    "api:query-explanation": {"GET": rest(409)},
    "search:judge": {"POST": page(400, at_least="annotator", body=judgement_body)},  # itself
    "search:embed": {"POST": page(302, at_least="annotator")},
    "search:thumbnail": {"GET": page()},
    "api:search": {"POST": rest(202, body=lambda scene: {"roi": scene.ids["rois"]})},  # reads
    "api:roi-similar": {"GET": rest(202)},
    "api:roi-similar-regions": {"GET": rest(202)},
    "api:roi-judgements": {
        "GET": rest(),
        "POST": rest(400, at_least="annotator", writes=True, body=judgement_body),  # itself
    },
    "api:roi-judgement": {"DELETE": rest(400, at_least="annotator", writes=True)},  # itself
    "search:queries": {"GET": page(elsewhere=200)},
    "search:query": {"GET": page()},
    "search:query_ask": {"POST": page(302, body=query_body)},
    "search:query_new_picture": {"GET": page(elsewhere=200), "POST": page(elsewhere=200)},
    "search:query_embed": {"POST": page(302, at_least="annotator")},  # or who asked
    "search:query_mark": {"POST": page(302, at_least="manager", body=judgement_body)},
    "search:query_remove": {"POST": page(302, at_least="manager")},
    "search:query_picture": {"GET": page()},
    "explore:browse": {"GET": page(elsewhere=200, removed=404)},
    "explore:browse_duplicates": {"GET": page(elsewhere=200, removed=404)},
    "explore:browse_unlike": {"GET": page(elsewhere=200, removed=404)},
    "explore:browse_unannotated": {"GET": page(elsewhere=200, removed=404)},
    "explore:browse_draw": {  # of one's own lab
        "POST": page(302, at_least="annotator", elsewhere=302, removed=404)
    },
    "explore:browse_label": {"POST": page(302, at_least="annotator")},
    "explore:look_through": {"POST": page(302, at_least="annotator")},
    "api:map-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(  # nothing is embedded
            409, at_least="annotator", writes=True, elsewhere=409, removed=403
        ),
    },
    "api:map-detail": {"GET": rest()},
    "api:map-points": {"GET": rest()},
    "api:map-near-duplicates": {"GET": rest()},
    "api:map-unlike": {"GET": rest()},
    "api:unannotated": {"GET": rest(elsewhere=200, removed=403)},
    "api:canvas-look-through": {"POST": rest(409, at_least="annotator", writes=True)},
    "api:roi-label-confirmation": {
        "PUT": rest(204, at_least="annotator", writes=True),
        "DELETE": rest(204, at_least="annotator", writes=True),
    },
    # --- quantification ---------------------------------------------------------------------------
    "quantification:settings": {
        "GET": page(elsewhere=200, removed=404),
        "POST": page(  # of one's own lab
            302, at_least="manager", elsewhere=302, removed=404, body=thresholds_body
        ),
    },
    "api:roi-quantification": {
        "GET": rest(),
        "POST": rest(202, at_least="annotator", writes=True),
    },
    "api:roi-nuclei": {"GET": rest(404)},  # it was never measured
    "api:case-quantification-table": {"GET": rest()},
    "api:quantification-settings": {
        "GET": rest(),
        "PUT": rest(at_least="manager", writes=True, body=thresholds_body),
    },
    "search:reports": {"GET": page(elsewhere=200)},
    "search:report": {"GET": page()},
    "search:report_again": {"GET": page()},
    "search:report_delete": {"POST": page(302, at_least="manager")},  # or who made it
    "search:report_file": {"GET": page()},
    "search:report_interpret": {"POST": page(302, at_least="annotator")},  # or who made it
    "search:report_picture": {"GET": page(404)},  # it has no pictures
    "search:report_query": {"POST": page(302)},  # both are still being prepared
    "search:report_renew": {"POST": page(302)},
    "search:report_roi": {"POST": page(302)},
    "api:report-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(202, writes=True, body=lambda scene: {"roi": scene.ids["rois"]}),
    },
    "api:report-detail": {
        "GET": rest(),
        "DELETE": rest(204, at_least="manager", writes=True),  # or who made it
    },
    "api:report-again": {"GET": rest(202)},
    "api:report-interpretations": {
        "GET": rest(),
        "POST": rest(
            201,
            at_least="annotator",  # or who made it
            writes=True,
            body=lambda scene: {"text": "Alike", "version": 0},
        ),
    },
    "api:report-pdf": {"GET": rest()},
    "api:learning-list": {
        "GET": rest(at_least="viewer", elsewhere=200),  # of the labs one manages
        "POST": rest(  # nothing is embedded
            409, at_least="manager", writes=True, body=lambda scene: {"lab": scene.ids["labs"]}
        ),
    },
    "api:learning-detail": {"GET": rest(at_least="manager")},
    "api:learning-promote": {"POST": rest(409, at_least="manager", writes=True)},  # not better
    "api:learning-roll-back": {"POST": rest(409, at_least="manager", writes=True)},  # not in use
    "model_training:learnings": {
        "GET": page(at_least="manager", elsewhere=200, removed=404),  # of one's own lab
        "POST": page(302, at_least="manager", elsewhere=302, removed=404),
    },
    "model_training:learning": {"GET": page(at_least="manager")},
    "model_training:learning_promote": {"POST": page(302, at_least="manager")},
    "model_training:learning_roll_back": {"POST": page(302, at_least="manager")},
    "api:query-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(202, writes=True, body=query_body),
    },
    "api:query-detail": {
        "GET": rest(),
        "DELETE": rest(204, at_least="manager", writes=True),  # or who asked
    },
    "api:query-similar": {"GET": rest(202)},
    "api:encoder-list": {"GET": rest(elsewhere=200)},  # of the installation
    "api:encoder-detail": {"GET": rest(elsewhere=200)},
    # --- mosaics ----------------------------------------------------------------------------------
    "mosaics:mosaic_list": {"GET": page(elsewhere=200)},
    "mosaics:mosaic_detail": {"GET": page()},
    "mosaics:mosaic_delete": {"POST": page(302, at_least="manager")},  # or who asked for it
    "mosaics:case_mosaics": {"GET": page()},
    "mosaics:video_mosaics": {"GET": page()},
    "mosaics:mosaic_create": {"POST": page(302, at_least="annotator")},
    "mosaics:followup_new": {
        "GET": page(),
        "POST": page(400, at_least="annotator", body=followup_body),  # the ROI is on a slide
    },
    "mosaics:followup_detail": {"GET": page()},
    "api:mosaic-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(
            202,
            at_least="annotator",
            writes=True,
            body=lambda scene: {"video": scene.ids["videos"]},
        ),
    },
    "api:mosaic-estimate": {"GET": rest(body=lambda scene: {"video": scene.ids["videos"]})},
    "api:mosaic-detail": {
        "GET": rest(),
        "DELETE": rest(204, at_least="manager", writes=True),  # or who asked for it
    },
    "api:mosaic-frames": {"GET": rest()},
    "api:mosaic-outlines": {"GET": rest()},
    # 409: not built yet
    "api:mosaic-frames-at-point": {"GET": rest(409, body=lambda scene: {"x": 1, "y": 1})},
    "api:mosaic-projected-rois": {"GET": rest(409)},
    "api:mosaic-roi-frames": {
        "GET": rest(404, body=lambda scene: {"roi": scene.ids["rois"]})
    },  # of a slide
    "api:mosaic-layer": {"GET": rest(409)},
    "api:mosaic-preview": {"GET": rest()},
    "api:mosaic-image": {"GET": rest(409)},
    "api:mosaic-pyramid": {"GET": rest(409)},
    "api:mosaic-manifest": {"GET": rest(409)},
    "api:roi-track": {
        "POST": rest(400, at_least="annotator", writes=True, headers={"If-Match": '"1"'})
    },  # on a slide
    "api:followup-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(400, at_least="annotator", writes=True, body=followup_body),  # on a slide
    },
    "api:followup-detail": {"GET": rest()},
    "api:followup-picture": {"GET": rest()},
}
