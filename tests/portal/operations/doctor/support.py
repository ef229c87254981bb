"""Reading what the doctor found."""

from __future__ import annotations

from portal.operations.doctor.findings import DoctorFinding


def only(findings: list[DoctorFinding], part: str = "") -> DoctorFinding:
    (result,) = [finding for finding in findings if not part or finding.part == part]
    assert (result.remedy == "") == (result.level == "ok"), "what is wrong has something to do"
    return result
