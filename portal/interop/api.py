"""REST of all standards."""

from __future__ import annotations

from portal.interop.dicomweb import api as dicomweb
from portal.interop.events import api as events
from portal.interop.fhir import api as fhir
from portal.interop.iiif import api as iiif
from portal.interop.rocrate import api as rocrate
from portal.interop.web_annotation import api as web_annotation

urlpatterns = [
    *dicomweb.urlpatterns,
    *events.urlpatterns,
    *iiif.urlpatterns,
    *web_annotation.urlpatterns,
    *rocrate.urlpatterns,
    *fhir.urlpatterns,
]
