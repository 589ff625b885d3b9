"""Aids to a search: suggestions while a query is typed, and searches saved under a name, shared or not.

Suggested are names, closed lists of values, and values that the newest messages hold; and a thing is found by its id or
its name alone, within one workspace: each question is answered from an index.
"""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, NamedTuple

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Left

from inspector.accounts.models import Channel, Membership, Workspace
from inspector.accounts.selectors import list_channels
from inspector.browsing.transcripts import mark_sentences
from inspector.database import read_from
from inspector.intake.identity import digest_texts
from inspector.intake.models import Delivery
from inspector.search.registry import ALIASES, PATHS
from inspector.threads import terms
from inspector.threads.agents import CONVENTIONS, MAX_MEANINGS, Labels, load_labels
from inspector.threads.keys import key_of_id, key_of_trace
from inspector.threads.models import Agent, AgentTotal, Conversation, Message, Trace
from inspector.threads.terms import MARK_CHARACTERS, fold, mark_workspace
from inspector.trail.services import Thing, record_deed

from . import registry
from .language import LITERAL, Term, quote
from .models import MAX_NAME_LENGTH, MAX_SAVED, SavedSearch
from .selectors import read_query

MAX_SUGGESTIONS: Final = 10
MAX_SAID: Final = 3
# So many of the newest messages are looked through for values.
LOOKED_THROUGH: Final = 3000
MAX_MENDED: Final = 2
_TYPED: Final = re.compile(r'(?:^|[\s(])(-?)(?:([^\s":()]+):(>=|<=|>|<|=)?)?([^\s"():]*)$')
_BESIDES: Final = ("glyph=", "~")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What may stand in the place of what was typed last, and what it means."""

    text: str
    about: str


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Suggestions for the part of a query that begins at `start` and ends where it was cut."""

    start: int
    items: tuple[Suggestion, ...]


def suggest(*, workspace: Workspace, text: str) -> Suggestions:
    """What may be meant by the end of a query that is being typed.

    Args:
        workspace: whose values are suggested.
        text: the query up to the place of writing.
    """
    found = _TYPED.search(text)
    if found is None:
        return Suggestions(len(text), ())
    _, name, operator, typed = found.groups()
    if name is None:
        start = len(text) - len(typed)
        return Suggestions(start, tuple(_suggest_names(workspace, typed)) if typed else ())
    value = typed.rsplit(",", 1)[-1]
    return Suggestions(
        len(text) - len(value), tuple(_suggest_values(workspace, name, value, is_literal=operator == LITERAL))
    )


def _suggest_names(workspace: Workspace, typed: str) -> list[Suggestion]:
    names = registry.names()
    found = [Suggestion(f"{name}:", about) for name, about in names.items() if name.startswith(typed.casefold())]
    if len(found) < MAX_SUGGESTIONS and any(
        path.startswith(typed.casefold()) or typed.startswith(path) for path in PATHS
    ):
        paths = {atom.partition("=")[0] for atom in _find_atoms(workspace, typed.casefold())}
        found += [Suggestion(f"{path}:", "a field of the messages") for path in sorted(paths) if "." in path]
    return found[:MAX_SUGGESTIONS]


def _suggest_values(workspace: Workspace, name: str, typed: str, *, is_literal: bool) -> list[Suggestion]:
    closed = registry.list_values(name)
    if name == "channel":
        closed = tuple(_quote(channel.name).text for channel in list_channels(workspace=workspace))
    if closed is not None:
        return [Suggestion(value, "") for value in closed if value.startswith(typed.casefold())][:MAX_SUGGESTIONS]
    term = registry.find_term(ALIASES.get(name, name))
    if term is None:
        return []
    beginning = terms.term(term.atom, typed)
    said = [atom[len(term.atom) + 1 :] for atom in _find_atoms(workspace, beginning)]
    if not term.is_agent or is_literal:
        return [_quote(value) for value in said[:MAX_SUGGESTIONS]]
    labels = load_labels(workspace_id=workspace.pk)
    others: dict[str, list[Called]] = defaultdict(list)
    is_sender = term.atom == "sender"
    for called in _list_called(workspace=workspace, labels=labels, beginning=typed, is_sender=is_sender):
        others[terms.fold(called.text)].append(called)
    found = [_quote(value, _say_called(others.pop(value, ()), is_also=True)) for value in said]
    # Who is called so where nobody bears the name comes first: nothing else of it has been seen.
    return [*(_quote(each[0].text, _say_called(each)) for each in others.values()), *found][:MAX_SUGGESTIONS]


