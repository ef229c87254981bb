"""Small pieces of markup that every page uses: icons, times."""

from __future__ import annotations

from datetime import date, datetime

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.core.models import BaseModel, edit_tag

register = template.Library()


@register.simple_tag
def icon(name: str, classes: str = "", label: str = "") -> SafeString:
    """A symbol of ``static/img/icons.svg``; silent to screen readers unless it has a label."""
    label_attributes = (
        format_html('role="img" aria-label="{}"', label)
        if label
        else SafeString('aria-hidden="true"')
    )
    return format_html(
        '<svg class="icon icon--{} {}" {}><use href="{}#{}"></use></svg>',
        name,
        classes,
        label_attributes,
        static("img/icons.svg"),
        name,
    )


@register.filter
def in_fours(text: str) -> str:
    """A long key in groups, as people read and type it."""
    return " ".join(text[start : start + 4] for start in range(0, len(text), 4))


@register.simple_tag
def moment(
    value: datetime | date | None, style: str = "date", missing: str = "–"
) -> str | SafeString:
    """A time in the reader's zone, or a date.

    Args:
        value: Time, date or nothing.
        style: "date"; "ago" for "3 min ago"; "day" without the time.
        missing: Text where there is no value.
    """
    if value is None:
        return missing
    return format_html(
        '<time data-local="{}" datetime="{}">{}</time>',
        style,
        value.isoformat(),
        value.strftime("%Y-%m-%d %H:%M UTC") if isinstance(value, datetime) else value.isoformat(),
    )


@register.simple_tag
def edit_tag_input(row: BaseModel) -> SafeString:
    """Hidden field of a form with the version of the edited row that the page shows."""
    return format_html('<input type="hidden" name="edit_tag" value="{}">', edit_tag(row))


@register.filter
def edit_tag_of(row: BaseModel) -> str:
    """Edit tag of a row, for a script that sends it as ``If-Match``."""
    return edit_tag(row)
