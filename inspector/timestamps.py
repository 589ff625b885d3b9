"""Timestamps as the database sends them, read by Python's own reader of ISO 8601.

The loader that Django has goes through a regular expression for each; this one says the same instant in a tenth of the
time. What it cannot read, such as `infinity` or another DateStyle, goes the way that it went before.
"""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import Any, ClassVar

from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.abc import Buffer
from psycopg.types.datetime import TimestamptzLoader


class IsoLoader(TimestamptzLoader):
    """Reads timestamptz in text; `timezone` is that in which the instant is given."""

    timezone: ClassVar[tzinfo]

    def load(self, data: Buffer) -> datetime:
        """The instant.

        Raises:
            psycopg.DataError: for one that Python has no datetime for.
        """
        try:
            found = datetime.fromisoformat(str(data, "ascii"))
        except ValueError:
            found = super().load(data)
        return found if found.tzinfo is self.timezone else found.astimezone(self.timezone)


def read_timestamps_directly(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Give a new connection the quick loader: a receiver of `connection_created`."""
    # Django looks at the loader's zone, and puts its own back where another is wanted.
    loader = type("ZonedLoader", (IsoLoader,), {"timezone": connection.timezone})
    connection.connection.adapters.register_loader("timestamptz", loader)
