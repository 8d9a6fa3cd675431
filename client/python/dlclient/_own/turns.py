"""Which threads of a process may be at a sample at the same time.

If a process ends while several of its threads are at samples, nobody knows which of these ended it. They are suspects:
in the process that comes next each of them has its turn alone, so that the next end has one sample to blame, and the
others come through."""
from __future__ import annotations

import threading
from typing import FrozenSet, Tuple

Sample = Tuple[int, int]    # its number and the epoch


class Turns:
    """Of all threads of a process."""

    def __init__(self, suspects: FrozenSet[Sample]) -> None:
        self.suspects = suspects
        self.condition = threading.Condition()
        self.n_begun = 0
        self.n_alone = 0    # that are alone at a sample, or wait for that


class Turn:
    """Of one thread."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._is_alone = False
        self._has_begun = False

    @property
    def is_needed(self) -> bool:
        """Else every thread may begin at any time."""
        return bool(self._turns.suspects)

    def begin(self, sample: int, epoch: int) -> None:
        """Waits until the thread may begin. Only if turns are needed."""
        turns = self._turns
        self._is_alone = (sample, epoch) in turns.suspects
        with turns.condition:
            turns.n_alone += self._is_alone
            turns.condition.wait_for(lambda: turns.n_begun == 0 if self._is_alone else turns.n_alone == 0)
            turns.n_begun += 1
        self._has_begun = True

    def end(self) -> None:
        """Does nothing if it has not begun."""
        turns = self._turns
        if not self._has_begun:
            return
        self._has_begun = False
        with turns.condition:
            turns.n_begun -= 1
            turns.n_alone -= self._is_alone
            turns.condition.notify_all()
