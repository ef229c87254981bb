"""Redaction templates: the boxes of one file redact the held files of its scope."""

from __future__ import annotations

import io
from typing import Any

import pytest
from PIL import Image

from ml.imaging.results import PictureBox
from ml.imaging.slides.stills import decode_still
from portal.archive.models import Case, Evidence, RedactionTemplate, Slide, Upload
from portal.archive.selectors.redaction_templates import (
    redaction_template_get,
    redaction_template_list,
    scope_of,
    template_of,
)
from portal.archive.services.gate.quarantine import quarantine_redact
from portal.archive.services.gate.redaction_templates import (
    redaction_template_apply,
    redaction_template_delete,
    redaction_template_save,
)
from portal.archive.storage import files as storage_files
from portal.audit.models import AuditEntry
from portal.core.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from portal.labs.models import Lab, User
from tests.ml.imaging.phi_detection.support import named, tissue
from tests.portal.archive.support import run_job

pytestmark = pytest.mark.django_db

LINE = PictureBox(0.03, 0.03, 0.6, 0.12)
"""Around the text of ``named`` in a picture of 640 x 400 px."""


@pytest.fixture(autouse=True)
def _rule_of_the_portal(settings: Any) -> None:
    settings.TESSERA_PHI_IN_PIXELS = "hold"


def still(number: int, *, model: str = "CV-190", enlarged: int = 0) -> bytes:
    """A picture with a date, different for each number."""
    pixels = named(tissue()).copy()
    pixels[-1, :8] = number
    image, exif, file = Image.fromarray(pixels), Image.Exif(), io.BytesIO()
    exif[271], exif[272] = "OLYMPUS", model
    if enlarged:
        image = image.resize((image.width + enlarged, image.height))
    image.save(file, "PNG", exif=exif)
    return file.getvalue()


@pytest.fixture
def held(case: Case, receive: Any, quick: None) -> Upload:
    run_job(receive(case, still(0), "first.png").job)
    return Upload.objects.get(state="quarantined")


def _hold(case: Case, receive: Any, data: bytes, name: str) -> Upload:
    run_job(receive(case, data, name).job)
    return Upload.objects.get(state="quarantined", name=name)


def _held_count(user: User) -> int:
    return int(getattr(redaction_template_list(user=user).get(), "held_count"))  # noqa: B009


def test_the_scope_of_a_held_file_is_its_device_kind_and_size(held: Upload) -> None:
    scope = scope_of(held)
    assert scope is not None
    assert (scope.kind, scope.device) == ("still", "OLYMPUS CV-190")
    assert (scope.width_px, scope.height_px) == (640, 400)
    assert held.evidence.scope_name == "OLYMPUS CV-190, stills of 640 × 400 px"


@pytest.mark.slow
def test_a_template_redacts_the_other_files_of_its_scope(
    held: Upload, case: Case, receive: Any, manager: User
) -> None:
    same = _hold(case, receive, still(1), "same.png")
    other_model = _hold(case, receive, still(2, model="CV-260"), "model.png")
    other_size = _hold(case, receive, still(3, enlarged=16), "size.png")
    template = redaction_template_save(upload=held, user=manager, boxes=[LINE])
    assert template_of(same) == template
    assert template_of(other_model) is None and template_of(other_size) is None
    assert _held_count(manager) == 2
    received = redaction_template_apply(template=template, user=manager)
    assert len(received) == 2
    for message in received:
        assert message.job is not None
        assert run_job(message.job).state == "succeeded"
    for slide in Slide.objects.all():
        path = storage_files.asset_path(slide.lab_id, slide.asset.sha256)
        assert decode_still(path)[16:60, 32:380].max() == 0
    states = dict(Upload.objects.values_list("name", "state"))
    assert states == {
        "first.png": "stored",
        "same.png": "stored",
        "model.png": "quarantined",
        "size.png": "quarantined",
    }
    assert AuditEntry.objects.get(action="redaction_template.saved").details["boxes"] == 1
    noted = AuditEntry.objects.filter(action="quarantine.redacted")
    assert [entry.details["template"] for entry in noted] == [str(template.pk)] * 2


def test_files_with_boxes_of_their_own_are_left(held: Upload, manager: User) -> None:
    template = redaction_template_save(upload=held, user=manager, boxes=[LINE])
    elsewhere = PictureBox(0.1, 0.7, 0.2, 0.2)
    job = quarantine_redact(upload=held, user=manager, boxes=[elsewhere]).job
    assert job is not None
    run_job(job)
    back = Upload.objects.get(state="quarantined")
    assert scope_of(back) == template.scope, "the file still names its device"
    assert _held_count(manager) == 0
    with pytest.raises(ConflictError):
        redaction_template_apply(template=template, user=manager)


def test_a_template_is_replaced_and_deleted(held: Upload, manager: User) -> None:
    first = redaction_template_save(upload=held, user=manager, boxes=[LINE])
    again = redaction_template_save(upload=held, user=manager, boxes=[LINE, LINE])
    assert (again.pk, len(again.boxes)) == (first.pk, 2)
    redaction_template_delete(template=again, user=manager)
    assert not RedactionTemplate.objects.exists()
    assert AuditEntry.objects.filter(action="redaction_template.deleted").count() == 1


def test_invalid_templates_are_refused(held: Upload, manager: User, annotator: User) -> None:
    with pytest.raises(InvalidInputError):
        redaction_template_save(upload=held, user=manager, boxes=[])
    with pytest.raises(InvalidInputError):
        redaction_template_save(upload=held, user=manager, boxes=[PictureBox(2, 2, 1, 1)])
    with pytest.raises(ForbiddenError):
        redaction_template_save(upload=held, user=annotator, boxes=[LINE])
    template = redaction_template_save(upload=held, user=manager, boxes=[LINE])
    for act in (redaction_template_apply, redaction_template_delete):
        with pytest.raises(ForbiddenError):
            act(template=template, user=annotator)
    Evidence.objects.all().delete()
    without = Upload.objects.get(pk=held.pk)
    with pytest.raises(ConflictError):
        redaction_template_save(upload=without, user=manager, boxes=[LINE])


def test_templates_and_files_of_another_lab_are_out_of_reach(
    held: Upload, manager: User, annotator: User
) -> None:
    template = redaction_template_save(upload=held, user=manager, boxes=[LINE])
    other = Lab.objects.create(name="Another lab", slug="another-lab")
    scope = {name: getattr(template, name) for name in ("kind", "device", "width_px", "height_px")}
    theirs = RedactionTemplate.objects.create(lab=other, boxes=[[0, 0, 1, 1]], **scope)
    with pytest.raises(NotFoundError):
        redaction_template_get(user=manager, template_id=theirs.pk)
    with pytest.raises(ForbiddenError):
        redaction_template_get(user=annotator, template_id=template.pk)
    assert redaction_template_list(user=manager).get() == template
    assert template_of(held) == template
    assert not redaction_template_list(user=annotator).exists()


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("video", "videos of 1,920 × 1,080 px of an unknown scope"),
        ("slide", "slides of 1,920 × 1,080 px of an unknown scanner"),
        ("still", "stills of 1,920 × 1,080 px of an unknown device"),
    ],
)
def test_a_scope_without_a_device_goes_by_kind_and_size(kind: str, name: str) -> None:
    template = RedactionTemplate(kind=kind, width_px=1920, height_px=1080)
    assert template.scope_name == name
