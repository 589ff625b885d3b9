"""Erasing: `requests` says what and asks for it, `pieces` does it."""
