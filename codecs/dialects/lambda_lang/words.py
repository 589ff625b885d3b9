"""What a word of the wire means in the scope of its statement.

A run of lower-case letters is one word: an exact atom of the active domain, else of the core, else exactly one
verb or atom with at most one tense letter before it and one aspect letter after it, else unknown. It is never
guessed letter by letter: most English words would divide into atoms, and confident nonsense is the worst
failure of an auditor's tool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from .._record import Basis, Entry
from .lexicon import find_word
from .protocol import ASPECTS, CONTEXT_KEYS, ERRORS, OLD_ASPECTS, TASK_KEYS, TENSES, TRUST
from .vocabulary import Vocabulary, histories, load_vocabulary, order_release, title_domain

# A word longer than this is no atom with letters around it.
MAX_DIVIDED_LENGTH = 5


class Meaning(NamedTuple):
    """How a word was understood.

    Attributes:
        basis: exact, inferred (by dividing off a tense or an aspect) or unknown.
        senses: the meanings, the usual one first; empty if unknown or defined by a sender.
        tense: past, now or future, where a letter said so.
        aspect: ongoing or done, where a letter said so.
        domain: the domain it was found in, None for the core.
        readings: where two readings were possible, both in words.
        entry: the definition a sender gave.
        is_action: whether the vocabulary has the defined word as a verb.
        elsewhere: what a word that is no atom here is in the domains not in force, or in the protocol, and where; what
            one that a sender defined is in the vocabulary.
    """

    basis: Basis
    senses: tuple[str, ...] = ()
    tense: str | None = None
    aspect: str | None = None
    domain: str | None = None
    readings: tuple[str, ...] = ()
    entry: Entry | None = None
    is_action: bool = False
    elsewhere: tuple[tuple[str, str], ...] = ()


def _find_nothing(word: str) -> Entry | None:
    return None


class Scope(NamedTuple):
    """What is in force while a statement is read: vocabulary, active domains, and senders' definitions."""

    vocabulary: Vocabulary
    domains: tuple[str, ...] = ()
    find_definition: Callable[[str], Entry | None] = _find_nothing

    @property
    def is_plain(self) -> bool:
        """Whether no sender's definition is in force."""
        return self.find_definition is _find_nothing

    def resolve(self, word: str, domain: str | None = None) -> Meaning:
        """The meaning of a word, in a named domain if it carries one."""
        if domain is None:
            entry = self.find_definition(word)
            if entry is not None:
                usual = _resolve(word, self.vocabulary.release, self.domains, False)
                is_action = bool(usual.senses) and find_word(usual.senses[0]).order[:1] == "v"
                is_other = usual.basis == "exact" and str(entry.value) not in usual.senses
                others = tuple((sense, "in the vocabulary") for sense in usual.senses) if is_other else ()
                return Meaning("exact", entry=entry, is_action=is_action, elsewhere=others)
            usual = _resolve(word, self.vocabulary.release, self.domains, False)
            return usual if usual.basis != "inferred" else self._heed_definitions(word, usual)
        return _resolve(word, self.vocabulary.release, (domain,), True)

    def _heed_definitions(self, word: str, divided: Meaning) -> Meaning:
        """A divided word, unless what is left of it is a word that a sender has given another meaning."""
        start = 1 if divided.tense and word[0] in TENSES else 0
        base = word[start : len(word) - 1 if divided.aspect else len(word)]
        if self.find_definition(base) is None:
            return divided
        return Meaning("unknown", readings=(_say_reading(divided), f"“{base}” as a sender defined it"))


@lru_cache(maxsize=8192)
def _resolve(word: str, release: str, domains: tuple[str, ...], is_named: bool) -> Meaning:
    vocabulary = load_vocabulary(release)
    exact = _find_exact(vocabulary, word, domains, is_named=is_named)
    if exact:
        return exact
    if not is_named and word in TENSES:
        return Meaning("exact", tense=TENSES[word])
    elsewhere = () if is_named else find_elsewhere(word, release)
    if len(word) > MAX_DIVIDED_LENGTH:
        return Meaning("unknown", elsewhere=elsewhere)
    found = list(_divide(vocabulary, word, domains, is_named=is_named))
    if len(found) == 1:
        return found[0]._replace(elsewhere=elsewhere)
    return Meaning("unknown", readings=tuple(_say_reading(reading) for reading in found), elsewhere=elsewhere)


