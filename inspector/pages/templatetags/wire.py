"""Template names of `wire_markup` and `hidden_characters`: text from outside passes through one of these."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils.safestring import SafeString

from inspector.effort import check_effort
from inspector.hidden_characters import spell_hidden
from inspector.pages.shown.markup import (
    HIT_CHARACTERS,
    OPEN_CHARACTERS,
    PAGE_CHARACTERS,
    SENTENCE_CHARACTERS,
    mark_ranges,
    name_spans,
    share,
    write_english,
    write_lit,
    write_visible,
    write_wire,
)

register = template.Library()


@register.filter
def visible(text: str | None) -> SafeString:
    """Text from outside, hidden characters as badges; None is empty."""
    return write_visible(text or "")


@register.filter
def spelled(text: str | None) -> str:
    """Text from outside for an attribute or a title: hidden characters as `[U+200B]`."""
    return spell_hidden(text or "")


@register.filter
def spans(value: Any) -> str:
    """Spans as the value of `data-span`."""
    return name_spans(value or ())


@register.simple_tag
def wire(
    text: str,
    stretches: Any = (),
    linked: bool = False,
    open_characters: int = OPEN_CHARACTERS,
    page_characters: int = PAGE_CHARACTERS,
    light: Any = (),
) -> SafeString:
    """A wire cut at its stretches; over `open_characters` it is folded, over `page_characters` left out."""
    check_effort()
    return write_wire(
        text,
        stretches,
        is_linked=linked,
        open_characters=open_characters,
        page_characters=page_characters,
        light=light or (),
    )


@register.simple_tag
def english(
    segments: Any,
    linked: bool = False,
    open_characters: int = OPEN_CHARACTERS,
    page_characters: int = SENTENCE_CHARACTERS,
    light: Any = (),
) -> SafeString:
    """A sentence from its segments (text, spans, basis); folded over `open_characters`, cut at `page_characters`."""
    check_effort()
    return write_english(
        segments,
        is_linked=linked,
        open_characters=open_characters,
        page_characters=page_characters,
        light=light or (),
    )


@register.filter
def lit(value: Any, light: Any) -> SafeString:
    """` class="is-lit"` for what has these spans, where they share characters with the light of the page."""
    return write_lit(is_lit=bool(value and light) and share(value, light))[0]


@register.simple_tag
def marked(text: str, ranges: Any = (), page_characters: int = HIT_CHARACTERS) -> SafeString:
    """Text with what a search found in it highlighted."""
    return mark_ranges(text, ranges, page_characters=page_characters)
