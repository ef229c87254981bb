"""Slides as DICOM objects: those stored as such, and those presented as such."""
