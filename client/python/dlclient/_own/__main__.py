"""python -m dlclient._own: a foreman in an interpreter of its own. What it needs comes through stdin."""
from __future__ import annotations

import pickle
import sys

from . import foreman
from .board import Board


def main() -> None:
    task, n_workers, descriptor, timeout, pidfd, wake, path = pickle.load(sys.stdin.buffer)
    sys.path[:] = path
    foreman.main(Board(n_workers, descriptor), pickle.loads(task), timeout, pidfd, wake)


main()
