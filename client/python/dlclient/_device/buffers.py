"""The option into: batches in tensors of the program's own, which stay where they are, as CUDA graphs need it.

Two sets are written in turn, while the program works with the other one, without a copy. Into one set each batch is
copied on the program's stream when it is taken, for the batch after it is on its way by then."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

from .. import _library
from .._errors import OptionError


def _sets_of(torch: Any, into: Any) -> List[Dict[str, Any]]:
    given = list(into) if isinstance(into, (list, tuple)) else [into]
    if not 1 <= len(given) <= 2 or not all(isinstance(one, Mapping) and one for one in given):
        raise OptionError(f"into: {type(into).__name__}; a dict of tensors is expected, such as {{\"image\": buffer}}, "
                          f"or two of them, which are written in turn")
    sets = [dict(one) for one in given]
    for tensors in sets:
        for name, tensor in tensors.items():
            if not isinstance(tensor, torch.Tensor) or not tensor.is_cuda:
                raise OptionError(f"into: {name}: expected a torch tensor on the device")
        if set(tensors) != set(sets[0]):
            raise OptionError(f"into: one set has the fields {', '.join(sets[0])}, the other {', '.join(tensors)}")
    pointers = [tensor.data_ptr() for tensors in sets for tensor in tensors.values()]
    if len(set(pointers)) < len(pointers):
        raise OptionError("into: two of the tensors lie in the same memory")
    return sets


class Buffers:
    """The sets, and which of them is whose."""

    def __init__(self, torch: Any, into: Any) -> None:
        self._torch = torch
        self._sets = _sets_of(torch, into)
        self._last = 1                       # the set of the batch that was handed out last
        self._coming: Optional[int] = None   # the set of the one that is being handed out
        self._filled: Set[str] = set()       # its fields that were written there

    def check_device(self, device: Any) -> None:
        for tensors in self._sets:
            for name, tensor in tensors.items():
                if tensor.device != device:
                    raise OptionError(f"into: {name} is on {tensor.device}, and the batches come to {device}")

    # -- two sets

    def give(self, name: str, tensor: _library.Tensor, n_bytes: int, dtype: Any, given: Mapping[int, Any],
             is_last: bool) -> Optional[Any]:
        """The bytes of the buffer for a tensor of a coming batch; None: it has to be allocated. `given`: memory of the
        batches that are under way, by address. `is_last`: the buffer is in the memory format channels_last."""
        if len(self._sets) == 1 or name not in self._sets[0]:
            return None
        buffers = [self._as_it_lies(tensors[name], is_last) for tensors in self._sets]
        under_way = [i for i, buffer in enumerate(buffers) if buffer.data_ptr() in given]
        buffer = buffers[1 - (under_way[0] if under_way else self._last)]
        shape, strides = tuple(tensor.shape[:tensor.n_dims]), tuple(tensor.strides[:tensor.n_dims])
        if not self._fits(buffer, shape) or buffer.dtype != dtype or \
                strides != tuple(stride * buffer.element_size() for stride in buffer.stride()):
            return None  # it is copied there, in other strides; or placed() says what is wrong
        whole = self._torch.as_strided(buffer, (buffer.numel(),), (1,))
        return whole.view(self._torch.uint8)[:n_bytes]

    def check_filled(self, names: List[str]) -> None:
        """All buffers are to have a field of a batch, which has these; one that is never written would look like a
        batch that does not change."""
        missing = set(self._sets[0]) - self._filled
        for name in missing:
            if name not in names:
                raise OptionError(f"into: {name!r} is not a field of the batch, which has {', '.join(names)}")
            raise OptionError(f"into: {name!r} cannot be written to a tensor: its samples are of different sizes, or "
                              f"it is text or bytes")

    def drop(self) -> None:
        """Nobody gets the batch that was being handed out."""
        self._coming, self._filled = None, set()

    def delivered(self) -> None:
        """The batch is the program's."""
        if self._coming is not None:
            self._last, self._coming = self._coming, None
        self._filled = set()

    # -- one set, or two

    def placed(self, name: str, values: Any, is_last: bool) -> Any:
        """The buffer with this field of a batch, as long as that has samples; its pixels as they lie."""
        if name not in self._sets[0]:
            return values
        shape, number = tuple(values.shape), (1 - self._last) % len(self._sets)
        pointers = [tensors[name].data_ptr() for tensors in self._sets]
        is_there = values.data_ptr() in pointers
        if is_there:
            number = pointers.index(values.data_ptr())
        buffer = self._as_it_lies(self._sets[number][name], is_last)
        self._check(name, buffer, shape, values.dtype)
        part = self._part(buffer, shape)
        if not is_there:
            part.copy_(values)
        self._coming = number
        self._filled.add(name)
        return part

    @staticmethod
    def _as_it_lies(buffer: Any, is_last: bool) -> Any:
        return buffer.permute(0, 2, 3, 1) if is_last and buffer.dim() == 4 else buffer

    @staticmethod
    def _part(buffer: Any, shape: Tuple[int, ...]) -> Any:
        return buffer if tuple(buffer.shape) == shape else buffer[:shape[0]]

    @staticmethod
    def _fits(buffer: Any, shape: Tuple[int, ...]) -> bool:
        theirs = tuple(buffer.shape)
        return len(shape) > 0 and len(theirs) == len(shape) and theirs[1:] == shape[1:] and theirs[0] >= shape[0]

    def _check(self, name: str, buffer: Any, shape: Tuple[int, ...], dtype: Any) -> None:
        if not self._fits(buffer, shape):
            raise OptionError(f"into: {name} has the shape {list(buffer.shape)}, and a batch {list(shape)}")
        if buffer.dtype != dtype:
            raise OptionError(f"into: {name} is {buffer.dtype}, and a batch {dtype}")
