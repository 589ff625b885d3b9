"""The trail: who did what, when and on what, narrowed and searched, and as a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import reverse
from django.utils.http import urlencode

from inspector.accounts.models import Membership
from inspector.accounts.selectors import list_api_keys, list_members
from inspector.audit.reviews.bindings import list_told_deeds
from inspector.audit.rules import name_rule
from inspector.database import make_storable
from inspector.search.selectors import read_key, write_key
from inspector.trail.guard import ask_guard
from inspector.trail.models import DEEDS, Deed
from inspector.trail.services import Thing, Wanted, record_deed

from .answers import answer_rows
from .lists import cut_page
from .shell import parse_id, render_page, within_workspace, write_query
from .templatetags.marks import write_moment

PAGE_ROWS: Final = 50
MAX_WORDS_LENGTH: Final = 200
# So many API keys are offered to choose from; the others are found from a deed of theirs.
MAX_KEYS: Final = 50
FILTERS: Final = ("who", "deed", "since", "until", "q", "about")
COLUMNS: Final = (
    *("number", "at", "who_kind", "who_id", "who", "address", "deed", "told"),
    *("object_kind", "object_id", "object", "about", "details"),
)
_BATCH: Final = 1000
# What a detail of an entry is called on the page, where that is not its name with spaces.
_DETAILS: Final = {"door": "via", "form": "format", "is_masked": "secrets", "sha256": "SHA-256"}
# The page of an object, where it has one and looking at it is no deed of its own.
_PAGES: Final = {
    "conversation": "pages:conversation",
    "message": "pages:message",
    "finding": "pages:finding",
    "delivery": "pages:delivery",
    "export": "pages:export",
    "comment": "pages:comment",
}


@within_workspace("GET", needs="auditor")
def show_trail(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The deeds, newest first, by keyset; owners and auditors read it, and reading it is no deed."""
    asked, wanted = _read_filters(request, membership)
    rows = list_told_deeds(workspace_id=membership.workspace_id, wanted=wanted, reader=membership)
    place = read_key(request.GET.get("before"), membership.workspace.pk, of="trail")
    if place is not None:
        rows = rows.filter(sequence__lt=int(place[0]))
    deeds, last = cut_page(rows[: PAGE_ROWS + 1], PAGE_ROWS)
    slug = membership.workspace.slug
    more = write_key([last.sequence], membership.workspace.pk, of="trail") if last else None
    kept = urlencode({name: value for name, value in asked.items() if value})
    context = {
        "deeds": [_describe(deed, slug, membership.user.time_zone) for deed in deeds],
        "filters": asked,
        "is_filtered": bool(kept),
        "people": _list_people(membership, asked["who"], deeds),
        "groups": [(name, list(kinds)) for name, kinds in groupby(DEEDS.values(), key=lambda kind: kind.group)],
        "guard": ask_guard(),
        "downloads": [
            (name, f"{reverse(f'pages:trail-{form}', args=[slug])}{f'?{kept}' if kept else ''}")
            for name, form in (("CSV", "csv"), ("JSON Lines", "jsonl"))
        ],
        "older_url": write_query(request, before=more) if more else None,
        "newest_url": write_query(request, before=None) if place is not None else None,
    }
    return render_page(request, membership, "trail/trail.html", context, section="trail")


@within_workspace("GET", needs="auditor")
def download(request: HttpRequest, membership: Membership, form: str) -> StreamingHttpResponse:
    """What the filters leave of the trail as a file, newest first; that it was taken is a deed itself."""
    asked, wanted = _read_filters(request, membership)
    taken = record_deed(
        "trail.exported",
        workspace_id=membership.workspace_id,
        by=membership,
        on=Thing("trail", "", membership.workspace.name),
        details={"form": form, "filters": {name: value for name, value in asked.items() if value}},
    )
    rows = _list_rows(membership, wanted, before=taken.sequence)
    return answer_rows(rows, COLUMNS, form=form, name=f"trail-{membership.workspace.slug}")


