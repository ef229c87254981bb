"""Pixel input and output without torch.

::

    ingest.py      what the limited child process runs on an uploaded file
    slides/        slides and stills: levels, regions, tiles, pyramids
    videos/        frame tables, frames by time stamp, the rendition
    formats/       what a file is by its bytes: sniffing, TIFF directories, archives, sets of files
    samples/       demo slides and videos made from packaged pictures
    sandbox/       a child process that cannot harm its caller
    inspections.py what that process says of a file
    limits.py      what a file may claim before anything is allocated for it
"""
