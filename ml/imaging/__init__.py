"""Pixel input and output without torch: slides, tiles, videos, pyramids, sandboxed ingest."""
