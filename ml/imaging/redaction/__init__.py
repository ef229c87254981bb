"""Redaction: boxes of a picture, slide or video are made black, and the file is written again."""
