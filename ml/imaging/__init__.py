"""Pixel input and output without torch.

::

    ingest.py, query_image.py  targets of the confined child process that opens uploaded files
    results.py, sandbox/       their results; the child process
    slides/, videos/           levels, regions, tiles, pyramids; frames, renditions
    formats/, limits.py        file formats by content; limits on the claims of a file
    dicom/, staining/          slides as DICOM objects; the stain that a file states
    deidentification/          copies without identifying data
    phi_detection/             identifying text, faces and frames outside the body in pixels
    samples/                   demo slides and videos from packaged pictures
"""