class Called(NamedTuple):
    """An agent that people call by another name than its own, and the dialect whose convention says so, if any."""

    text: str
    name: str
    dialect: str = ""


def _list_called(*, workspace: Workspace, labels: Labels, beginning: str, is_sender: bool) -> list[Called]:
    """The agents that said or were told something and are called by a name that begins so; one statement."""
    folded = fold(beginning)
    found = [
        Called(agent.friendly_name, agent.name)
        for agent in labels.agents.values()
        if agent.friendly_name and fold(agent.friendly_name).startswith(folded)
    ]
    spoken = Q(sent__gt=0) if is_sender else Q(received__gt=0)
    customs = ((dialect, *custom) for dialect, names in CONVENTIONS.items() for custom in names.items())
    used = [(dialect, on_wire, text) for dialect, on_wire, text in customs if fold(text).startswith(folded)]
    totals = AgentTotal.objects.filter(spoken, workspace=workspace, dialect__in={dialect for dialect, _, _ in used})
    rows = totals.filter(agent__name__in={on_wire for _, on_wire, _ in used}) if used else totals.none()
    seen = set(rows.filter(agent__friendly_name="", agent__same_as=None).values_list("dialect", "agent__name"))
    found += [Called(text, on_wire, dialect) for dialect, on_wire, text in used if (dialect, on_wire) in seen]
    return sorted(found, key=lambda called: (fold(called.text), called.dialect, called.name))[:MAX_MEANINGS]


def _is_called(workspace: Workspace, atom: str, text: str) -> bool:
    labels = load_labels(workspace_id=workspace.pk)
    called = _list_called(workspace=workspace, labels=labels, beginning=text, is_sender=atom == "sender")
    return any(fold(each.text) == fold(text) for each in called)


def _say_called(agents: Sequence[Called], *, is_also: bool = False) -> str:
    if not agents:
        return ""
    names = " and ".join(f"{each.name} in {each.dialect}" if each.dialect else each.name for each in agents[:MAX_SAID])
    more = f" and {len(agents) - MAX_SAID} more" if len(agents) > MAX_SAID else ""
    return f"{'also ' if is_also else ''}what {names}{more} is called"


def _quote(value: str, about: str = "") -> Suggestion:
    needs_quotes = any(sign in value for sign in (*' ,"():', "||", "&&")) or value.startswith((">", "<", "="))
    return Suggestion(quote(value) if needs_quotes else value, about)


def mend_terms(*, workspace: Workspace, query: str, terms_of_query: Iterable[Term]) -> str:
    """The query with the nearest names below a name, and values, that the newest messages have, where none has its own.

    Empty where there is nothing to mend. Such names and values are listed nowhere, so that they cannot be refused. At
    most `MAX_MENDED` terms are looked for.
    """
    mended, count = query, 0
    for term in sorted(terms_of_query, key=lambda term: -term.start):
        exact = registry.find_term(term.name) if term.name else None
        if term.name is None or exact is None or count == MAX_MENDED:
            continue
        if is_path := registry.is_path(term.name):
            top = term.name.partition(".")[0] + "."
            said, seen = term.name, {atom.partition("=")[0] for atom in _find_atoms(workspace, top)}
        elif exact.values is None and len(term.values) == 1 and not term.is_prefix:
            beginning = terms.term(exact.atom, "")
            said, seen = term.text, {atom.removeprefix(beginning) for atom in _find_atoms(workspace, beginning)}
        else:
            continue
        count += 1
        close = get_close_matches(fold(said), sorted(seen), n=1)
        if fold(said) in seen or not close or (exact.is_agent and _is_called(workspace, exact.atom, said)):
            continue
        if is_path:
            written = mended[term.start : term.end].replace(f"{said}:", f"{close[0]}:", 1)
        else:
            written = f"{'-' if term.is_negated else ''}{term.name}:{term.operator}{_quote(close[0]).text}"
        mended = mended[: term.start] + written + mended[term.end :]
    return mended if mended != query else ""


