"""Resumable uploads: after a failure on either side, a transfer continues where it stopped.

``upload_begin`` announces a file, ``upload_append`` takes its pieces, and the last byte submits the
job ``upload_finish``, which checks the file and creates a slide or a video. Several parts of a
large file may arrive concurrently (``is_part``); ``upload_join`` joins them.
"""
