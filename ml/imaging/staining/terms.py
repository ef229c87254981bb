"""Names of stains, their spellings in files, and their codes.

Only these terms are taken from a file: other text in a stain field may name a person.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

HEMATOXYLIN, EOSIN = "12710003", "36879007"
MEANINGS = {
    HEMATOXYLIN: "hematoxylin stain",
    EOSIN: "water soluble eosin stain",
    "38271009": "saffron stain",
    "255808002": "periodic acid Schiff stain",
    "373646006": "giemsa stain",
    "45106005": "Congo red stain",
    "4656000": "alcian blue 8GX stain",
    "406452004": "Prussian blue stain",
    "406957003": "Van Gieson stain",
    "51567006": "sirius red F3B stain",
    "406951002": "silver stain",
    "406989007": "trichrome stain",
    "255813003": "Ziehl-Neelsen stain",
    "385484003": "gram stain",
    "29522004": "toluidine blue stain",
    "406958008": "luxol fast blue stain",
    "406959000": "cresyl violet stain",
    "40808006": "oil red O stain",
    "406966004": "orcein stain",
    "406964001": "mucicarmine stain",
    "255803006": "may-Grunwald giemsa stain",
    "373682001": "wright stain",
    "255800009": "immunofluorescent stain",
}
"""Meanings of SNOMED CT codes, as in DICOM PS3.16, CID 8112."""


@dataclass(frozen=True, slots=True)
class Stain:
    """A stain.

    Attributes:
        codes: of ``MEANINGS``; none if the context group lacks it.
        words: other names, in the form of ``_key``.
    """

    name: str
    words: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()


STAINS = (
    Stain("H&E", ("he", "hematoxylineosin", "hematoxylinandeosin"), (HEMATOXYLIN, EOSIN)),
    Stain("PAS", ("periodicacidschiff",), ("255808002",)),
    Stain("Masson trichrome", ("masson", "massons", "massonstrichrome", "trichromemasson")),
    Stain("IHC", ("immunohistochemistry", "immunohistochemical")),
    Stain("Giemsa", (), ("373646006",)),
    Stain("Congo red", (), ("45106005",)),
    Stain("Alcian blue", (), ("4656000",)),
    Stain("Alcian blue-PAS", ("abpas", "alcianbluepas"), ("4656000", "255808002")),
    Stain("Prussian blue", ("perls", "perlsprussianblue"), ("406452004",)),
    Stain("Elastica van Gieson", ("evg", "elasticvangieson", "verhoeffvangieson")),
    Stain("Van Gieson", (), ("406957003",)),
    Stain("Sirius red", ("picrosiriusred",), ("51567006",)),
    Stain("Reticulin", ("reticulinsilver", "gomorireticulin")),
    Stain("Jones silver", ("jones", "jonesmethenaminesilver", "pams")),
    Stain("Grocott", ("gms", "grocottmethenaminesilver", "grocottgomori")),
    Stain("Silver", (), ("406951002",)),
    Stain("PAS-D", ("pasd", "pasdiastase", "pasplusdiastase")),
    Stain("HES", ("hematoxylineosinsaffron",), (HEMATOXYLIN, EOSIN, "38271009")),
    Stain("Hematoxylin", (), (HEMATOXYLIN,)),
    Stain("Trichrome", (), ("406989007",)),
    Stain("Ziehl-Neelsen", (), ("255813003",)),
    Stain("Gram", (), ("385484003",)),
    Stain("Toluidine blue", (), ("29522004",)),
    Stain("Luxol fast blue", ("lfb", "kluverbarrera"), ("406958008",)),
    Stain("Cresyl violet", ("nissl",), ("406959000",)),
    Stain("Oil red O", (), ("40808006",)),
    Stain("Orcein", (), ("406966004",)),
    Stain("Mucicarmine", (), ("406964001",)),
    Stain("Papanicolaou", ("pap",)),
    Stain("May-Grünwald-Giemsa", ("mgg", "maygrunwald"), ("255803006",)),
    Stain("Wright", (), ("373682001",)),
    Stain("Immunofluorescence", ("if", "immunofluorescent"), ("255800009",)),
    Stain("DAPI"),
)
"""The most frequent first."""
STAIN_NAMES = tuple(stain.name for stain in STAINS)
_ENDS = re.compile(r"(stain|staining|stained)$")
_MAX_LENGTH = 80  # of a name; longer texts are ignored


def stain_named(text: str) -> str:
    """The stain that a text consists of; "" for any other text."""
    return _KNOWN.get(_key(text), "") if len(text) <= _MAX_LENGTH else ""


def _key(text: str) -> str:
    """Letters and digits only, "haema" as "hema": "H & E stain" and "h&e" are "hande"."""
    plain = unicodedata.normalize("NFKD", text.casefold()).replace("&", "and").replace("+", "plus")
    key = "".join(letter for letter in plain if letter.isascii() and letter.isalnum())
    return _ENDS.sub("", key.replace("haema", "hema"))


_KNOWN = {_key(word): stain.name for stain in STAINS for word in (stain.name, *stain.words)}
