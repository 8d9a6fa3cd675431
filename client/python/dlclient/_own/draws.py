"""What a function draws: random numbers that belong to a sample.

The daemon gives each sample a seed, made of the loader's seed and draws, of the part of the pipeline and, where samples
come several times in an epoch, of the place in the order. With the numbers of epoch and sample it says where NumPy's
Philox begins, so a function draws the same in whichever process it runs, and the training process can draw it again."""
from __future__ import annotations

import random
import sys
from typing import Any, List

import numpy

_MASK = 2**32 - 1
_OWN_DRAWS = 2**63  # as the daemon has it
_APART = 2**63      # where numbers begin that rng does not reach


def _philox(key: int, draws: int) -> List[int]:
    """Philox4x32-10 of a counter of two words, as proto/order/philox.c."""
    words, keys = [draws & _MASK, draws >> 32, 0, 0], [key & _MASK, key >> 32]
    for _ in range(10):
        product0, product1 = words[0] * 0xd2511f53, words[2] * 0xcd9e8d57
        words = [product1 >> 32 ^ words[1] ^ keys[0], product1 & _MASK,
                 product0 >> 32 ^ words[3] ^ keys[1], product0 & _MASK]
        keys = [(keys[0] + 0x9e3779b9) & _MASK, (keys[1] + 0xbb67ae85) & _MASK]
    return words


def _seed_of(seed: int, draws: int) -> int:
    words = _philox(seed, draws)
    return seed if draws == 0 else words[1] << 32 | words[0]


def function_seed(seed: int, draws: int = 0, part: int = 0) -> int:
    """The seed that the daemon gives a function: `part` counts the parts of the pipeline that have steps, from 0."""
    own = _seed_of(seed % 2**64, draws % 2**64)
    return _seed_of(_seed_of(own, (2**64 - 1 - part) if part else 0), _OWN_DRAWS)


def process_seed(seed: int, draws: int, rank: int) -> int:
    """What the worker processes of a rank begin with; each adds its number."""
    return _seed_of(function_seed(seed, draws), _APART + rank) >> 1


def generator(seed: int, epoch: int, sample: int) -> numpy.random.Generator:
    """The generator of a sample, for a seed of function_seed()."""
    return numpy.random.Generator(numpy.random.Philox(key=seed, counter=_counter(epoch, sample)))


def _counter(epoch: int, sample: int) -> int:
    return epoch << 192 | sample << 128  # the words that count while it draws are the low ones


def sample_rng(seed: int, epoch: int, sample: int, draws: int = 0, part: int = 0) -> numpy.random.Generator:
    """The random numbers that a function of the pipeline draws for a sample, to draw them again elsewhere: for the
    seed and draws of a Loader. `part` counts the parts of the pipeline that have steps, from 0."""
    return generator(function_seed(seed, draws, part), epoch, sample)


class Draws:
    """The generators of one worker process, or of one thread of it: those that all threads share are not its to seed.
    Setting a state takes a quarter of the time of making a generator."""

    def __init__(self, is_thread: bool = False) -> None:
        self._is_thread = is_thread
        self._bits = numpy.random.Philox(0)
        self._generator = numpy.random.Generator(self._bits)
        self._counter = numpy.zeros(4, dtype=numpy.uint64)
        self._key = numpy.zeros(2, dtype=numpy.uint64)
        self._state: Any = {"bit_generator": "Philox", "buffer": numpy.zeros(4, dtype=numpy.uint64), "buffer_pos": 4,
                            "has_uint32": 0, "uinteger": 0, "state": {"counter": self._counter, "key": self._key}}

    def rng(self, seed: int, epoch: int, sample: int) -> numpy.random.Generator:
        """The sample's generator; the next call makes it another sample's."""
        self._counter[2] = sample
        self._counter[3] = epoch
        self._key[0] = seed
        self._bits.state = self._state
        return self._generator

    def number(self, seed: int, epoch: int, sample: int) -> int:
        """128 bits of the sample's, for the generators that a function owns. What rng draws has nothing of them."""
        self._counter[1] = _APART
        self.rng(seed, epoch, sample)
        self._counter[1] = 0
        low, high = self._bits.random_raw(2).tolist()
        return int(high << 64 | low)

    def seed_all(self, seed: int, epoch: int, sample: int) -> None:
        """Python's, NumPy's and, if it is in use, torch's own generators, for functions that draw from these."""
        if self._is_thread:
            return
        self.rng(seed, epoch, sample)
        number = int(self._bits.random_raw())
        random.seed(number)
        numpy.random.seed(number & _MASK)
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.default_generator.manual_seed(number)  # not torch.manual_seed(), which is slow as it asks for GPUs
