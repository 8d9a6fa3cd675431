"""What a loader tells while it waits: sentences to the user's function or the log, and on a terminal a line with a bar,
which rank 0 alone draws, since several ranks often share one. The library makes that line, so it looks as dlctl's."""
from __future__ import annotations

import ctypes
import logging
import os
import sys
import time
from typing import Any, Callable, Optional, Union

from . import _library

log = logging.getLogger("dlclient")

ProgressWish = Union[Callable[[str], None], None, bool]  # the loader's option; of a bool, only False

PROGRESS_SECONDS = 1.0
SILENT_SECONDS = 3.0    # a wait that lasts longer is said where everybody sees it, unless the user's function is told
WARN_SECONDS = 60.0     # and again from time to time
STAYS_SECONDS = 5.0     # a shorter wait leaves no line on the screen
LINE_BYTES = 2048


def is_terminal() -> bool:
    """Can stderr show a line that is drawn again? Notebooks and log files cannot."""
    try:
        return sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")
    except (AttributeError, ValueError):  # None under pythonw, or closed
        return False


class Bar:
    """One wait after the other. `is_wanted` False: nothing is ever shown."""

    def __init__(self, library: _library.Library, is_wanted: bool) -> None:
        self.is_wanted = is_wanted
        self._library = library
        self._since: Optional[float] = None  # when the present line was drawn for the first time
        self._words = ""

    def draw(self, progress: _library.Progress) -> None:
        """Draws what the library tells."""
        if not self.is_wanted:
            return
        line = ctypes.create_string_buffer(LINE_BYTES)
        utf8 = (getattr(sys.stderr, "encoding", None) or "").lower().replace("-", "") == "utf8"
        self._library.quick.progress_line(ctypes.byref(progress), self._columns(), utf8, line, LINE_BYTES)
        self._put(f"\r{_library.sentence_of(line.value)}\x1b[K")
        if self._since is None:
            self._since = time.monotonic()
        phase = _library.sentence_of(progress.phase)
        self._words = f"{_library.sentence_of(progress.dataset)}: {phase}" if phase else ""

    def end(self) -> None:
        """What was waited for is there, or given up: the line goes. Of a long wait stays how long it was."""
        since, self._since = self._since, None
        if since is None:
            return
        seconds = time.monotonic() - since
        stays = f"{self._words}: {seconds:.0f} s\n" if seconds >= STAYS_SECONDS and self._words else ""
        self._put(f"\r\x1b[K{stays}")

    def _put(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (AttributeError, OSError, ValueError):  # the terminal is gone: the wait goes on without it
            self.is_wanted = False

    @staticmethod
    def _columns() -> int:
        try:
            return os.get_terminal_size(sys.stderr.fileno()).columns or 80
        except (AttributeError, OSError, ValueError):
            return 80


def bar_is_wanted(progress: ProgressWish, rank: int) -> bool:
    """`progress`: the loader's option."""
    return progress is None and rank == 0 and is_terminal()


class Teller:
    """Passes on what the library tells while it waits: sentences at most once a second, to the user's function or the
    log, and numbers to the bar. An exception of the user's function, or Ctrl-C within it, ends the wait."""

    def __init__(self, progress: ProgressWish, open_timeout: Optional[float], bar: Bar) -> None:
        self.progress = progress
        self.bar = bar
        self.limit = "no limit: open_timeout=None" if open_timeout is None else f"open_timeout={open_timeout:g} s"
        self.told = 0.0
        self.warn_at = time.monotonic() + SILENT_SECONDS
        self.trouble: Optional[BaseException] = None
        self.is_open = False
        self.options: Any = None  # holds the library's pointers to this

    def tell(self, _: Optional[int], text: bytes) -> None:
        """The library's on_progress."""
        now = time.monotonic()
        if self.is_open or self.trouble is not None or (self.told and now - self.told < PROGRESS_SECONDS):
            return
        self.told = now
        try:
            if callable(self.progress):
                self.progress(_library.sentence_of(text))
            elif now >= self.warn_at and not self.bar.is_wanted:
                self.warn_at = now + WARN_SECONDS
                log.warning("waiting (%s): %s", self.limit, _library.sentence_of(text))
            else:
                log.info("%s", _library.sentence_of(text))
        except BaseException as error:  # pylint: disable=broad-except
            self.trouble = error  # an exception must not pass through the library

    def wait(self, _: Optional[int], progress: Any) -> None:
        """The library's on_wait."""
        try:
            if self.trouble is None:
                self.bar.draw(progress.contents)
        except BaseException as error:  # pylint: disable=broad-except
            self.trouble = error

    def raise_trouble(self) -> None:
        trouble, self.trouble = self.trouble, None
        if trouble is not None:
            raise trouble
