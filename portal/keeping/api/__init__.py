"""REST of keeping."""

from portal.keeping.api.bin import BinViewSet

router_entries = [("bin", BinViewSet, "bin")]
