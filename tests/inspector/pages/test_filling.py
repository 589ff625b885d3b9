"""Filling forms of markup: it gives what Django's own does, whatever the text; and addresses are those of the names."""

from __future__ import annotations

import uuid

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st

from inspector.pages.shell import address_each
from inspector.pages.shown.markup import escape_text, fill, join

TEXTS = st.text(st.characters(categories=None) | st.sampled_from("&<>\"'{}")) | st.sampled_from(["{0}", "{{", "</b>"])
VALUES = TEXTS | TEXTS.map(SafeString) | st.integers()


@given(st.lists(VALUES, min_size=3, max_size=3))
def test_a_form_is_filled_as_django_fills_it(values: list[str | int]) -> None:
    form = '<i title="{}">{}</i>{}<b>{{}}</b>'
    filled = fill(form, *values)
    assert filled == format_html(form, *values)
    assert isinstance(filled, SafeString)
    assert fill("<u>{1}</u>{0:>4}", *values[:2]) == format_html("<u>{1}</u>{0:>4}", *values[:2])


def test_what_is_no_text_is_escaped_too() -> None:
    """Its type says what it takes; what is given to it in spite of that gets no markup into a page."""
    for value in (gettext_lazy("<b>&"), ["<b>"], ValueError("<script>"), None, 1.5, True):
        assert fill("<i>{}</i>", value) == format_html("<i>{}</i>", value)  # type: ignore[arg-type]


@given(st.lists(TEXTS | TEXTS.map(SafeString)))
def test_pieces_are_joined_as_django_joins_them(pieces: list[str]) -> None:
    joined = join(iter(pieces))
    assert joined == format_html_join("", "{}", ((piece,) for piece in pieces))
    assert isinstance(joined, SafeString)


def test_markup_is_escaped_once() -> None:
    once = escape_text("<script>&")
    assert once == escape_text(once) == fill("{}", once) == "&lt;script&gt;&amp;"


def test_addresses_are_those_that_their_names_have() -> None:
    for name in ("pages:message", "pages:conversation", "pages:around"):
        address = address_each(name, "work")
        for pk in (uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.uuid4()):
            assert address(pk) == reverse(name, args=["work", pk])
