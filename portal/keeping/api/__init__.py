"""REST of keeping."""

from django.urls import path

from portal.keeping.api.bin import BinViewSet, RoiPurgeApi
from portal.keeping.api.erasures import ErasureViewSet

router_entries = [("bin", BinViewSet, "bin"), ("erasures", ErasureViewSet, "erasure")]
urlpatterns = [path("rois/<uuid:roi_id>/purge/", RoiPurgeApi.as_view(), name="roi-purge")]
