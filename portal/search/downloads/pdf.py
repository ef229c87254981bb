"""PDF of a report, made only from its stored content."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import reportlab
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas as PdfCanvas
from reportlab.platypus import (
    Flowable,
    KeepTogether,
    Paragraph,
    SimpleDocTemplate,
    Spacer,
    Table,
    TableStyle,
)

from portal.search.models import Report, ReportInterpretation
from portal.search.selectors.reports import (
    ReportContent,
    ReportRegionContent,
    bar_length,
    length_text,
)

_MARGIN, _FOOT = 16 * mm, 18 * mm
_PICTURE = (54 * mm, 40.5 * mm)  # 150 dots per inch of a 320 px picture; three fit side by side
_ACROSS = 3
_INK, _MUTED, _LINE = (colors.HexColor(code) for code in ("#11252a", "#54676c", "#d3dcdc"))
_DEJAVU = Path("/usr/share/fonts/truetype/dejavu")
"""Debian's fonts-dejavu-core: Latin, Greek, Cyrillic; without it, ReportLab's own Latin."""
_WARNING = (
    "Similar regions are not a diagnosis. The list shows only what the search finds alike among "
    "the regions that the lab has drawn."
)


SCALE_UNKNOWN = (
    "Scale unknown. Nobody had set the pixel size of the image that was searched with. The search "
    "took it for 0.5 µm, so regions of another magnification may have been found."
)


@dataclass(frozen=True, slots=True)
class ReportHit:
    """Region of a report to print.

    Attributes:
        picture: JPEG; None if there is none.
    """

    rank: int
    content: ReportRegionContent
    picture: bytes | None


def report_pdf(
    report: Report,
    hits: Sequence[ReportHit],
    *,
    marks: str,
    interpretation: ReportInterpretation | None,
    address: str,
) -> bytes:
    """Render the report on numbered A4 pages, each with the lab's name.

    Args:
        hits: Remaining hits, best first.
        marks: Text from ``report_marks``.
        interpretation: A person's text about the results, printed before them.
        address: URL of the report in the portal.
    """
    content, style = ReportContent.from_json(report.content), _styles()
    story: list[Flowable] = [
        Paragraph("Similar cases", style["title"]),
        Paragraph(
            _text(f"Searched with: {report.name}. {report.created_at:%Y-%m-%d %H:%M} UTC"),
            style["muted"],
        ),
        Spacer(1, 4 * mm),
        _head(report, content, marks, style),
        Spacer(1, 3 * mm),
        *_interpretation(interpretation, style),
        *_tallies(content, style),
        *_remarks(content, len(hits), style),
        Spacer(1, 3 * mm),
        *_grid(hits, style),
        Spacer(1, 4 * mm),
        KeepTogether(
            [Paragraph(_text(line), style["muted"]) for line in _colophon(report, content, address)]
        ),
    ]
    stream = io.BytesIO()
    document = SimpleDocTemplate(
        stream,
        pagesize=A4,
        leftMargin=_MARGIN,
        rightMargin=_MARGIN,
        topMargin=_MARGIN + 6 * mm,
        bottomMargin=_FOOT,
        title=f"Similar cases: {report.name}",
        author=report.lab.name,
    )
    created_line = f"{report.created_at:%Y-%m-%d %H:%M} UTC, {report.made_by}"
    document.build(story, canvasmaker=_numbered_canvas(report.lab.name, created_line))
    return stream.getvalue()


class _Shown(Flowable):
    """A picture with its scale bar."""

    def __init__(self, picture: bytes | None, width_um: float | None) -> None:
        super().__init__()
        self.width, self.height = _PICTURE
        self._picture, self._width_um = picture, width_um

    def draw(self) -> None:
        """Draw the picture, or a frame without one."""
        pdf = self.canv
        if self._picture is None:
            pdf.setStrokeColor(_LINE)
            pdf.rect(0, 0, self.width, self.height)
            pdf.setFillColor(_MUTED)
            pdf.setFont(_fonts()[0], 8)
            pdf.drawCentredString(self.width / 2, self.height / 2, "no picture")
            return
        image = ImageReader(io.BytesIO(self._picture))
        pdf.drawImage(image, 0, 0, self.width, self.height)
        pdf.setStrokeColor(_LINE)
        pdf.rect(0, 0, self.width, self.height)
        if self._width_um:
            self._bar(pdf, self._width_um)

    def _bar(self, pdf: PdfCanvas, width_um: float) -> None:
        length_um = bar_length(width_um)
        length = length_um / width_um * self.width
        left, low = self.width - length - 2 * mm, 2 * mm
        pdf.setFillColor(colors.white)
        pdf.rect(left - 1 * mm, low - 1 * mm, length + 2 * mm, 5.4 * mm, stroke=0, fill=1)
        pdf.setFillColor(colors.black)
        pdf.rect(left, low, length, 0.6 * mm, stroke=0, fill=1)
        pdf.setFont(_fonts()[0], 6.5)
        pdf.drawCentredString(left + length / 2, low + 1.5 * mm, length_text(length_um))


def _head(
    report: Report, content: ReportContent, marks: str, style: dict[str, ParagraphStyle]
) -> Table:
    encoder, index = content.encoder, content.index
    rows = [
        *content.facts,
        ("Filters", "; ".join(f"{title}: {text}" for title, text in content.filters) or "none"),
        ("Same patient", "left out" if content.leaves_patient_out else "included"),
        ("Results", f"{content.hits}, {content.order}"),
        *([("Marks", marks)] if marks else []),
        *_search_lines(content),
        ("Encoder", f"{encoder[0]} {encoder[1]}"),
        (
            "Index",
            f"version {index[0]}, {index[2]} newer" if index[0] else f"none, {index[2]} regions",
        ),
        ("Searched by", report.made_by),
    ]
    facts = Table(
        [
            [Paragraph(_text(title), style["muted"]), Paragraph(_text(text), style["body"])]
            for title, text in rows
        ],
        colWidths=[28 * mm, 88 * mm],
        style=TableStyle(
            [
                ("VALIGN", (0, 0), (-1, -1), "TOP"),
                ("TOPPADDING", (0, 0), (-1, -1), 1),
                ("BOTTOMPADDING", (0, 0), (-1, -1), 1),
            ]
        ),
    )
    picture = _Shown(bytes(report.picture) if report.picture else None, content.width_um)
    return Table(
        [[picture, facts]], colWidths=[_PICTURE[0] + 4 * mm, None], style=_PLAIN, hAlign="LEFT"
    )


def _search_lines(content: ReportContent) -> list[tuple[str, str]]:
    if content.searched is None:
        return []
    regions, cases = content.searched
    return [("Searched", f"{_count(regions, 'region')} of {_count(cases, 'case')}")]


def _interpretation(
    row: ReportInterpretation | None, style: dict[str, ParagraphStyle]
) -> list[Flowable]:
    if row is None:
        return []
    lines = [Paragraph(_text(line) or "&nbsp;", style["body"]) for line in row.text.split("\n")]
    written = f"{row.written_by}, {row.created_at:%Y-%m-%d %H:%M} UTC, version {row.version}"
    return [
        Paragraph("Interpretation", style["head"]),
        *lines,
        Paragraph(_text(written), style["muted"]),
        Spacer(1, 3 * mm),
    ]


def _tallies(content: ReportContent, style: dict[str, ParagraphStyle]) -> list[Flowable]:
    flowables: list[Flowable] = []
    for title, _, votes in content.tallies:
        lines = [[Paragraph(title, style["head"]), "", ""]]
        for vote in votes:
            base = (
                f"in the searched set: {vote['base'][0]} of {_count(vote['base'][1], 'case')}"
                if vote["base"]
                else ""
            )
            support = f"{_count(vote['cases'], 'case')}, {_count(vote['regions'], 'region')}"
            lines.append(
                [Paragraph(_text(text), style["body"]) for text in (vote["name"], support, base)]
            )
        flowables.append(
            Table(lines, colWidths=[58 * mm, 46 * mm, 70 * mm], style=_ROWS, hAlign="LEFT")
        )
    return flowables


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _remarks(content: ReportContent, left: int, style: dict[str, ParagraphStyle]) -> list[Flowable]:
    remarks = []
    if content.scale_unknown:
        remarks.append(SCALE_UNKNOWN)
    if content.nothing_close:
        remarks.append("Nothing is close: unrelated tissue often comes this close.")
    if left < content.hits:
        remarks.append(
            f"{content.hits - left} of {content.hits} results are no longer kept, or not shown to "
            "the person who asked for these pages."
        )
    return [Paragraph(_text(remark), style["warn"]) for remark in remarks]


def _grid(hits: Sequence[ReportHit], style: dict[str, ParagraphStyle]) -> list[Flowable]:
    rows: list[Flowable] = []
    for start in range(0, len(hits), _ACROSS):
        cells: list[Any] = [_cell(hit, style) for hit in hits[start : start + _ACROSS]]
        cells += [""] * (_ACROSS - len(cells))
        rows.append(
            Table([cells], colWidths=[_PICTURE[0] + 4 * mm] * _ACROSS, style=_PLAIN, hAlign="LEFT")
        )
    return rows


def _cell(hit: ReportHit, style: dict[str, ParagraphStyle]) -> list[Flowable]:
    region = hit.content
    likeness = ""
    if region.is_close is False:
        likeness = "not close"
    elif region.closer_than:
        likeness = f"closer than {region.closer_than} % of unrelated regions"
    elif region.distance is not None:
        likeness = f"distance {region.distance:.3f}"
    label = region.label[0] if region.label else "no label"
    more_hits = f", {region.also} more of this case among the nearest" if region.also else ""
    about = ", ".join(word for word in (region.organ, region.stain, region.diagnosis) if word)
    lines = [
        (f"<b>{hit.rank}</b>  {_text(region.name or 'Region')} on {_text(region.image)}", "body"),
        (_text(f"{region.accession}{more_hits}"), "body"),
        (_text(f"{label}, {region.review_state}"), "muted"),
        (_text(about), "muted"),
        (_text(likeness), "muted"),
        ("scale unknown" if region.scale_unknown else "", "warn"),
    ]
    texts = [Paragraph(text, style[name]) for text, name in lines if text]
    return [_Shown(hit.picture, region.width_um), Spacer(1, 1 * mm), *texts]


def _colophon(report: Report, content: ReportContent, address: str) -> list[str]:
    name, version, config_hash = content.encoder
    return [
        _WARNING,
        f"{name} {version} ({config_hash[:16]}); index version {content.index[0]}, "
        f"{content.index[1]} regions in its file and {content.index[2]} newer. "
        '"Closer than": share of regions that have nothing to do with each other and lie farther '
        "apart. Each case has one vote; a region twice as far away has half the weight.",
        f"Report {report.pk}, {address}",
    ]


def _numbered_canvas(lab: str, created_line: str) -> type[PdfCanvas]:
    """Canvas class that prints page numbers with their total."""

    class Numbered(PdfCanvas):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._pages: list[dict[str, Any]] = []

        def showPage(self) -> None:  # noqa: N802
            self._pages.append(dict(self.__dict__))
            self._startPage()

        def save(self) -> None:
            for number, page in enumerate(self._pages, start=1):
                self.__dict__.update(page)
                self._around(number, len(self._pages))
                super().showPage()
            super().save()

        def _around(self, number: int, of: int) -> None:
            width, height = A4
            self.setFillColor(_MUTED)
            self.setStrokeColor(_LINE)
            self.setFont(_fonts()[1], 9)
            self.drawString(_MARGIN, height - _MARGIN, _drawable(lab))
            self.setFont(_fonts()[0], 8)
            self.line(
                _MARGIN, height - _MARGIN - 2 * mm, width - _MARGIN, height - _MARGIN - 2 * mm
            )
            self.drawString(_MARGIN, 10 * mm, _drawable(created_line))
            self.drawRightString(width - _MARGIN, 10 * mm, f"Page {number} of {of}")

    return Numbered


@lru_cache(maxsize=1)
def _fonts() -> tuple[str, str]:
    """Register the fonts; names of the plain and the bold one."""
    packaged = Path(reportlab.__file__).parent / "fonts"
    for folder, files in (
        (_DEJAVU, ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")),
        (packaged, ("Vera.ttf", "VeraBd.ttf")),
    ):
        if all((folder / file).is_file() for file in files):
            names = ("Report", "Report-Bold")
            for name, file in zip(names, files, strict=True):
                pdfmetrics.registerFont(TTFont(name, str(folder / file)))
            pdfmetrics.registerFontFamily(
                "Report", normal=names[0], bold=names[1], italic=names[0], boldItalic=names[1]
            )
            return names
    return "Helvetica", "Helvetica-Bold"


def _drawable(text: str) -> str:
    """Text with question marks for characters missing in the font."""
    face = getattr(pdfmetrics.getFont(_fonts()[0]).face, "charToGlyph", None)
    if face is None:
        return text.encode("latin-1", "replace").decode("latin-1")
    return "".join(letter if ord(letter) in face else "?" for letter in text)


def _text(text: str) -> str:
    return escape(_drawable(text))


def _styles() -> dict[str, ParagraphStyle]:
    plain, bold = _fonts()
    body = ParagraphStyle("body", fontName=plain, fontSize=8.5, leading=11, textColor=_INK)
    return {
        "body": body,
        "muted": ParagraphStyle("muted", parent=body, fontSize=7.5, leading=9.5, textColor=_MUTED),
        "head": ParagraphStyle("head", parent=body, fontName=bold),
        "warn": ParagraphStyle("warn", parent=body, fontName=bold, spaceBefore=2 * mm),
        "title": ParagraphStyle("title", parent=body, fontName=bold, fontSize=17, leading=22),
    }


_PLAIN = TableStyle(
    [
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("LEFTPADDING", (0, 0), (-1, -1), 0),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 8),
    ]
)
_ROWS = TableStyle(
    [("LINEBELOW", (0, 0), (-1, -1), 0.4, _LINE), ("LEFTPADDING", (0, 0), (-1, -1), 0)]
)
