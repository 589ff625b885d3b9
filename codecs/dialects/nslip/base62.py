"""Numbers in base 62: digits 0-9, A-Z, a-z, no sign, at most 64 bits. Specification: "Integers: Base62"."""

from __future__ import annotations

from .tables import ALPHABET, LARGEST, LONGEST_NUMBER

_WORTH = {digit: worth for worth, digit in enumerate(ALPHABET)}


def is_number(text: str) -> bool:
    """Whether the text is digits of base 62 alone, and at least one."""
    return text.isalnum() and text.isascii()


def read_number(digits: str) -> int | None:
    """The number that these digits mean, or None where it does not fit; linear in their count."""
    digits = digits.lstrip("0")
    if len(digits) > LONGEST_NUMBER:
        return None
    number = 0
    for digit in digits:
        number = number * 62 + _WORTH[digit]
    return number if number <= LARGEST else None


def write_number(number: int) -> str:
    """The digits of a number that is not negative."""
    digits = ""
    while number >= 62:
        number, worth = divmod(number, 62)
        digits = ALPHABET[worth] + digits
    return ALPHABET[number] + digits
