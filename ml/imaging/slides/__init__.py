"""Slides and stills as one thing, and the tiles of what is shown of them.

>>> from ml.imaging.slides import open_slide
>>> with open_slide("slide.svs") as slide:
...     rgb = slide.read_at_mpp((0, 0), (2048, 2048), mpp=0.5)
"""

from ml.imaging.slides.slide import SlideImage, open_slide

__all__ = ["SlideImage", "open_slide"]
