"""REST of keeping."""

from django.urls import path

from portal.keeping.api.bin import BinViewSet, RoiPurgeApi

router_entries = [("bin", BinViewSet, "bin")]
urlpatterns = [path("rois/<uuid:roi_id>/purge/", RoiPurgeApi.as_view(), name="roi-purge")]
