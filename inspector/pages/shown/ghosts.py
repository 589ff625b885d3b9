"""What is said of a message that is cited and stands for none here: it was not received, or could be any of several."""

from __future__ import annotations

from inspector.threads.placing.citations import write_bearers

NOT_RECEIVED = "was not received"


def say_fate(bearers: int | None) -> str:
    """What goes on after the name of a cited message.

    Args:
        bearers: how many messages of other conversations bear the id; 0 for none, None where that is not known.
    """
    if bearers is None:
        return "is not here"
    return f"is one of {write_bearers(bearers)} messages elsewhere that bear this id" if bearers else NOT_RECEIVED
