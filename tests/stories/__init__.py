"""Stories made from a seed by a narrator who knows the truth of them: order, parents, ghosts, meanings."""

from .narrator import Story, Told, tell_story

__all__ = ["Story", "Told", "tell_story"]
