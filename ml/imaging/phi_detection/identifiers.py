"""Lines of text that identify a patient, and by what: a date, a time, a number, or a name.

A date identifies, a time of day where there is a date too, a number like an accession number, the
value after a caption such as "Name:" or "DOB", and every word that the case or the file's metadata
hold. All other text, such as a maker's name or a gas flow, is ``"other"``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

from ml.imaging.phi_detection.text import TextLine

TextKind: TypeAlias = Literal["date", "time", "number", "name", "other"]

MIN_WORD_LETTERS = 3
"""Fewest letters of a known word: shorter ones occur in many texts."""
MIN_NUMBER_DIGITS = 6
"""Fewest digits of a number that may be a patient's: device settings have fewer."""
_SIMILAR = 0.8
"""Smallest similarity of a recognised word to a known one of ``_SIMILAR_LETTERS`` or more: one
letter of five may be misread."""
_SIMILAR_LETTERS = 5

_DIGITS = str.maketrans(
    {"O": "0", "o": "0", "Q": "0", "D": "0", "I": "1", "l": "1", "|": "1", "S": "5", "B": "8"}
)
"""Letters that are read in place of digits."""
_MONTH = (
    r"(?:jan|feb|fev|fév|mar|mär|mrz|apr|avr|abr|may|mai|maj|jun|jui|jul|aug|aou|aoû|ago|sep|set"
    r"|oct|okt|out|nov|dec|dez|déc|dic)[a-zéûä]{0,7}\.?"
)
_SEPARATOR = r"\s?[./\-]\s?"
_DATES = (
    re.compile(rf"(?<!\d)\d{{1,2}}{_SEPARATOR}\d{{1,2}}{_SEPARATOR}(?:19|20)\d\d(?!\d)"),
    re.compile(rf"(?<!\d)(?:19|20)\d\d{_SEPARATOR}(?:0?\d|1[0-2]){_SEPARATOR}[0-3]?\d(?!\d)"),
    re.compile(
        r"(?<![\d./\-])(?:0[1-9]|[12]\d|3[01])([./\-])(?:0[1-9]|[12]\d|3[01])\1\d\d(?![\d./\-])"
    ),
    re.compile(r"(?<!\d)(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?!\d)"),
    re.compile(rf"(?<!\d)[0-3]?\d[\s.\-]*{_MONTH}[\s.,\-]*(?:19|20)?\d\d(?!\d)", re.IGNORECASE),
    re.compile(rf"(?<![a-z]){_MONTH}[\s\-]*[0-3]?\d[\s.,\-]+(?:19|20)\d\d(?!\d)", re.IGNORECASE),
)
_TIME = re.compile(r"(?<![\d:])(?:[01]?\d|2[0-3])\s?[:h]\s?[0-5]\d(?:\s?[:.]\s?[0-5]\d)?(?![\d:])")
_TOKEN = re.compile(r"[^\W_]+(?:[-/_][^\W_]+)*")
_ACCESSION = re.compile(r"[A-Z]{0,4}\d{2}[-/][A-Z]{0,2}\d{3,}", re.IGNORECASE)
"""A year and a running number, as laboratories number specimens: "S26-00094"."""
_SIZE = re.compile(r"\d+\s?[xX×]\s?\d+")

