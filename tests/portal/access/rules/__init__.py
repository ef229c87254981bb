"""Access rules: one for each method of each address of the portal.

A new address fails ``test_matrix`` until it has a rule in ``people``, ``records``,
``reading`` or ``work``.
Choose the kind of rule that says what the address is; an answer that differs from its kind is
named. ``body`` makes a valid request.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.portal.access.rules.dicom import DICOM
from tests.portal.access.rules.kinds import Rule
from tests.portal.access.rules.people import PEOPLE
from tests.portal.access.rules.reader_studies import INBOX, READER_STUDIES
from tests.portal.access.rules.records import RECORDS
from tests.portal.access.rules.work import WORK

RULES: Mapping[str, Mapping[str, Rule]] = {
    **DICOM,
    **INBOX,
    **PEOPLE,
    **RECORDS,
    **READER_STUDIES,
    **WORK,
}
