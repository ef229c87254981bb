"""A vector index on a Milvus server or cluster. Needs the extra ``milvus``."""