_CAPTIONS = (
    "name", "patient", "patient name", "pat", "pat name", "first name", "last name", "surname",
    "given name", "family name", "dob", "date of birth", "birth date", "birthdate", "born", "mrn",
    "id", "pid", "patient id", "pat id", "case", "case no", "case id", "accession", "accession no",
    "acc", "acc no", "hospital no", "hosp no", "nhs no", "ssn", "physician", "doctor", "surgeon",
    "operator", "ref physician", "vorname", "nachname", "geb", "geboren", "geburtsdatum",
    "geb datum", "fall", "fallnr", "fall nr", "pat nr", "arzt", "nom", "prénom", "prenom",
    "né le", "née le", "nombre", "apellido", "apellidos", "paciente", "nome", "cognome", "paziente",
    "naam", "geboortedatum",
)  # fmt: skip
_PLAIN_CAPTIONS = (
    "dob",
    "mrn",
    "ssn",
    "date of birth",
    "patient name",
    "patient id",
    "geburtsdatum",
)
"""Captions that identify without a colon after them."""
_CAPTION = re.compile(
    r"^\W*(?P<caption>[^\W\d_][^\W\d_. ]*(?:[. ]+[^\W\d_]+){0,2})\.?\s*(?:[:=#]|no\.?:?|nr\.?:?)"
    r"\s*(?P<value>.*)$",
    re.IGNORECASE,
)
_PLAIN_CAPTION = re.compile(
    rf"^\W*(?:{'|'.join(_PLAIN_CAPTIONS)})\b[\s.:]*(?P<value>.*)$", re.IGNORECASE
)
_TITLE = re.compile(r"\b(?:Dr|Prof|Mr|Mrs|Ms|Herr|Frau|Mme|Sr|Sra)\.?\s+[^\W\d_]{2,}")
_SURNAME_FIRST = re.compile(r"\W*[^\W\d_]{2,}(?:,\s?|\^)[^\W\d_]{2,}(?:[\s\^][^\W\d_]+)?\W*")
"""A complete line that is a name: "Doe, Jane" or, in DICOM's notation, "DOE^JANE"."""
_COMMON_WORDS = frozenset(
    {
        "the", "and", "for", "with", "from", "copy", "new", "test", "file", "image", "picture",
        "photo", "still", "frame", "video", "movie", "clip", "slide", "scan", "scanner", "label",
        "macro", "overview", "thumbnail", "sample", "specimen", "case", "patient", "name", "series",
        "study", "left", "right", "capture", "record", "recording", "export", "jpg", "jpeg", "png",
        "webp", "bmp", "tif", "tiff", "svs", "ndpi", "mrxs", "dcm", "zip", "mp4", "mkv", "mov",
        "avi", "webm", "mpg", "mpeg", "utf", "ascii", "rgb", "none", "unknown", "anonymous",
        "biopsy", "bladder", "bowel", "breast", "cecum", "colon", "duodenum", "esophagus",
        "gastric", "kidney", "liver", "lung", "polyp", "prostate", "rectum", "sigmoid", "skin",
        "stomach",
    }
)  # fmt: skip
"""Words of file names and metadata that many screens show."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words that decide about a line.

    Attributes:
        known: texts of the case and of the file's metadata; each of their words identifies.
        ignored: words and phrases of a lab that identify nobody, such as the name of its device.
    """

    known: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def words(self) -> frozenset[str]:
        """Known words, folded, without those that many screens show."""
        known_words = {word for text in self.known for word in _words(text)}
        return frozenset(
            word
            for word in known_words - _COMMON_WORDS
            if len(word) >= (MIN_WORD_LETTERS if not word.isdigit() else MIN_WORD_LETTERS + 1)
        )


def classify(
    pages: Sequence[Sequence[TextLine]], vocabulary: Vocabulary
) -> list[list[TextKind | None]]:
    """Classify each line by what it identifies; None for a line of ignored words only.

    Args:
        pages: the lines of each picture, or of each frame of one video: a date in one of them makes
            a time of day in any of them identify.
    """
    ignored = _ignored_pattern(vocabulary.ignored)
    texts = [[_remove_ignored(ignored, line.text) for line in page] for page in pages]
    words, shapes = vocabulary.words(), _shapes(vocabulary.known)
    kinds = [[_kind(text, words, shapes) for text in page] for page in texts]
    for page, page_texts, page_kinds in zip(pages, texts, kinds, strict=True):
        for value in _values_of_captions(page, page_texts):
            if page_kinds[value] in ("other", "time"):
                page_kinds[value] = "name"
    has_date = any(kind == "date" for page in kinds for kind in page)
    return [
        [None if not _words(text) else "other" if kind == "time" and not has_date else kind
         for text, kind in zip(page_texts, page_kinds, strict=True)]
        for page_texts, page_kinds in zip(texts, kinds, strict=True)
    ]  # fmt: skip


def _kind(text: str, words: frozenset[str], shapes: frozenset[str]) -> TextKind:
    as_digits = _digits_restored(text)
    if any(date.search(as_digits) for date in _DATES):
        return "date"
    if _has_known_word(text, words) or _TITLE.search(text) or _SURNAME_FIRST.fullmatch(text):
        return "name"
    caption = _caption_value(text)
    if caption:
        return "number" if _digit_count(caption) >= MIN_WORD_LETTERS else "name"
    if any(_is_number(token, shapes) for token in _TOKEN.findall(_SIZE.sub(" ", as_digits))):
        return "number"
    return "time" if _TIME.search(as_digits) else "other"


