"""How a conversation stands: the state after the last act that decides."""

from __future__ import annotations

import pytest

from inspector.threads.lifecycle import derive_state


@pytest.mark.parametrize(
    ("acts", "state"),
    [
        ([], "open"),
        ([("inform", None)], "open"),
        ([("request", None), ("acknowledge", None)], "open"),
        ([("request", None), ("done", None)], "done"),
        ([("request", None), ("failure", False)], "failed"),
        ([("request", None), ("failure", None)], "failed"),
        ([("request", None), ("failure", True)], "open"),
        ([("request", None), ("failure", True), ("request", None), ("done", None)], "done"),
        ([("done", None), ("request", None)], "open"),
        ([("request", None), ("cancel", None), ("acknowledge", None)], "cancelled"),
        ([("request", None), ("done", None), ("inform", None)], "done"),
        ([(None, None), ("unknown", None)], "open"),
    ],
)
def test_the_last_act_that_decides(acts: list[tuple[str | None, bool | None]], state: str) -> None:
    assert derive_state(acts) == state