def _read_filters(request: HttpRequest, membership: Membership) -> tuple[dict[str, str], Wanted]:
    """The filters as they are shown, and what they mean; one that means nothing is left empty."""
    given = {name: make_storable(request.GET.get(name, "").strip())[:MAX_WORDS_LENGTH] for name in FILTERS}
    kind, _, actor_id = given["who"].partition(":")
    if kind not in Deed.Actor.values:
        given["who"] = ""
    if given["deed"] not in DEEDS:
        given["deed"] = ""
    about = parse_id(given["about"]) or parse_id(given["q"])
    given["about"] = str(about) if about else ""
    if parse_id(given["q"]):
        given["q"] = ""
    zone = ZoneInfo(membership.user.time_zone)
    since, until = _read_day(given["since"], zone), _read_day(given["until"], zone)
    given["since"], given["until"] = given["since"] if since else "", given["until"] if until else ""
    return given, Wanted(
        actor=(kind, actor_id[:64]) if given["who"] else None,
        code=given["deed"],
        about=about,
        words=given["q"],
        since=since,
        # The last day belongs to it.
        until=until + timedelta(days=1) if until else None,
    )


def _read_day(text: str, zone: ZoneInfo) -> datetime | None:
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=zone)
    except ValueError:
        return None
    # At the ends of the calendar there is no day before or after, in some zone.
    return day if 1900 <= day.year <= 9000 else None


def _list_people(membership: Membership, chosen: str, deeds: Sequence[Deed]) -> list[tuple[str, str]]:
    """Who can be chosen: members and API keys of today, the product, and whoever is chosen."""
    members = [each.as_actor() for each in list_members(workspace=membership.workspace)]
    keys = [each.as_actor() for each in list_api_keys(workspace=membership.workspace)[:MAX_KEYS]]
    people = [(f"{each.kind}:{each.id}", each.name) for each in (*members, *keys)]
    people += [("product:", "The product"), ("operator:", "The operator")]
    if chosen and chosen not in dict(people):
        people.insert(0, (chosen, deeds[0].actor_name if deeds else "somebody who was here"))
    return people


def _describe(deed: Deed, slug: str, zone: str) -> dict[str, Any]:
    page = _PAGES.get(deed.object_kind)
    return {
        "row": deed,
        "who_url": f"?{urlencode({'who': f'{deed.actor_kind}:{deed.actor_id}'})}",
        "is_member": deed.actor_kind == Deed.Actor.MEMBER,
        # The name stands before it, in a column of its own.
        "told": deed.told.removeprefix(deed.actor_name).strip(),
        "group": deed.kind.group if deed.kind else "",
        "url": reverse(page, args=[slug, deed.object_id]) if page and parse_id(deed.object_id) else None,
        "about_url": f"?{urlencode({'about': deed.object_id})}" if parse_id(deed.object_id) else None,
        "details": [
            (_DETAILS.get(name, name.replace("_", " ")), _spell(_name_codes(name, value, zone)))
            for name, value in deed.details.items()
            # Whether secrets are included is the other side of whether they are masked.
            if value not in ("", None, {}, []) and name != "include_secrets"
        ],
    }


def _name_codes(name: str, value: Any, zone: str) -> Any:
    """What a deed keeps by code, as people call it; times are in the reader's zone, as those of the entries are."""
    if name == "rules" and isinstance(value, list):
        return [name_rule(str(each)) for each in value]
    if name == "is_masked":
        return "masked" if value else "included"
    if (name in ("until", "hour") or name.endswith("_at")) and isinstance(value, str):
        with suppress(ValueError):
            return write_moment(datetime.fromisoformat(value), zone, "short")
    return value


def _spell(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_spell(each) for each in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_spell(each)}" for name, each in value.items())
    return str(value)


def _list_rows(membership: Membership, wanted: Wanted, *, before: int) -> Iterator[dict[str, Any]]:
    rows = list_told_deeds(workspace_id=membership.workspace_id, wanted=wanted, reader=membership)
    while page := list(rows.filter(sequence__lt=before)[:_BATCH]):
        for deed in page:
            values = (deed.sequence, deed.at.isoformat(), deed.actor_kind, deed.actor_id, deed.actor_name, deed.address)
            objects = (deed.object_kind, deed.object_id, deed.object_label, [str(each) for each in deed.about])
            yield dict(zip(COLUMNS, (*values, deed.code, deed.told, *objects, deed.details), strict=True))
        before = page[-1].sequence