def _find_atoms(workspace: Workspace, beginning: str) -> list[str]:
    """The exact terms of the newest messages that begin so, the commonest first; one short statement."""
    if beginning.startswith(_BESIDES):
        return []
    pattern = beginning.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    with read_from().cursor() as cursor:
        cursor.execute(
            "SELECT substr(atom, %s) FROM (SELECT unnest(newest.atoms) AS atom FROM (SELECT atoms FROM threads_message "
            "WHERE workspace_id = %s ORDER BY order_time DESC, id DESC LIMIT %s) AS newest) AS seen "
            "WHERE atom LIKE %s GROUP BY atom ORDER BY count(*) DESC, atom LIMIT 50",
            [MARK_CHARACTERS + 1, workspace.pk, LOOKED_THROUGH, f"{mark_workspace(workspace.pk)}{pattern}%"],
        )
        return [atom for (atom,) in cursor.fetchall()]


MAX_RECENT: Final = 60
MAX_BUSIEST: Final = 300
MAX_FOUND: Final = 5

MAX_SUGGESTED_LENGTH: Final = 200


@dataclass(frozen=True, slots=True)
class Found:
    """A thing that was found: its kind (message, conversation, trace, delivery or agent), its id, its name."""

    kind: str
    id: uuid.UUID
    title: str


def find_by_uuid(*, workspace: Workspace, wanted: uuid.UUID) -> list[Found]:
    """What bears this id of ours: a message, all of a record, a conversation, a trace, a delivery or an agent."""
    messages = Message.objects.filter(Q(pk=wanted) | Q(record=wanted), workspace=workspace)
    found = _find_messages(messages.order_by("part"))
    named = Conversation.objects.filter(workspace=workspace, pk=wanted).values_list("pk", "title", "native_id")
    found += [Found("conversation", pk, title or native_id) for pk, title, native_id in named]
    traces = Trace.objects.filter(workspace=workspace, pk=wanted, last_at__isnull=False).values_list("pk", "native_id")
    found += [Found("trace", pk, native_id) for pk, native_id in traces]
    files = Delivery.objects.filter(workspace=workspace, pk=wanted).exclude(state=Delivery.State.STAGED)
    found += [Found("delivery", pk, name or str(pk)) for pk, name in files.values_list("pk", "file_name")]
    agents = Agent.objects.filter(workspace=workspace, pk=wanted).values_list("pk", "name")
    return [*found, *(Found("agent", pk, name) for pk, name in agents)]


def find_by_native_id(*, workspace: Workspace, native_id: str, digest: bytes | None = None) -> list[Found]:
    """The messages, conversations and traces that a wire calls so, the newest first of each.

    Args:
        native_id: as the wire has it, in its own letter case.
        digest: the SHA-256 of a delivery to look for too.
    """
    channels = Channel.objects.filter(workspace=workspace).values("pk")
    messages = Message.objects.shown().filter(workspace=workspace, channel__in=channels, id_key=key_of_id(native_id))
    found = _find_messages(messages.order_by("-order_time", "-pk"))
    key = digest_texts("conversation", native_id)
    named = Conversation.objects.filter(workspace=workspace, channel__in=channels, key=key, last_at__isnull=False)
    for pk, title in named.order_by("-last_at").values_list("pk", "title")[:MAX_FOUND]:
        found.append(Found("conversation", pk, title or native_id))
    traces = Trace.objects.filter(workspace=workspace, key=key_of_trace(native_id), last_at__isnull=False)
    found += [Found("trace", pk, native_id) for pk in traces.values_list("pk", flat=True)[:MAX_FOUND]]
    if digest is not None:
        files = Delivery.objects.filter(workspace=workspace, sha256=digest).exclude(state=Delivery.State.STAGED)
        rows = files.order_by("-received_at").values_list("pk", "file_name")[:MAX_FOUND]
        found += [Found("delivery", pk, name or str(pk)) for pk, name in rows]
    return found


