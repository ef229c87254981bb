"""How a section was stained, as far as its file says so in words or codes that are known."""

from ml.imaging.staining.files import stain_of_file
from ml.imaging.staining.terms import STAIN_NAMES, stain_named

__all__ = ["STAIN_NAMES", "stain_named", "stain_of_file"]
