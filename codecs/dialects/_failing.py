"""What a tool gave back that says of itself that it failed, whatever its carrier says around it."""

from __future__ import annotations

from typing import Any, Final

from ._json import JsonError, Rules, load

_RULES: Final = Rules(max_depth=64, allows_controls=True)
_SUCCESS: Final = ("success", "ok")
_FAILURE: Final = ("isError", "is_error")


def says_failure(content: Any) -> bool:
    """Whether a result is an object, or a text of one, alone or as the only block, whose members say that it failed.

    These are an `error` with anything in it, a `success` or `ok` that is false, and the status "error". What says that
    it succeeded is believed.
    """
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        content = content[0].get("text")
    if isinstance(content, str):
        if content.lstrip()[:1] != "{":
            return False
        try:
            loaded = load(content, 0, _RULES)
        except JsonError:
            return False
        content = None if content[loaded.end :].strip() else loaded.data
    if not isinstance(content, dict) or any(content.get(key) is True for key in _SUCCESS):
        return False
    error, status = content.get("error"), content.get("status")
    says_why = error is True or (isinstance(error, (str, dict)) and bool(error))
    says_so = any(content.get(key) is False for key in _SUCCESS) or any(content.get(key) is True for key in _FAILURE)
    return says_why or says_so or (isinstance(status, str) and status.lower() == "error")
