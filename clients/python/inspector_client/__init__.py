"""Send an agent's messages to the inspector: a client, and a logging handler that never makes its agent wait.

Only the standard library is needed. `Client.send` returns when every message is durable, or raises; what was sent
twice, because an answer was lost, is stored once. `InspectorHandler` does the same from a thread of its own.
"""

from __future__ import annotations

from ._asyncio import AsyncClient
from ._batches import Batch, Message
from ._client import Client
from ._errors import ClientError, GaveUpError, RefusedError, SpoolFullError
from ._handler import InspectorHandler
from ._receipts import Receipt
from ._spool import Spool, SpoolHandler

__all__ = [
    "AsyncClient",
    "Batch",
    "Client",
    "ClientError",
    "GaveUpError",
    "InspectorHandler",
    "Message",
    "Receipt",
    "RefusedError",
    "Spool",
    "SpoolFullError",
    "SpoolHandler",
]
