"""Every form and button of a page has REST operations that do the same."""

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
    "archive:case_modality": ("cases_partial_update",),
    "archive:case_new": ("cases_create",),
    "archive:case_shares": ("cases_shares_create",),
    "archive:case_upload": ("slides_create", "videos_create", "uploads_create"),
    "archive:intake_rules": ("intake_rules_update",),
    "archive:item_delete": ("slides_destroy", "videos_destroy"),
    "archive:item_rename": ("slides_partial_update", "videos_partial_update"),
    "archive:item_retry": ("jobs_retry_create",),
    "archive:original_delete": ("originals_destroy",),
    "archive:quarantine_delete": ("quarantine_destroy",),
    "archive:quarantine_redact": ("quarantine_redact_create",),
    "archive:quarantine_release": ("quarantine_release_create",),
    "archive:quarantine_retry": ("quarantine_retry_create",),
    "archive:template_apply": ("redaction_templates_apply_create",),
    "archive:template_delete": ("redaction_templates_destroy",),
    "archive:vocabulary": ("vocabulary_import_create",),
    "archive:vocabulary_remove": ("vocabulary_remove_create", "vocabulary_destroy"),
    "archive:share_accept": ("shares_accept_create",),
    "archive:share_end": ("shares_end_create",),
    "archive:slide_stain": ("slides_partial_update",),
    "interop:case_export": ("case_export_request",),
    "interop:case_import": ("case_import",),
    "interop:case_import_cancel": ("jobs_cancel_create", "uploads_destroy"),
    "webhooks:delete": ("webhooks_destroy",),
    "webhooks:edit": ("webhooks_partial_update",),
    "webhooks:ping": ("webhooks_ping_create",),
    "webhooks:replay": ("webhooks_replay_create", "webhooks_deliveries_replay_create"),
    "webhooks:secret": ("webhooks_secret_create",),
    "webhooks:switch": ("webhooks_partial_update",),
    "webhooks:webhooks": ("webhooks_create",),
    "inbox:preferences": ("notification_preferences_update",),
    "inbox:read": ("notifications_read_create", "notifications_read_many"),
    "jobs:cancel": ("jobs_cancel_create",),
    "jobs:cancel_many": ("jobs_cancel_many",),
    "jobs:retry": ("jobs_retry_create",),
    "archive:trash_purge": ("trash_destroy",),
    "archive:trash_restore": ("trash_restore_create",),
    "erasure:erasures": ("erasures_create",),
    "annotations:roi_purge": ("rois_purge_create",),
    "annotations:roi_restore": ("rois_restore_create",),
    "annotations:video_event_purge": ("video_events_purge_create",),
    "annotations:video_event_restore": ("video_events_restore_create",),
    "labs:invitation_renew": ("invitations_renew_create",),
    "labs:invitation_revoke": ("invitations_destroy",),
    "labs:invite": ("invitations_create",),
    "labs:member_remove": ("members_destroy",),
    "labs:member_role": ("members_partial_update",),
    "labs:service_account_remove": ("service_accounts_destroy",),
    "labs:service_account_token": ("service_accounts_tokens_create",),
    "labs:service_account_tokens_revoke": ("service_accounts_tokens_revoke",),
    "labs:service_accounts": ("service_accounts_create",),
    "labs:token_revoke": ("tokens_destroy",),
    "labs:tokens": ("tokens_create",),
    "mosaics:followup_new": ("followups_create",),
    "mosaics:mosaic_create": ("mosaics_create",),
    "mosaics:mosaic_delete": ("mosaics_destroy",),
    "reader_studies:assign": ("assignments_create",),
    "reader_studies:remove": ("assignments_destroy",),
    "reader_studies:reopen": ("assignments_reopen",),
    "reader_studies:studies": ("studies_create",),
    "reader_studies:study_assign": ("assignments_create",),
    "reader_studies:study_decide": ("studies_decide",),
    "reader_studies:study_unblind": ("studies_unblind",),
    "reader_studies:submit": ("assignments_submit",),
    "explore:browse_draw": ("maps_create",),
    "explore:browse_label": ("rois_bulk_create",),
    "search:embed": ("search",),
    "search:judge": ("roi_judge", "roi_judgement_clear"),
    "model_training:learning_promote": ("learning_promote",),
    "model_training:learning_roll_back": ("learning_roll_back",),
    "model_training:learnings": ("learnings_create",),
    "explore:look_through": ("canvas_look_through",),
    "search:query_ask": ("queries_create",),
    "search:query_embed": ("jobs_retry_create",),
    "search:query_mark": ("queries_create",),
    "search:query_new_picture": ("queries_create",),
    "search:query_remove": ("queries_destroy",),
    "search:query_explanation": ("query_explanation",),
    "search:report_delete": ("reports_destroy",),
    "search:report_interpret": ("report_interpret",),
    "search:report_query": ("reports_create",),
    "search:report_renew": ("report_again",),
    "search:report_roi": ("reports_create",),
    "search:explanation": ("roi_explanation",),
    "quantification:settings": ("quantification_settings_update",),
    "review:rules": ("review_rules_update",),
}
# What makes somebody a person at a browser, or follows from being one (docs/guide/rest/index.md).
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


def test_each_form_of_a_page_has_its_operations_or_a_reason() -> None:
    """A new page with a form fails here until one of the tables lists it."""
    pages = set(OVER_REST) | {name for name in PAGES_ONLY if name in _acts()}
    assert sorted(_acts() - pages) == [], "what of REST does the same?"
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
