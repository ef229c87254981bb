"""Pages: how a lab takes files in, and what did not pass the gate."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from json import loads

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from ml.imaging.results import PictureBox
from portal.archive.models import PixelRule, Upload
from portal.archive.models.intake import BOX_FIELDS, MAX_IGNORED_WORD_LETTERS, MAX_IGNORED_WORDS
from portal.archive.rules import RETENTION, require_intake
from portal.archive.selectors.intake import (
    intake_rules_of,
    original_get,
    originals_list,
    preview_of,
    quarantine_get,
    quarantine_list,
    refused_list,
)
from portal.archive.selectors.redaction_templates import (
    redaction_template_get,
    redaction_template_list,
    template_of,
)
from portal.archive.services.gate.quarantine import MAX_BOXES, RELEASABLE
from portal.archive.services.gate.quarantine import original_delete as delete_original
from portal.archive.services.gate.quarantine import quarantine_delete as delete_quarantine
from portal.archive.services.gate.quarantine import quarantine_redact as redact_quarantine
from portal.archive.services.gate.quarantine import quarantine_release as release_quarantine
from portal.archive.services.gate.quarantine import quarantine_retry as retry_quarantine
from portal.archive.services.gate.redaction_templates import (
    MAX_FILES,
    redaction_template_apply,
    redaction_template_delete,
    redaction_template_save,
)
from portal.archive.services.gate.rules import IntakeRuleValues, intake_rules_set
from portal.core.api.etags import edited_by_page
from portal.core.errors import InvalidInputError, PortalError, StaleVersionError
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited, rejections
from portal.labs.models import Lab, User
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_get, memberships_of

PER_PAGE = 50  # two screens
MAX_ORIGINALS_SHOWN = 50  # the same; all of them are over REST
MAX_REFUSED_UPLOADS_SHOWN = 50  # the same; they are gone after two days


@audited(GET=AuditRule("intake.viewed", every_s=HOUR_S))
@never_cache
@login_required
@require_GET
def intake(request: HttpRequest) -> HttpResponse:
    """The rules of a lab and its quarantine. For managers."""
    user = user_of(request)
    lab = lab_get(user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    require_intake(user, lab.pk)
    uploads = quarantine_list(user=user).filter(lab=lab)
    page = Paginator(uploads, PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "lab": lab,
        "memberships": memberships_of(user),
        "can_manage": True,
        "page_obj": page,
        "originals": originals_list(user=user).filter(lab=lab)[:MAX_ORIGINALS_SHOWN],
        "refused": refused_list(user=user).filter(lab=lab)[:MAX_REFUSED_UPLOADS_SHOWN],
        "templates": redaction_template_list(user=user).filter(lab=lab),
        "max_template_files": MAX_FILES,
        "retention_hours": round(RETENTION.total_seconds() / 3600),
        "rules": intake_rules_of(lab.pk),
        "releasable": RELEASABLE,
        "pixel_rules": PixelRule.choices,
    }
    return render(request, "archive/intake.html", context)


@audited(POST=rejections("intake_rules.changed"))
@login_required
@require_POST
def intake_rules(request: HttpRequest) -> HttpResponse:
    """Say how the lab takes files in."""
    user, data = user_of(request), request.POST
    lab = lab_get(user, slug=data.get("lab"), chosen=lab_chosen_by(request))
    rules = intake_rules_of(lab.pk)
    values = IntakeRuleValues(
        takes_names_out="takes_names_out" in data,
        must_be_clean="must_be_clean" in data,
        titles_from_files="titles_from_files" in data,
        identifying_text=_chosen_value(data, "identifying_text", rules.identifying_text),
        other_text=_chosen_value(data, "other_text", rules.other_text),
        faces=_chosen_value(data, "faces", rules.faces),
        ignored_words=_lines(data, "ignored_words", rules.ignored_words),
        keeps_originals="keeps_originals" in data,
    )
    try:
        with edited_by_page(request, rules):
            intake_rules_set(lab=lab, user=user, values=values)
        messages.success(request, f"The rules by which {lab.name} takes files in were saved.")
    except StaleVersionError:
        text = "Someone else has changed the rules in the meantime; they are shown as they are now."
        messages.error(request, f"{text} Your changes were not saved.")
    return _to_intake(lab)


@audited(POST=rejections("quarantine.retried", "upload", "upload_id"))
@login_required
@require_POST
def quarantine_retry(request: HttpRequest, upload_id: uuid.UUID) -> HttpResponse:
    """Prepare a file again."""
    upload = quarantine_get(user=user_of(request), upload_id=upload_id)
    _carry_out(request, upload, retry_quarantine, f"{upload.name} is being prepared again.")
    return _to_intake(upload.lab)


@audited(POST=rejections("quarantine.released", "upload", "upload_id"))
@login_required
@require_POST
def quarantine_release(request: HttpRequest, upload_id: uuid.UUID) -> HttpResponse:
    """Let a file pass."""
    upload = quarantine_get(user=user_of(request), upload_id=upload_id)
    release = partial(release_quarantine, reason=request.POST.get("reason", ""))
    _carry_out(request, upload, release, f"{upload.name} was released and is being prepared.")
    return _to_intake(upload.lab)


@audited(
    GET=AuditRule("intake.viewed", "upload", "upload_id", every_s=MINUTE_S),
    POST=rejections("quarantine.redacted", "upload", "upload_id"),
)
@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def quarantine_redact(request: HttpRequest, upload_id: uuid.UUID) -> HttpResponse:
    """Draw boxes on the picture of a file, and have them made black."""
    upload = quarantine_get(user=user_of(request), upload_id=upload_id)
    if request.method == "POST":
        text = (
            f"{upload.name} is being redacted and checked once more. If something is still found "
            "in its picture, it comes back to the quarantine."
        )
        boxes_json, is_template = request.POST.get("boxes", ""), "template" in request.POST

        def redact(upload: Upload, user: User) -> None:
            boxes = _boxes(boxes_json)
            if is_template:
                redaction_template_save(upload=upload, user=user, boxes=boxes)
            redact_quarantine(upload=upload, user=user, boxes=boxes)

        if not _carry_out(request, upload, redact, text):
            return redirect("archive:quarantine_redact", upload.pk)
        if is_template:
            return _to_intake(upload.lab)
        return redirect("archive:case_detail", upload.case_id)
    evidence, redaction = getattr(upload, "evidence", None), getattr(upload, "redaction", None)
    template = template_of(upload)
    preview, problem = None, ""
    try:
        preview = preview_of(upload)
    except PortalError as error:
        problem = error.message
    context = {
        "upload": upload,
        "lab": upload.lab,
        "preview": preview,
        "problem": problem,
        "keeps_original": intake_rules_of(upload.lab_id).keeps_originals,
        "findings": evidence.findings if evidence else [],
        "boxes": redaction.boxes_named if redaction else [],
        "template": template,
        "template_boxes": template.boxes_named if template else [],
        "max_boxes": MAX_BOXES,
    }
    return render(request, "archive/redaction.html", context)


@audited(POST=rejections("quarantine.redacted", "template", "template_id"))
@login_required
@require_POST
def template_apply(request: HttpRequest, template_id: uuid.UUID) -> HttpResponse:
    """Have all held files of a template's scope redacted."""
    user = user_of(request)
    template = redaction_template_get(user=user, template_id=template_id)
    try:
        count = len(redaction_template_apply(template=template, user=user))
    except PortalError as error:
        messages.error(request, error.message)
    else:
        messages.success(
            request,
            f"{count:,} file{' is' if count == 1 else 's are'} being redacted and checked once "
            "more. If something is still found in a picture, its file comes back here.",
        )
    return _to_intake(template.lab)


