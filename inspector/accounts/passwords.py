"""Passwords that are long, on no list, and guessed first: of few different characters, or of words that lie near."""

from __future__ import annotations

import re
from typing import Any, Final

from django.core.exceptions import ValidationError

from .models import User, Workspace

MIN_DIFFERENT: Final = 5
# Words of this product and of who uses it; docs/signing-in.md lists them. Names of workspaces come to them.
NEAR_WORDS: Final = ("inspector", "auditor", "conversation", "dashboard", "password", "administrator", "welcome")
MIN_BESIDE: Final = 8


class DifferentCharactersValidator:
    """As `AUTH_PASSWORD_VALIDATORS` takes them."""

    def validate(self, password: str, user: Any = None) -> None:
        """Refuse a password of fewer than five different characters.

        Raises:
            ValidationError: with what to do.
        """
        if len(set(password)) < MIN_DIFFERENT:
            raise ValidationError(self.get_help_text(), code="password_monotonous")

    def get_help_text(self) -> str:
        """The rule in a sentence."""
        return f"Your password must contain at least {MIN_DIFFERENT} different characters."


class NearWordsValidator:
    """As `AUTH_PASSWORD_VALIDATORS` takes them."""

    def validate(self, password: str, user: Any = None) -> None:
        """Refuse a password that is little more than such words, than this person's name, or than a workspace's.

        Raises:
            ValidationError: with what to do.
        """
        named = Workspace.objects.filter(memberships__user=user) if getattr(user, "pk", None) else ()
        names = [name for each in named for name in (each.slug, each.name)]
        names += [user.get_username()] if isinstance(user, User) else []
        words = {*NEAR_WORDS, *(name.casefold() for name in names if len(name) > 3)}
        left = re.sub("|".join(map(re.escape, sorted(words, key=len, reverse=True))), "", password.casefold())
        if len(left) < min(MIN_BESIDE, len(password)):
            raise ValidationError(self.get_help_text(), code="password_near")

    def get_help_text(self) -> str:
        """The rule in a sentence."""
        return (
            "Your password must contain at least "
            f"{MIN_BESIDE} characters besides the product’s words, your name and your workspaces’ names."
        )
