"""Slides as DICOM objects: those that are some, and those that are told as some."""
