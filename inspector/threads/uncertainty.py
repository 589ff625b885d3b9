"""Uncertainty: what is carried over the end of a conversation does not always say enough to go on from there."""

from __future__ import annotations


class UncertainError(Exception):
    """What is carried does not tell what would come out of the whole: it has to be gone through from its beginning."""
