"""A password of few different characters is refused: `aaaaaaaaaaaa` is long, on no list, and guessed first."""

from __future__ import annotations

from typing import Any, Final

from django.core.exceptions import ValidationError

MIN_DIFFERENT: Final = 5


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
