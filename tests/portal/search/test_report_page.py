"""The page of a report: bars labelled as on the page of similar cases, encoders behind Details."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from ml.index.ranking.calibration import Calibration
from portal.annotations.models import Roi
from portal.search.models import Report


@pytest.fixture
def roi(world: Any) -> Roi:
    """A region, and three of other patients to find."""
    (label,) = world.labels("Tumour")
    for n in range(3):
        world.embedded(world.canvas(world.case(f"B{n}", f"q{n}")), 100 + 20 * n, 100, label=label)
    region: Roi = world.embedded(world.canvas(world.case("A1", "p1")), 90, 100)
    return region


def test_a_report_has_the_bars_of_the_page_with_their_labels(
    page: Client, roi: Roi, monkeypatch: pytest.MonkeyPatch
) -> None:
    calibration = Calibration.from_quantiles([0.05, 0.9], [60.0, 110.0])
    monkeypatch.setattr("portal.search.selectors.hits.calibration_of", lambda _: calibration)
    report = page.post(f"/rois/{roi.pk}/similar/report/")["Location"]
    of_page, of_report = (
        sorted(
            re.findall(r'<meter[^>]*>|<span class="hit-bar"[^>]*>', page.get(path).content.decode())
        )
        for path in (f"/rois/{roi.pk}/similar/", report)
    )
    assert of_page == of_report
    assert any('that carry a label: Tumour"' in bar for bar in of_report)
    assert sum('aria-label="Closer than' in bar for bar in of_report) == 3


def test_the_encoder_of_a_report_is_behind_details(page: Client, roi: Roi) -> None:
    page.post(f"/rois/{roi.pk}/similar/report/")
    report = Report.objects.get()
    name = " ".join(report.content["encoder"][:2])
    assert name in page.get(f"/reports/{report.pk}/").content.decode()
    for path in ("/reports/", f"/reports/{report.pk}/", f"/reports/{report.pk}/again/"):
        text = page.get(path).content.decode()
        assert name not in re.sub(r"<details.*?</details>", "", text, flags=re.DOTALL)
