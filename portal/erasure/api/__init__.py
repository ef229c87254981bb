"""REST of erasure."""

from portal.erasure.api.erasures import ErasureViewSet

router_entries = [("erasures", ErasureViewSet, "erasure")]