def _find_exact(vocabulary: Vocabulary, word: str, domains: tuple[str, ...], *, is_named: bool) -> Meaning | None:
    for domain in domains:
        senses = vocabulary.find(word, domain)
        if senses:
            return Meaning("exact", senses=senses, domain=domain)
    if is_named:
        return None
    senses = vocabulary.find(word)
    return Meaning("exact", senses=senses) if senses else None


def _divide(vocabulary: Vocabulary, word: str, domains: tuple[str, ...], *, is_named: bool) -> list[Meaning]:
    found = []
    aspects = ASPECTS | OLD_ASPECTS if vocabulary.release == "0.1" else ASPECTS
    for tense in ("", word[0]) if word[0] in TENSES else ("",):
        for aspect in ("", word[-1]) if word[-1] in aspects else ("",):
            middle = word[len(tense) : len(word) - len(aspect)]
            if middle == word or not middle:
                continue
            exact = _find_exact(vocabulary, middle, domains, is_named=is_named)
            # Only what can be done has a tense or an aspect.
            if exact and any(find_word(sense).verb for sense in exact.senses):
                senses = tuple(sense for sense in exact.senses if find_word(sense).verb)
                found.append(
                    exact._replace(basis="inferred", senses=senses, tense=TENSES.get(tense), aspect=aspects.get(aspect))
                )
    return found


def _say_reading(meaning: Meaning) -> str:
    words = (meaning.tense, "/".join(meaning.senses), meaning.aspect)
    return " + ".join(word for word in words if word)


@lru_cache(maxsize=4096)
def find_elsewhere(word: str, release: str) -> tuple[tuple[str, str], ...]:
    """What a word is or was in domains and is in the protocol, and where: `("transport", "in agent-to-agent")`."""
    vocabulary = load_vocabulary(release)
    found = [
        ("/".join(table[word]), f"in {title_domain(domain)}")
        for domain, table in vocabulary.domains.items()
        if word in table
    ]
    found += [
        (meaning, f"in {title_domain(domain)} before v{until}")
        for domain, meaning, until in _walk_withdrawn(word, release)
    ]
    if word in CONTEXT_KEYS:
        found.append((CONTEXT_KEYS[word], "as a key of the protocol"))
    elif word in TASK_KEYS:
        found.append((TASK_KEYS[word], "as a key of a task"))
    if word in ERRORS:
        found.append((ERRORS[word].name, "as an error code"))
    if word in TRUST:
        found.append((TRUST[word][0], "as a mark of the protocol"))
    return tuple(found)


@lru_cache(maxsize=4096)
def find_ever(word: str, domain: str) -> tuple[str, ...]:
    """What a word that this release does not have in a domain (or "") meant in any release."""
    history = histories().get(domain, {}).get(word, ())
    return tuple(f"“{meaning}” from v{release}" for release, meaning in history if meaning)


@lru_cache(maxsize=4096)
def find_withdrawn(word: str, release: str, active: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What a word of the core was in a domain that has renamed it since: `“bug” in the code domain before v1.6`.

    A domain in which it meant the same as in the core is named only where that domain is `active`.
    """
    senses = load_vocabulary(release).find(word)
    return tuple(
        f"“{meaning}” in the {title_domain(domain)} domain before v{until}"
        for domain, meaning, until in _walk_withdrawn(word, release)
        if meaning not in senses or domain in active
    )


def _walk_withdrawn(word: str, release: str) -> Iterator[tuple[str, str, str]]:
    """Each domain that a word was withdrawn from, what it was there, and since which release it is not."""
    at = order_release(release)
    for domain, table in histories().items():
        for (_, meaning), (until, follows) in pairwise(table.get(word, ()) if domain else ()):
            if meaning and follows is None and order_release(until) <= at:
                yield domain, meaning, until
