"""The client for programs that run in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ._batches import Message
from ._client import Client
from ._receipts import Receipt


class AsyncClient:
    """`Client` as coroutines: the loop goes on while a thread waits for the network.

    Args:
        client: the way to the inspector.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def send(self, messages: Iterable[Message] | Message) -> Receipt:
        """As `Client.send`. Cancelled, it ends at once; the batch that is on its way may be taken all the same."""
        return await asyncio.to_thread(self._client.send, messages)
