"""The errors of this package: misuse raises, bad input never does (it becomes a note on a record)."""

from __future__ import annotations


class DialectsError(Exception):
    """The root of every error this package raises."""


class UnknownDialectError(DialectsError):
    """A dialect was asked for that is not in the registry.

    Attributes:
        slug: what was asked for.
        known: the slugs that exist.
    """

    def __init__(self, slug: str, known: tuple[str, ...]) -> None:
        super().__init__(f"there is no dialect {slug!r}; known are {', '.join(known)}")
        self.slug = slug
        self.known = known


class RegistryError(DialectsError):
    """Two dialects claim one slug, or a module declares none: a mistake that stops the start."""


class EncodeError(DialectsError):
    """A record cannot be written in the dialect at all.

    Attributes:
        dialect: the slug of the dialect.
        reason: a sentence that says what is missing or impossible.
        part: the part (1…n) of the message that cannot be written, or None for the record.
    """

    def __init__(self, dialect: str, reason: str, part: int | None = None) -> None:
        super().__init__(f"{dialect}: {reason}")
        self.dialect = dialect
        self.reason = reason
        self.part = part
