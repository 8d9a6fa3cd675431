"""What one `for` covers: one epoch, several, all that follow, or a virtual epoch of a number of batches."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Optional, Tuple

from .._errors import Error
from .state import Place

if TYPE_CHECKING:
    from .._loops import Loops


After = Callable[[int, int, int], Tuple[int, int]]  # epoch, position, batches more -> epoch, position


class Span:
    """How long a `for` is. `epochs`: real epochs, None for no end; `steps`: batches of a virtual epoch."""

    def __init__(self, epochs: Optional[int], steps: Optional[int]) -> None:
        self.epochs = epochs
        self.steps = steps

    def number(self, place: Place) -> int:
        """The number that set_epoch() uses for the epoch of this place."""
        return place.lap if self.steps is not None else place.epoch

    def over(self, place: Place) -> bool:
        """Is the loop complete at this place?"""
        if self.steps is not None:
            return place.done >= self.steps
        return self.epochs is not None and place.done >= self.epochs

    def exhausted(self, place: Place, after: After) -> bool:
        """Whether the loop has no batch left at this place, although its end was not reached yet. This is the place of
        a state that was saved in the loop body of the last batch."""
        if self.steps is not None:
            return place.done >= self.steps
        return (self.epochs is not None and place.done + 1 >= self.epochs and
                after(place.epoch, place.position, 0) != (place.epoch, place.position))

    def after_batch(self, place: Place, epoch: int, position: int) -> Place:
        done = place.done + 1 if self.steps is not None else place.done
        return Place(epoch, position, place.lap, done)

    def after_epoch(self, place: Place) -> Place:
        done = place.done if self.steps is not None else place.done + 1
        return Place(place.epoch + 1, 0, place.lap, done)

    def following(self, place: Place) -> Place:
        """Where the next loop begins unless something else was chosen: after a loop that ended, or with the next epoch
        if one was left before its end. After a virtual epoch that was left the stream continues where it stands."""
        if self.steps is not None:
            return Place(place.epoch, place.position, place.lap + 1, 0)
        if self.over(place) or place.position == 0:
            return place._replace(done=0)
        return Place(place.epoch + 1, 0)

    def beginning(self, number: int, current: Place, after: After) -> Place:
        """Where the real or virtual epoch `number` begins. The next virtual epoch begins where the stream stands; any
        other one begins where it would in a run that never changed its sizes."""
        if self.steps is None:
            return Place(number, 0)
        if number == current.lap and current.done == 0:
            return current
        if number == current.lap + 1 and self.over(current):
            return self.following(current)
        epoch, position = after(0, 0, number * self.steps)
        return Place(epoch, position, number, 0)

    def told(self, place: Place) -> Optional[Dict[str, int]]:
        """The part of a state that is about the loop."""
        if self.steps is not None:
            return {"steps_per_epoch": self.steps, "epoch": place.lap, "step": place.done}
        if self.epochs is not None and self.epochs > 1:
            return {"epochs": self.epochs, "done": place.done}
        return None

    def restored(self, state: Dict[str, Any]) -> Place:
        """The place of a verified state. If the state is from a loop of another length, its place in the loop is
        ignored: the data continue where they stood, and a new loop begins."""
        place = Place(state["epoch"], state["position"])
        loop = state["virtual"] or {}
        if self.steps is not None:
            if loop.get("steps_per_epoch") == self.steps:
                return place._replace(lap=loop["epoch"], done=min(loop["step"], self.steps))
            return place
        if self.epochs is not None and loop.get("epochs") == self.epochs:
            return place._replace(done=min(loop["done"], self.epochs))
        return place


class EpochIterator(Iterator[Any]):
    """One `for`. A newer iter() of the loader, or loading a state, ends it."""

    def __init__(self, loader: Loops) -> None:
        self._loader = loader
        self.begun = False  # has it taken a batch, or tried to?
        self._done = False
        self._ended_by: Optional[str] = None

    def __iter__(self) -> EpochIterator:
        return self

    def __next__(self) -> Any:
        if self._done:
            raise StopIteration
        if self._ended_by is not None:
            raise Error(self._ended_by)
        batch = self._loader._next(self)
        if batch is None:
            self._done = True
            raise StopIteration
        return batch

    def __length_hint__(self) -> int:
        """What is left, for progress bars; TypeError, which they understand, if there is no end."""
        return 0 if not self.live else self._loader.remaining

    def end(self, why: str) -> None:
        """Ends it because the loader was moved elsewhere."""
        if self._ended_by is None:
            self._ended_by = why

    @property
    def live(self) -> bool:
        return not self._done and self._ended_by is None
