"""The glossary of a dialect: every act, field, code and atom in plain words, from the tables that decode it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse

from dialects import PERFORMATIVES, Dialect, Term, all_dialects
from inspector.accounts.models import Membership

from .shell import render_page, within_workspace

MAX_QUERY_LENGTH = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """The terms of one kind."""

    name: str
    terms: tuple[Term, ...]


@within_workspace("GET")
def show_glossary(request: HttpRequest, membership: Membership, dialect: str) -> HttpResponse:
    """The terms of a dialect by kind: all of them, those that hold some words (`q`), or one code (`code`)."""
    chosen = _find_dialect(dialect)
    query = request.GET.get("q", "").strip()[:MAX_QUERY_LENGTH]
    code = request.GET.get("code", "")[:MAX_QUERY_LENGTH]
    terms = [term for term in chosen.glossary if _is_meant(term, query, code)]
    context: dict[str, Any] = {
        "dialect": {"slug": chosen.slug, "title": chosen.title},
        "dialects": [{"slug": each.slug, "title": each.title} for each in _dialects()],
        "kinds": [Kind(name=name, terms=tuple(same)) for name, same in groupby(_sorted(terms), lambda term: term.kind)],
        "query": query,
        "code": code,
        "count": len(terms),
        "total": len(chosen.glossary),
        "performatives": list(PERFORMATIVES.items()) if not (query or code) else [],
    }
    return render_page(request, membership, "glossary/glossary.html", context, section="glossary")


def _dialects() -> list[Dialect]:
    return [dialect for dialect in all_dialects() if dialect.glossary]


def _find_dialect(slug: str) -> Dialect:
    for dialect in _dialects():
        if dialect.slug == slug:
            return dialect
    raise Http404


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
