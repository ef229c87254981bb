"""The page of deleted regions."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse

from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_delete
from portal.labs.models import User


def test_regions_are_restored_and_purged_on_their_page(
    client: Client, manager: User, roi: Roi
) -> None:
    client.force_login(manager)
    roi_delete(roi=roi, user=manager, expected_version=1)
    page = reverse("annotations:trash")
    assert client.get(page).context["rows"][0] == roi
    client.post(reverse("annotations:roi_restore", args=[roi.pk]))
    assert Roi.objects.get(pk=roi.pk).deleted_at is None
    roi_delete(roi=Roi.objects.get(pk=roi.pk), user=manager, expected_version=3)
    client.post(reverse("annotations:roi_purge", args=[roi.pk]))
    assert not Roi.all_objects.exists()
