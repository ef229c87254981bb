"""The labels page; the way to an ROI."""

from __future__ import annotations

from django.test import Client

from portal.annotations.models import Label, Roi
from portal.annotations.services.labels import label_create, label_update
from portal.annotations.services.rois import roi_create, roi_delete
from portal.archive.models import Canvas
from portal.labs.models import Lab, User
from tests.portal.annotations.conftest import make_canvas
from tests.portal.annotations.support import box

PAGE = "/lab/labels/"


def test_members_see_the_labels_and_managers_the_forms(
    client: Client, viewer: User, manager: User, label: Label
) -> None:
    client.force_login(viewer)
    text = client.get(PAGE).content.decode()
    assert "Tumor" in text
    assert "Add a label" not in text
    client.force_login(manager)
    assert "Add a label" in client.get(PAGE).content.decode()


def test_a_manager_adds_changes_and_deletes_a_label(client: Client, manager: User) -> None:
    client.force_login(manager)
    client.get(PAGE)
    assert client.post(PAGE, {"name": "Gland", "color": "#112233"}).status_code == 302
    label = Label.objects.get(name="Gland")
    client.post(f"{PAGE}{label.pk}/", {"name": "Crypt", "color": "#445566"})
    label.refresh_from_db()
    assert (label.name, label.color) == ("Crypt", "#445566")
    taken = client.post(PAGE, {"name": "crypt", "color": "#112233"})
    assert taken.status_code == 409
    assert "already has a label &quot;crypt&quot;" in taken.content.decode()
    assert client.post(PAGE, {"name": "", "color": "blue"}).status_code == 400
    client.post(f"{PAGE}{label.pk}/delete/")
    assert not Label.objects.filter(pk=label.pk).exists()


def test_a_label_in_use_is_not_deleted_and_the_page_has_the_reason(
    client: Client, manager: User, canvas: Canvas, label: Label
) -> None:
    outline = {"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [9, 9], [0, 9]]]}
    roi_create(canvas=canvas, user=manager, geometry=outline, label=label)
    client.force_login(manager)
    page = client.post(f"{PAGE}{label.pk}/delete/", follow=True)
    assert "cannot be deleted: 1 region has it" in page.content.decode()


def test_similar_colours_are_a_warning_only_where_one_image_has_both(
    client: Client, lab: Lab, manager: User, canvas: Canvas, label: Label
) -> None:
    gland = label_create(lab=lab, user=manager, name="Gland", color="#669900")
    label_update(label=label, user=manager, changes={"color": "#cc3300"})
    other_image = make_canvas(lab, accession="A-2")
    roi_create(canvas=canvas, user=manager, geometry=box(1, 1, 9, 9), label=label)
    roi_create(canvas=other_image, user=manager, geometry=box(1, 1, 9, 9), label=gland)
    client.force_login(manager)
    assert "Hard to tell by colour" not in client.get(PAGE).content.decode()
    roi = roi_create(canvas=canvas, user=manager, geometry=box(1, 1, 9, 9), label=gland).roi
    text = client.get(PAGE).content.decode()
    assert "Hard to tell by colour from Gland (no green (deuteranopia)); 1 image has both" in text
    assert "Hard to tell by colour from Tumor" in text
    roi_delete(roi=roi, user=manager, expected_version=1)
    assert "Hard to tell by colour" not in client.get(PAGE).content.decode()


def test_the_page_needs_equal_queries_for_few_and_many_labels(
    client: Client, manager: User, label: Label, django_assert_max_num_queries: object
) -> None:
    client.force_login(manager)
    with django_assert_max_num_queries(12):  # type: ignore[operator]
        client.get(PAGE)


def test_an_roi_opens_in_the_viewer_for_its_lab_only(
    page: Client, roi: Roi, foreign_roi: Roi
) -> None:
    answer = page.get(f"/rois/{roi.pk}/")
    assert answer["Location"] == f"/canvases/{roi.canvas_id}/?roi={roi.pk}"
    assert page.get(f"/rois/{foreign_roi.pk}/").status_code == 404
