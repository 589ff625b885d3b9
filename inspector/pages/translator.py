"""The translator: what is pasted is read, told and written in another dialect, and kept nowhere. And the glossary of a
dialect: every act, field, code and atom in plain words, from the tables that decode it.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import Any, Final

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.debug import sensitive_post_parameters

import dialects
from dialects import (
    PERFORMATIVES,
    Conversations,
    Dialect,
    LogOptions,
    LogReader,
    LogRecord,
    Reading,
    Term,
    all_dialects,
    say_cautions,
)
from inspector.accounts.models import Membership
from inspector.database import or_404
from inspector.pages.shown.fields import show_layers
from inspector.threads.selectors import CAUTION_MARK

from .shell import PageForm, list_dialects, render_page, render_part, within_workspace
from .shown.told import list_all_notes, name_dialect, shorten, show_parts, show_pieces

MAX_TEXT_LENGTH: Final = 64_000
# What is longer is a log: it belongs into an upload, which has a preview of its own.
MAX_RECORDS: Final = 50
MAX_NOTES: Final = 50
MAX_GUESSES: Final = 5

EXAMPLES: Final = (
    ("CLowl", '{"clowl":"0.2","mid":"m1","ts":1795248000,"p":"REQ","from":"planner","to":"mill",'
     '"cid":"c1","body":{"t":"search","d":{"q":"grain prices"}}}'),
    ("nSLIP", "@a3|f0|c1|S0|d1|T1|g1|k1#"),
    ("SLIP", "SLIP v3 desk shelf Request Review aisle6"),
    ("Λ Lambda", "?Uk/co"),
    ("agent-lingua", '👽MSG PST @#ai : text $j:{"s":"hello"}'),
    ("FIPA-ACL", '(request :sender (agent-identifier :name ann) :receiver (set (agent-identifier :name bob)) '
     ':content "(deliver flour 40)" :reply-with b7)'),
)  # fmt: skip


class TranslatorForm(PageForm):
    """A text, the dialect it is in where the guess is not believed, and the dialect to write it in."""

    text = forms.CharField(
        label="Text",
        max_length=MAX_TEXT_LENGTH,
        strip=False,
        error_messages={
            "required": "Paste a message first.",
            "max_length": f"This page reads up to {MAX_TEXT_LENGTH:,} characters. Upload a longer log instead: "
            "it is shown before it is loaded.",
        },
        widget=forms.Textarea(
            attrs={
                "class": "textarea mono",
                "rows": "3",
                "spellcheck": "false",
                "autocomplete": "off",
                "autocapitalize": "none",
                "autofocus": True,
            }
        ),
    )
    dialect = forms.ChoiceField(
        label="Read as",
        required=False,
        choices=partial(list_dialects, "the best guess"),
    )
    record = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)
    into = forms.ChoiceField(
        label="Write as",
        required=False,
        widget=forms.RadioSelect,
        choices=[(each.slug, each.title) for each in dialects.all_dialects() if each.slug != "prose"],
    )


@sensitive_post_parameters("text")
@within_workspace("GET", "POST")
def translate(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The form, and below it what was pasted: guesses, English, gloss, fields, notes, and the same in another dialect.

    The text comes by POST alone, so that it stands in no address, no log and no history.
    """
    form = TranslatorForm(request.POST if request.method == "POST" else None)
    context: dict[str, Any] = {"form": form, "examples": EXAMPLES, "told": None, "light": ()}
    if form.is_bound and form.is_valid():
        context["told"] = tell_text(form.cleaned_data)
    if "HX-Request" in request.headers:
        return render_part(request, membership, "translator/_told.html", context)
    status = 400 if form.is_bound and not form.is_valid() else 200
    return render_page(request, membership, "translator/translator.html", context, section="translator", status=status)


def tell_text(given: dict[str, Any]) -> dict[str, Any]:
    """Everything that the page shows of a text: its records, and one of them whole.

    Args:
        given: the cleaned data of a `TranslatorForm`.
    """
    reader = LogReader(LogOptions(max_record_bytes=settings.LIMITS["record_bytes"]))
    items = (*reader.feed(given["text"].encode("utf-8", "surrogatepass")), *reader.close())
    records = [item for item in items if isinstance(item, LogRecord)]
    conversations = Conversations()
    readings: list[Reading | None] = []
    for index, record in enumerate(records[:MAX_RECORDS]):
        if record.wire is not None:
            reading = dialects.read(record.wire, record.envelope, dialect=given["dialect"] or None)
        readings.append(None if record.wire is None else conversations.tell(reading, index))
    chosen = min(given["record"] or 0, max(0, len(readings) - 1))
    told = readings[chosen] if readings else None
    problem = records[chosen].problem if records else None
    return {
        "records": [_make_line(index, each, chosen) for index, each in enumerate(readings)],
        "more_records": max(0, len(records) - MAX_RECORDS),
        "chosen": chosen,
        "is_forced": bool(given["dialect"]),
        "problem": problem.reason if problem else "",
        **(_describe(told, given["into"]) if told else {"reading": None}),
    }


