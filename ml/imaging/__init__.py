"""Pixel input and output without torch.

::

    ingest.py, pictures.py    what the limited child process runs on an uploaded file
    sandbox/, inspections.py  a child process that cannot harm its caller; what it reports of a file
    slides/, videos/          levels, regions, tiles, pyramids; frames by time stamp, the rendition
    formats/, limits.py       what a file is by its bytes; what it may claim before it is decoded
    dicom/, staining/         slides as DICOM objects; how a section was stained
    deidentify/, revealing/   copies without what names a patient; what pixels reveal of a person
    samples/                  demo slides and videos made from packaged pictures
"""
