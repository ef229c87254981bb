"""What a page can do, REST can do: each form and button beside the operations that do the same."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from drf_spectacular.generators import SchemaGenerator

from tests.portal.access.rules import RULES

OVER_REST: Mapping[str, tuple[str, ...]] = {
    "annotations:label_edit": ("labels_partial_update",),
    "annotations:label_remove": ("labels_destroy",),
    "annotations:labels": ("labels_create",),
    "annotations:properties": ("label_properties_set",),
    "annotations:property_edit": ("label_properties_set",),
    "archive:case_delete": ("cases_destroy",),
    "archive:case_edit": ("cases_partial_update", "cases_update"),
    "archive:case_new": ("cases_create",),
    "archive:case_shares": ("cases_shares_create",),
    "archive:case_upload": ("slides_create", "videos_create", "uploads_create"),
    "archive:intake_rules": ("intake_rules_update",),
    "archive:item_delete": ("slides_destroy", "videos_destroy"),
    "archive:item_rename": ("slides_partial_update", "videos_partial_update"),
    "archive:item_retry": ("jobs_retry_create",),
    "archive:quarantine_delete": ("quarantine_destroy",),
    "archive:quarantine_release": ("quarantine_release_create",),
    "archive:quarantine_retry": ("quarantine_retry_create",),
    "archive:share_accept": ("shares_accept_create",),
    "archive:share_end": ("shares_end_create",),
    "archive:slide_stain": ("slides_partial_update",),
    "exchange:case_export": ("case_export_order",),
    "exchange:case_import": ("case_import",),
    "exchange:case_import_cancel": ("jobs_cancel_create", "uploads_destroy"),
    "hooks:delete": ("webhooks_destroy",),
    "hooks:edit": ("webhooks_partial_update",),
    "hooks:ping": ("webhooks_ping_create",),
    "hooks:replay": ("webhooks_replay_create", "webhooks_deliveries_replay_create"),
    "hooks:secret": ("webhooks_secret_create",),
    "hooks:switch": ("webhooks_partial_update",),
    "hooks:webhooks": ("webhooks_create",),
    "jobs:cancel": ("jobs_cancel_create",),
    "jobs:cancel_many": ("jobs_cancel_many",),
    "jobs:retry": ("jobs_retry_create",),
    "keeping:bin_purge": ("bin_destroy",),
    "keeping:bin_restore": ("bin_restore_create",),
    "keeping:erasures": ("erasures_create",),
    "keeping:roi_purge": ("rois_purge_create",),
    "keeping:roi_restore": ("rois_restore_create",),
    "labs:invitation_renew": ("invitations_renew_create",),
    "labs:invitation_revoke": ("invitations_destroy",),
    "labs:invite": ("invitations_create",),
    "labs:member_remove": ("members_destroy",),
    "labs:member_role": ("members_partial_update",),
    "labs:program_remove": ("programs_destroy",),
    "labs:program_token": ("programs_tokens_create",),
    "labs:program_tokens_revoke": ("programs_tokens_revoke",),
    "labs:programs": ("programs_create",),
    "labs:token_revoke": ("tokens_destroy",),
    "labs:tokens": ("tokens_create",),
    "mosaics:followup_new": ("followups_create",),
    "mosaics:mosaic_create": ("mosaics_create",),
    "mosaics:mosaic_delete": ("mosaics_destroy",),
    "reading:assign": ("assignments_create",),
    "reading:remove": ("assignments_destroy",),
    "reading:reopen": ("assignments_reopen",),
    "reading:studies": ("studies_create",),
    "reading:study_assign": ("assignments_create",),
    "reading:study_decide": ("studies_decide",),
    "reading:study_unblind": ("studies_unblind",),
    "reading:submit": ("assignments_submit",),
    "retrieval:browse_draw": ("maps_create",),
    "retrieval:browse_label": ("rois_bulk_create",),
    "retrieval:embed": ("search",),
    "retrieval:judge": ("roi_judge", "roi_judgement_clear"),
    "retrieval:learning_promote": ("learning_promote",),
    "retrieval:learning_roll_back": ("learning_roll_back",),
    "retrieval:learnings": ("learnings_create",),
    "retrieval:look_through": ("canvas_look_through",),
    "retrieval:query_ask": ("queries_create",),
    "retrieval:query_embed": ("jobs_retry_create",),
    "retrieval:query_mark": ("queries_create",),
    "retrieval:query_new_picture": ("queries_create",),
    "retrieval:query_remove": ("queries_destroy",),
    "retrieval:query_why": ("query_why",),
    "retrieval:report_delete": ("reports_destroy",),
    "retrieval:report_query": ("reports_create",),
    "retrieval:report_renew": ("report_again",),
    "retrieval:report_roi": ("reports_create",),
    "retrieval:why": ("roi_why",),
    "review:rules": ("review_rules_update",),
}
# What makes somebody a person at a browser, or follows from being one: docs/api.md says so.
PAGES_ONLY: Mapping[str, str] = {
    **{
        name: "signing in, passwords and second factors"
        for name in RULES
        if name.startswith(("account_", "mfa_", "openid_connect_"))
    },
    "labs:current_lab": "which lab this browser shows; over REST each request names its lab",
    "labs:invitation": "an account is made by the link of an invitation",
    "labs:invitation_accept": "by the link of an invitation",
    "labs:invitation_decline": "by the link of an invitation",
    "labs:link": "a link to sign in",
    "labs:link_ask": "a link to sign in",
    "labs:session_end": "one's sessions",
    "labs:sessions_end": "one's sessions",
    "labs:set_up": "the first account of an installation",
}


def _acts() -> set[str]:
    return {
        name for name, rules in RULES.items() if not name.startswith("api") and set(rules) - {"GET"}
    }


def test_each_form_of_a_page_has_its_operations_or_says_why_it_is_a_page() -> None:
    """A new page that does something fails here until it stands in one of the tables."""
    told = set(OVER_REST) | {name for name in PAGES_ONLY if name in _acts()}
    assert sorted(_acts() - told) == [], "what of REST does the same?"
    assert sorted(set(OVER_REST) - _acts()) == [], "these pages are no more"
    assert set(OVER_REST) & set(PAGES_ONLY) == set()


@pytest.mark.django_db
def test_the_operations_exist() -> None:
    document = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    known = {
        operation["operationId"]
        for operations in document["paths"].values()
        for operation in operations.values()
    }
    named = {name for names in OVER_REST.values() for name in names}
    assert sorted(named - known) == []