def _find_messages(messages: QuerySet[Message]) -> list[Found]:
    found = messages.defer("body", "words", "atoms")[:MAX_FOUND]
    return [Found("message", pk, said) for pk, said in mark_sentences(found).items()]


def list_recent(*, workspace: Workspace, among: Collection[uuid.UUID] | None = None) -> list[Conversation]:
    """The conversations with the latest activity, of all or among some, with what they are called."""
    rows = Conversation.objects.filter(workspace=workspace, last_at__isnull=False)
    if among is not None:
        rows = rows.filter(pk__in=among)
    return list(rows.only("pk", "title", "subject", "native_id").order_by("-last_at", "-id")[:MAX_RECENT])


def list_busiest(*, workspace: Workspace) -> list[tuple[uuid.UUID, str, str, str]]:
    """The agents that say and are told most: id, what people call each (or empty), its name, and its channel."""
    rows = AgentTotal.objects.filter(workspace=workspace, dialect="").annotate(
        total=F("sent") + F("received"), begun=Left("agent__name", MAX_SUGGESTED_LENGTH)
    )
    columns = ("agent", "agent__friendly_name", "begun", "agent__channel__name")
    return list(rows.order_by("-total", "agent").values_list(*columns)[:MAX_BUSIEST])


class SavedSearchError(Exception):
    """A search that cannot be saved; the sentence says why."""


def list_saved(*, membership: Membership) -> list[SavedSearch]:
    """What this member saved, and what others share in the workspace, by name."""
    rows = select_saved(workspace=membership.workspace, user_id=membership.user_id)
    return list(rows.order_by("name", "pk")[: 2 * MAX_SAVED])


def select_saved(*, workspace: Workspace, user_id: int | None) -> QuerySet[SavedSearch]:
    """What is shared in a workspace and what this person saved, in no order."""
    own = Q() if user_id is None else Q(saved_by=user_id)
    return SavedSearch.objects.filter(Q(is_shared=True) | own, workspace=workspace).select_related("saved_by")


@transaction.atomic
def save_search(*, membership: Membership, name: str, query: str, is_shared: bool) -> SavedSearch:
    """Keep a query under a name; one of one's own of that name is replaced.

    Raises:
        SavedSearchError: for no name, too long a one, or too many searches.
        QueryError: for a query that cannot be understood.
    """
    name = " ".join(name.split())
    if not name:
        raise SavedSearchError("Give the search a name.")
    if len(name) > MAX_NAME_LENGTH:
        raise SavedSearchError(f"A name has at most {MAX_NAME_LENGTH} characters.")
    read_query(query)
    mine = SavedSearch.objects.filter(workspace=membership.workspace, saved_by=membership.user)
    if mine.exclude(name=name).count() >= MAX_SAVED:
        raise SavedSearchError(f"You have {MAX_SAVED} saved searches: forget one first.")
    was_shared = mine.filter(name=name, is_shared=True).exists()
    saved, _ = SavedSearch.objects.update_or_create(
        workspace=membership.workspace,
        saved_by=membership.user,
        name=name,
        defaults={"query": query, "is_shared": is_shared},
    )
    if is_shared or was_shared:
        record_deed(
            "search.shared" if is_shared else "search.unshared",
            workspace_id=membership.workspace_id,
            by=membership,
            on=Thing("search", saved.pk, name),
            details={"query": query},
        )
    return saved


@transaction.atomic
def forget_search(*, membership: Membership, saved_id: uuid.UUID) -> bool:
    """Forget a search; its own saver may, and an owner. Whether there was one."""
    rows = SavedSearch.objects.filter(workspace=membership.workspace, pk=saved_id)
    if not membership.is_owner:
        rows = rows.filter(saved_by=membership.user)
    else:
        rows = rows.filter(Q(saved_by=membership.user) | Q(is_shared=True))
    saved = rows.select_for_update().first()
    if saved is None:
        return False
    named, is_shared = Thing("search", saved.pk, saved.name), saved.is_shared
    saved.delete()
    if is_shared:
        record_deed("search.forgotten", workspace_id=membership.workspace_id, by=membership, on=named)
    return True
