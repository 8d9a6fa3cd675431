"""Where a loader stands, and where its next loop begins."""
from __future__ import annotations

import weakref
from typing import Optional, Tuple

from .epochs import After, Span
from .state import Place


class Course:
    """`after`, a method of the loader, tells the place that follows a number of batches."""

    def __init__(self, span: Span, after: weakref.WeakMethod[After]) -> None:
        self.span = span
        self.place = Place(0, 0)                    # of the loop that is running or was left
        self._after = after
        self._next: Optional[Place] = self.place    # of the next loop, if it was chosen; until a loop has begun there
        self._resumed: Optional[Place] = None       # of the state that was loaded last, until a loop begins there

    def _place_after(self, epoch: int, position: int, n_batches: int) -> Tuple[int, int]:
        after = self._after()
        assert after is not None  # a loader has its course
        return after(epoch, position, n_batches)

    def coming(self) -> Place:
        """Where the next loop begins. After a state that was saved at an epoch's last batch this is the next epoch: a
        loop without a batch would be useless, unless set_epoch() asked for exactly this epoch."""
        if self._next is None:
            return self.span.following(self.place)
        if self._resumed is self._next and self.span.exhausted(self._next, self._place_after):
            return self.span.following(self._next)
        return self._next

    def here(self, is_running: bool) -> Place:
        """Where the running loop is, or the coming one begins."""
        place = self.current(is_running)
        return self.coming() if place is self._next else place

    def current(self, is_running: bool) -> Place:
        """Where a state that is saved now would continue."""
        if is_running:
            return self.place
        if self._next is not None:
            return self._next
        return self.span.following(self.place) if self.span.over(self.place) else self.place

    def choose(self, epoch: int, waits: bool) -> None:
        """Goes to an epoch with the next loop, or with the present one if that waits for its first batch. The place
        within the epoch of a loaded state is kept."""
        if self._resumed is not None and epoch == self.span.number(self._resumed):
            place = self._resumed._replace()  # another object: asked for, even if nothing is left of it
        else:
            current = self._resumed if self._resumed is not None else self.place
            self._resumed = None
            place = self.span.beginning(epoch, current, self._place_after)
        self._next = place
        if waits:
            self.place = place

    def resume(self, place: Place) -> None:
        self._next = self._resumed = place

    def aim(self) -> None:
        """A loop is there, which takes its first batch later or never: then the next one begins at the same place."""
        self.place = self._next = self.coming()

    def begin(self) -> None:
        """That loop takes its first batch."""
        self._next = self._resumed = None