@audited(POST=rejections("redaction_template.deleted", "template", "template_id"))
@login_required
@require_POST
def template_delete(request: HttpRequest, template_id: uuid.UUID) -> HttpResponse:
    user = user_of(request)
    template = redaction_template_get(user=user, template_id=template_id)
    redaction_template_delete(template=template, user=user)
    messages.success(request, "The template was deleted. Redacted files stay as they are.")
    return _to_intake(template.lab)


@audited(POST=rejections("original.deleted", "upload", "upload_id"))
@login_required
@require_POST
def original_delete(request: HttpRequest, upload_id: uuid.UUID) -> HttpResponse:
    """Delete the original of a redacted file for good."""
    upload = original_get(user=user_of(request), upload_id=upload_id)
    _carry_out(request, upload, delete_original, f"The original of {upload.name} was deleted.")
    return _to_intake(upload.lab)


@audited(POST=rejections("quarantine.deleted", "upload", "upload_id"))
@login_required
@require_POST
def quarantine_delete(request: HttpRequest, upload_id: uuid.UUID) -> HttpResponse:
    """Delete a file for good."""
    upload = quarantine_get(user=user_of(request), upload_id=upload_id)
    _carry_out(request, upload, delete_quarantine, f"{upload.name} was deleted.")
    return _to_intake(upload.lab)


def _chosen_value(data: QueryDict, name: str, present: str) -> str:
    """The ``PixelRule`` that a form chose; otherwise the present value."""
    value = data.get(name, present)
    return value if value in PixelRule.values else present


def _lines(data: QueryDict, name: str, present: list[str]) -> list[str]:
    """Lines of a text field, each once; the present ones where a form lacks the field."""
    if name not in data:
        return present
    lines = (line.strip()[:MAX_IGNORED_WORD_LETTERS] for line in str(data[name]).splitlines())
    return list(dict.fromkeys(line for line in lines if line))[:MAX_IGNORED_WORDS]


def _boxes(text: str) -> list[PictureBox]:
    """Boxes of a form, as JSON; ``InvalidInputError`` if they are none."""
    try:
        return [PictureBox(*(float(box[name]) for name in BOX_FIELDS)) for box in loads(text)]
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInputError("boxes: draw a box on the picture.") from error


def _carry_out(request: HttpRequest, upload: Upload, act: Callable[..., object], text: str) -> bool:
    """Do what a form asks for and say so, or say why not; return whether it was done."""
    try:
        act(upload=upload, user=user_of(request))
    except PortalError as error:
        messages.error(request, error.message)
        return False
    messages.success(request, text)
    return True


def _to_intake(lab: Lab) -> HttpResponse:
    return redirect(f"{reverse('archive:intake')}?lab={lab.slug}")