def _caption_value(text: str) -> str | None:
    """Text after a caption, "" if there is none; None without a caption."""
    plain = _PLAIN_CAPTION.match(text)
    if plain:
        return plain["value"].strip()
    match = _CAPTION.match(text)
    if not match:
        return None
    caption = " ".join(re.split(r"[.\s]+", match["caption"].casefold())).strip()
    is_known = caption in _CAPTIONS or any(
        len(known_caption) >= _SIMILAR_LETTERS - 1
        and _is_similar(caption, known_caption, min_ratio=0.75)
        for known_caption in _CAPTIONS
    )
    return match["value"].strip() if is_known else None


def _values_of_captions(page: Sequence[TextLine], texts: Sequence[str]) -> list[int]:
    """Lines that are the value of a caption to their left, else above them."""
    values = []
    for line, text in zip(page, texts, strict=True):
        if _caption_value(text) != "":
            continue
        right = [
            (other.x, number)
            for number, other in enumerate(page)
            if other.x >= line.x + line.width * 0.8
            and abs(_middle(other) - _middle(line)) < line.height / 2
            and other.x - line.x - line.width < 6 * line.height
        ]
        below = [
            (other.y, number)
            for number, other in enumerate(page)
            if other is not line
            and 0 < _middle(other) - _middle(line) < 2 * line.height
            and other.x < line.x + line.width
            and line.x < other.x + other.width
            and _caption_value(texts[number]) is None
        ]
        if right or below:
            values.append(min(right or below)[1])
    return values


def _middle(line: TextLine) -> float:
    return line.y + line.height / 2


def _is_number(token: str, shapes: frozenset[str]) -> bool:
    """Return whether a token is like an accession number: long, or of the shape of a known one."""
    digits = _digit_count(token)
    if digits < MIN_WORD_LETTERS + 1:
        return False
    if _shape(token) in shapes or _ACCESSION.fullmatch(token):
        return True
    letters = sum(letter.isalpha() for letter in token)
    return digits >= MIN_NUMBER_DIGITS and letters <= digits


def _shapes(texts: Iterable[str]) -> frozenset[str]:
    """Shapes of known numbers that have four digits or more."""
    tokens = [token for text in texts for token in _TOKEN.findall(text)]
    return frozenset(_shape(word) for word in tokens if _digit_count(word) > MIN_WORD_LETTERS)


def _shape(token: str) -> str:
    """ "S26-00094" as "A99-99999"."""
    return "".join(
        "9" if letter.isdigit() else "A" if letter.isalpha() else letter for letter in token
    )


def _has_known_word(text: str, words: frozenset[str]) -> bool:
    for word in _words(text):
        if word in words:
            return True
        if len(word) >= _SIMILAR_LETTERS and any(
            len(known_word) >= _SIMILAR_LETTERS and _is_similar(word, known_word)
            for known_word in words
        ):
            return True
    return False


def _is_similar(first: str, second: str, *, min_ratio: float = _SIMILAR) -> bool:
    if abs(len(first) - len(second)) > 2:
        return False
    return SequenceMatcher(None, first, second, autojunk=False).ratio() >= min_ratio


def _words(text: str) -> list[str]:
    """Words of letters and digits, without accents or case."""
    plain = unicodedata.normalize("NFKD", text)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter)).casefold()
    return re.findall(r"[^\W_]+", plain)


def _digits_restored(text: str) -> str:
    """Replace letters among digits by the digits they resemble: "l5/O3/2012"."""

    def restored(match: re.Match[str]) -> str:
        token = match[0]
        return token.translate(_DIGITS) if _digit_count(token) * 2 > len(token) else token

    return re.sub(r"[^\s]+", restored, text)


def _digit_count(text: str) -> int:
    return sum(letter.isdigit() for letter in text)


def _ignored_pattern(ignored: Iterable[str]) -> re.Pattern[str] | None:
    phrases = sorted(
        {phrase.strip() for phrase in ignored if phrase.strip()}, key=len, reverse=True
    )
    if not phrases:
        return None
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, phrases))})(?!\w)", re.IGNORECASE)


def _remove_ignored(ignored: re.Pattern[str] | None, text: str) -> str:
    return text if ignored is None else ignored.sub(" ", text)
