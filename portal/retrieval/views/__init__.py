"""Pages of retrieval."""

from portal.retrieval.views.pages import embed, judge, similar, thumbnail

__all__ = ["embed", "judge", "similar", "thumbnail"]
