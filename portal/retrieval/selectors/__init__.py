"""Reads of retrieval."""

from portal.retrieval.selectors.candidates import organs_of
from portal.retrieval.selectors.comparison import EncoderComparison, encoder_compare
from portal.retrieval.selectors.embeddings import (
    EMBED_KIND,
    embed_job,
    embedding_current,
    embeddings_of_other_kinds,
    roi_to_embed,
    rois_with_embedding,
    rois_without_embedding,
    stain_of,
    vector_of,
)
from portal.retrieval.selectors.encoders import (
    BACKFILL_KIND,
    backfill_jobs_open,
    backfill_key,
    encoder_default,
    encoder_for,
    encoder_get,
    encoder_kind_for,
    encoder_next,
)
from portal.retrieval.selectors.readers import readers
from portal.retrieval.selectors.search import (
    K_MOST,
    Hit,
    LabelVote,
    NotEmbeddedError,
    SimilarFilters,
    SimilarQuery,
    SimilarResult,
    similar_search,
)
from portal.retrieval.selectors.snapshots import (
    IndexSource,
    index_entries,
    index_source,
    snapshot_latest,
)

__all__ = [
    "BACKFILL_KIND",
    "EMBED_KIND",
    "K_MOST",
    "EncoderComparison",
    "Hit",
    "IndexSource",
    "LabelVote",
    "NotEmbeddedError",
    "SimilarFilters",
    "SimilarQuery",
    "SimilarResult",
    "backfill_jobs_open",
    "backfill_key",
    "embed_job",
    "embedding_current",
    "embeddings_of_other_kinds",
    "encoder_compare",
    "encoder_default",
    "encoder_for",
    "encoder_get",
    "encoder_kind_for",
    "encoder_next",
    "index_entries",
    "index_source",
    "organs_of",
    "readers",
    "roi_to_embed",
    "rois_with_embedding",
    "rois_without_embedding",
    "similar_search",
    "snapshot_latest",
    "stain_of",
    "vector_of",
]
