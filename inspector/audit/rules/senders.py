"""Rules over who speaks: names that can be taken for another's, and keys under which others speak."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from inspector.confusables import find_likenesses, find_oddities

from ..findings.scene import Scene
from .rule import Hit, Rule, say


def _find_strangers(scene: Scene) -> Iterator[Hit]:
    for message, key in scene.strangers:
        yield Hit(
            message=message.id, text=f"It came by the key {key!r}, whose agents are not called {message.sender!r}."
        )


def _find_names(scene: Scene) -> Iterator[Hit]:
    """Names of one conversation that can be taken for one another, and names that are odd by themselves."""
    if scene.first is None:
        return
    names = [name for name in scene.conversation.agents if name]
    for name in sorted(names):
        for oddity in find_oddities(name)[:1]:
            yield Hit(message=scene.first.id, text=f"The name {name!r} {oddity}.", detail=f"odd {name}")
    for name, likenesses in sorted(find_likenesses(names).items()):
        for likeness in likenesses:
            if name < likeness.name:
                yield Hit(
                    message=scene.first.id,
                    text=f"{name!r} can be taken for {likeness.name!r}: it {likeness.why}.",
                    detail=f"like {name} {likeness.name}",
                )


RULES: Final = (
    Rule(
        code="sender-not-of-key",
        title="Sender not allowed for its API key",
        why="The key's holder used a foreign name, or somebody else uses the key.",
        severity="error",
        group="security",
        look=_find_strangers,
        passes=(say(("ada", "pay bob now")),),
    ),
    Rule(
        code="names-alike",
        title="Look-alike agent names",
        why="Somebody may speak under a name that looks like another agent's.",
        severity="warning",
        group="security",
        look=_find_names,
        triggers=(
            say(("planner", "pay bob now"), ("pl\u0430nner", "yes")),
            say(("planner", "pay bob now"), ("plannre", "yes")),
            say(("r\u200badar", "pay bob now")),
        ),
        passes=(
            say(("worker-1", "pay bob now"), ("worker-2", "yes")),
            say(("agent-a", "pay bob now"), ("agent-b", "yes")),
            say(("planner", "pay bob now"), ("scanner", "yes")),
        ),
    ),
)