def _make_line(index: int, reading: Reading | None, chosen: int) -> dict[str, Any]:
    sentence = " ".join(message.sentence for message in reading.messages) if reading else "These bytes are no text."
    notes = (*reading.notes, *(note for each in reading.messages for note in each.notes)) if reading else ()
    mark = CAUTION_MARK if say_cautions(notes) else ""
    return {
        "number": index,
        "dialect": name_dialect(reading.dialect) if reading else "",
        "sentence": shorten(f"{sentence}{mark}"),
        "is_malformed": reading is None or bool(reading.error),
        "is_chosen": index == chosen,
    }


def _describe(reading: Reading, into: str) -> dict[str, Any]:
    pieces = show_pieces(reading)
    notes = list_all_notes(reading)
    return {
        "reading": reading,
        "title": name_dialect(reading.dialect, reading.version),
        "vocabulary": reading.vocabulary if reading.vocabulary != reading.version else "",
        "guesses": [
            {
                "slug": each.dialect,
                "title": name_dialect(each.dialect),
                "percent": round(each.score * 100),
                "why": each.why,
            }
            for each in reading.candidates[:MAX_GUESSES]
        ],
        **show_parts(reading),
        **pieces,
        "layers": show_layers(pieces["layers"], "", ()),
        "message": {"characters": len(reading.wire)},
        "notes": notes[:MAX_NOTES],
        "more_notes": max(0, len(notes) - MAX_NOTES),
        "written": [write_in(reading, dialect) for dialect in _find_others(reading)],
        "into": into if into and into != reading.dialect else next(iter(_find_others(reading))).slug,
    }


def _find_others(reading: Reading) -> list[dialects.Dialect]:
    return [each for each in dialects.all_dialects() if each.slug not in (reading.dialect, "prose")]


def write_in(reading: Reading, dialect: dialects.Dialect) -> dict[str, Any]:
    """The record written in a dialect, and read back: what its reader would be told then."""
    named = {"title": dialect.title, "slug": dialect.slug}
    try:
        encoded = dialects.encode(reading, dialect.slug)
    except dialects.EncodeError as error:
        return {**named, "wire": "", "losses": (), "lacks": (), "refusal": error.reason, "back": ""}
    back = dialects.decode(encoded.wire, dialect=dialect.slug)
    return {
        **named,
        "wire": encoded.wire,
        "losses": encoded.losses,
        "lacks": [note.text for note in list_all_notes(back) if note.severity in ("error", "warning")],
        "refusal": "",
        "back": " ".join(message.sentence for message in back.messages),
    }


MAX_QUERY_LENGTH = 100


@within_workspace("GET")
def show_glossary(request: HttpRequest, membership: Membership, dialect: str) -> HttpResponse:
    """The terms of a dialect by kind: all of them, those that hold some words (`q`), or one code (`code`)."""
    chosen = or_404(next((each for each in _dialects() if each.slug == dialect), None))
    query = request.GET.get("q", "").strip()[:MAX_QUERY_LENGTH]
    code = request.GET.get("code", "")[:MAX_QUERY_LENGTH]
    terms = [term for term in chosen.glossary if _is_meant(term, query, code)]
    context: dict[str, Any] = {
        "dialect": {"slug": chosen.slug, "title": chosen.title},
        "dialects": [{"slug": each.slug, "title": each.title} for each in _dialects()],
        "kinds": [
            {"name": name, "terms": list(same)} for name, same in groupby(_sorted(terms), lambda term: term.kind)
        ],
        "query": query,
        "code": code,
        "count": len(terms),
        "total": len(chosen.glossary),
        "performatives": list(PERFORMATIVES.items()) if not (query or code) else [],
    }
    return render_page(request, membership, "glossary/glossary.html", context, section="glossary")


def _dialects() -> list[Dialect]:
    return [dialect for dialect in all_dialects() if dialect.glossary]


def _sorted(terms: list[Term]) -> list[Term]:
    """By kind, and within a kind as the tables have them."""
    order: dict[str, int] = {}
    for term in terms:
        order.setdefault(term.kind, len(order))
    return sorted(terms, key=lambda term: order[term.kind])


def _is_meant(term: Term, query: str, code: str) -> bool:
    if code:
        return term.code == code
    text = f"{term.code} {term.name} {term.meaning}".casefold()
    return all(word in text for word in query.casefold().split())
