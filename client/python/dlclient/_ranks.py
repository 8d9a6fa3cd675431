"""Several ranks in one process, for code that was written for DataParallel or that drives several devices.

They are taken step by step: a tuple holds one batch of each rank, all of the same step. A rank that has none of that
step has None there: with partition="exact" a rank may have fewer, with on_error="skip" a batch may have been left out
whole."""
from __future__ import annotations

from typing import List, Optional, Tuple

from ._batches.batch import Batch
from ._rank import Rank

Batches = Tuple[Optional[Batch], ...]


class Team:
    """The ranks of one loader."""

    def __init__(self, ranks: List[Rank]) -> None:
        self.ranks = ranks
        self._ahead: List[Optional[Batch]] = [None] * len(ranks)
        self._ended = [False] * len(ranks)

    @property
    def at(self) -> List[Tuple[int, int]]:
        return [rank.at for rank in self.ranks]

    def go_to(self, epoch: int, position: int) -> None:
        self._ahead = [None] * len(self.ranks)
        self._ended = [False] * len(self.ranks)
        for rank in self.ranks:
            rank.go_to(epoch, position)

    def take(self, timeout: Optional[float]) -> Optional[Batches]:
        """The batches of the next step, or None at the end of the epoch. Batches that were taken before an exception (a
        timeout, Ctrl-C) are kept for the next call."""
        for i, rank in enumerate(self.ranks):
            if self._ahead[i] is None and not self._ended[i]:
                self._ahead[i] = rank.take(timeout)
                self._ended[i] = self._ahead[i] is None
        waiting = [batch.step for batch in self._ahead if batch is not None]
        if not waiting:
            self._ended = [False] * len(self.ranks)
            return None
        step = min(waiting)
        batches = tuple(batch if batch is not None and batch.step == step else None for batch in self._ahead)
        self._ahead = [None if batch is not None and batch.step == step else batch for batch in self._ahead]
        return batches
