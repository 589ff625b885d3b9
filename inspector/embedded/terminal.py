"""What the person at the terminal reads: sentences, and one line of progress that writes over itself."""

import os
import sys
import time

from .samples import Progress

PLAIN_EVERY_S = 2.0


class Terminal:
    """Writes to stdout and stderr; a reader that went away (a closed pipe, a closed window) is no reason to stop."""

    def __init__(self) -> None:
        self._is_screen = sys.stdout.isatty()
        self._shown = ""
        self._shown_at = 0.0

    def say(self, text: str) -> None:
        """A line, or several."""
        self.end_progress()
        self._write(text + "\n")

    def complain(self, text: str) -> None:
        """A line on stderr."""
        self.end_progress()
        try:
            print(text, file=sys.stderr, flush=True)
        except OSError:
            _close(sys.stderr.fileno())

    def show_progress(self, progress: Progress) -> None:
        """Where the work stands: on a screen at every change, in a file at most every two seconds."""
        text = (
            f"  received {progress['received']} · read {progress['read']} · "
            f"conversations processed {progress['settled']} of {progress['conversations']}"
        )
        now = time.monotonic()
        if text == self._shown:
            return
        if self._is_screen:
            self._write(f"\r\x1b[K{text}")
        elif progress["is_read"] or now - self._shown_at >= PLAIN_EVERY_S:
            self._write(text + "\n")
        else:
            return
        self._shown, self._shown_at = text, now

    def end_progress(self) -> None:
        """Leave the line of progress as it stands."""
        if self._shown and self._is_screen:
            self._write("\n")
        self._shown = ""

    def _write(self, text: str) -> None:
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError:
            _close(sys.stdout.fileno())


def _close(descriptor: int) -> None:
    """Let what is written there vanish from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
