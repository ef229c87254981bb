"""Pages."""

from __future__ import annotations

from django.urls import path, re_path

from portal.archive.views import (
    canvases,
    cases,
    compare,
    intake,
    items,
    sharing,
    trash,
    uploads,
    vocabulary,
)

app_name = "archive"
_ITEM = "items/<str:kind>/<uuid:item_id>"
urlpatterns = [
    path("cases/", cases.case_list, name="case_list"),
    path("cases/new/", cases.case_new, name="case_new"),
    path("cases/<uuid:case_id>/", cases.case_detail, name="case_detail"),
    path("cases/<uuid:case_id>/edit/", cases.case_edit, name="case_edit"),
    path("cases/<uuid:case_id>/modality/", cases.case_modality, name="case_modality"),
    path("cases/<uuid:case_id>/delete/", cases.case_delete, name="case_delete"),
    path("cases/<uuid:case_id>/upload/", uploads.case_upload, name="case_upload"),
    path("cases/<uuid:case_id>/shares/", sharing.case_shares, name="case_shares"),
    path("lab/intake/", intake.intake, name="intake"),
    path("lab/intake/rules/", intake.intake_rules, name="intake_rules"),
    path("lab/vocabulary/", vocabulary.vocabulary, name="vocabulary"),
    path("lab/vocabulary/delete/", vocabulary.vocabulary_remove, name="vocabulary_remove"),
    path("quarantine/<uuid:upload_id>/retry/", intake.quarantine_retry, name="quarantine_retry"),
    path(
        "quarantine/<uuid:upload_id>/release/", intake.quarantine_release, name="quarantine_release"
    ),
    path("quarantine/<uuid:upload_id>/redact/", intake.quarantine_redact, name="quarantine_redact"),
    path("originals/<uuid:upload_id>/delete/", intake.original_delete, name="original_delete"),
    path(
        "lab/intake/templates/<uuid:template_id>/apply/",
        intake.template_apply,
        name="template_apply",
    ),
    path(
        "lab/intake/templates/<uuid:template_id>/delete/",
        intake.template_delete,
        name="template_delete",
    ),
    path("quarantine/<uuid:upload_id>/delete/", intake.quarantine_delete, name="quarantine_delete"),
    path("lab/shared/", sharing.lab_shares, name="lab_shares"),
    path("shares/<uuid:share_id>/accept/", sharing.share_accept, name="share_accept"),
    path("shares/<uuid:share_id>/end/", sharing.share_end, name="share_end"),
    path(f"{_ITEM}/", items.item_card, name="item_card"),
    path(f"{_ITEM}/retry/", items.item_retry, name="item_retry"),
    path(f"{_ITEM}/rename/", items.item_rename, name="item_rename"),
    path(f"{_ITEM}/delete/", items.item_delete, name="item_delete"),
    path("slides/<uuid:slide_id>/stain/", items.slide_stain, name="slide_stain"),
    path("slides/<uuid:item_id>/", items.item_open, {"kind": "slide"}, name="slide_open"),
    path("videos/<uuid:item_id>/", items.item_open, {"kind": "video"}, name="video_open"),
    path("canvases/<uuid:canvas_id>/", canvases.viewer, name="viewer"),
    path("canvases/<uuid:canvas_id>/tray/", canvases.tray, name="tray"),
    path("canvases/<uuid:canvas_id>/compare/", compare.compare, name="compare"),
    path(
        "canvases/<uuid:canvas_id>/compare/choices/",
        compare.compare_choices,
        name="compare_choices",
    ),
    path("trash/", trash.trash, name="trash"),
    path("trash/<uuid:entry_id>/restore/", trash.trash_restore, name="trash_restore"),
    path("trash/<uuid:entry_id>/purge/", trash.trash_purge, name="trash_purge"),
    re_path(r"^tiles/(?P<address>.+)$", canvases.tile, name="tile"),
]
