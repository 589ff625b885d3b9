"""The closed list of acts that all dialects share, each with a one-sentence meaning.

The names follow FIPA's communicative acts where FIPA has the act (FIPA SC00037J).
"""

from __future__ import annotations

PERFORMATIVES: dict[str, str] = {
    "request": "asks that something be done",
    "query": "asks for information",
    "inform": "states something",
    "observe": "reports an observation",
    "propose": "offers or suggests",
    "accept": "agrees to a proposal or a request",
    "reject": "declines a proposal or a request",
    "commit": "undertakes to do something",
    "acknowledge": "confirms that a message arrived",
    "delegate": "passes work on to another",
    "progress": "reports the progress of the work",
    "done": "reports that the work is finished, with its result",
    "evaluate": "judges a result or a plan",
    "failure": "reports that the work failed",
    "not-understood": "could not read or understand a message",
    "cancel": "withdraws a request",
    "advertise": "states the capabilities of the sender",
    "handshake": "opens or negotiates the exchange itself",
    "subscribe": "asks for updates from now on",
    "unsubscribe": "asks for no more updates",
    "control": "regulates the exchange: floor, heartbeat, context, end of session",
    "unknown": "an act that the dialect's tables do not hold",
}
