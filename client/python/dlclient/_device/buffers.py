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


class _Use:
    """A batch that is written to a set, or was allocated elsewhere meanwhile."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.names: Set[str] = set()
        self.pointers: Set[int] = set()


class Buffers:
    """The sets, and which of them is whose."""

    def __init__(self, torch: Any, into: Any) -> None:
        self._torch = torch
        self._sets = _sets_of(torch, into)
        self._uses: List[_Use] = []  # batches that are under way, oldest first
        self._last = 1               # the set of the batch that was handed out last

    def check_device(self, device: Any) -> None:
        for tensors in self._sets:
            for name, tensor in tensors.items():
                if tensor.device != device:
                    raise OptionError(f"into: {name} is on {tensor.device}, and the batches come to {device}")

    # -- two sets

    def give(self, name: str, tensor: _library.Tensor, n_bytes: int, is_last: bool) -> Optional[Any]:
        """The bytes of the buffer for a tensor of a coming batch; None: it has to be allocated. `is_last`: the buffer
        is in the memory format channels_last."""
        if len(self._sets) == 1 or name not in self._sets[0]:
            return None
        if not self._uses or name in self._uses[-1].names:
            last = self._uses[-1].number if self._uses else self._last
            self._uses.append(_Use(1 - last))
        use = self._uses[-1]
        buffer = self._as_it_lies(self._sets[use.number][name], is_last)
        shape, strides = tuple(tensor.shape[:tensor.n_dims]), tuple(tensor.strides[:tensor.n_dims])
        self._check(name, buffer, shape)
        use.names.add(name)
        if strides != tuple(stride * buffer.element_size() for stride in buffer.stride()):
            return None  # it is copied there, in other strides
        use.pointers.add(int(buffer.data_ptr()))
        whole = self._torch.as_strided(buffer, (buffer.numel(),), (1,))
        return whole.view(self._torch.uint8)[:n_bytes]

    def free(self, pointer: int) -> None:
        """The batch that was to be written there will not come."""
        for use in self._uses:
            use.pointers.discard(pointer)
        self._uses = [use for use in self._uses if use.pointers]

    def delivered(self, pointers: List[int]) -> None:
        """The oldest one is the program's."""
        if self._uses and self._uses[0].pointers.intersection(pointers):
            self._last = self._uses.pop(0).number

    # -- one set, or two

    def placed(self, name: str, values: Any, is_last: bool) -> Any:
        """The buffer with this field of a batch, as long as that has samples; its pixels as they lie."""
        buffers = [self._as_it_lies(tensors[name], is_last) for tensors in self._sets if name in tensors]
        if not buffers:
            return values
        shape = tuple(values.shape)
        for buffer in buffers:
            if buffer.data_ptr() == values.data_ptr():
                self._check(name, buffer, shape, values.dtype)
                return self._part(buffer, shape)
        buffer = buffers[0] if len(buffers) == 1 else buffers[1 - self._last]
        self._check(name, buffer, shape, values.dtype)
        part = self._part(buffer, shape)
        part.copy_(values)
        return part

    @staticmethod
    def _as_it_lies(buffer: Any, is_last: bool) -> Any:
        return buffer.permute(0, 2, 3, 1) if is_last and buffer.dim() == 4 else buffer

    @staticmethod
    def _part(buffer: Any, shape: Tuple[int, ...]) -> Any:
        return buffer if tuple(buffer.shape) == shape else buffer[:shape[0]]

    def _check(self, name: str, buffer: Any, shape: Tuple[int, ...], dtype: Any = None) -> None:
        theirs = tuple(buffer.shape)
        if not shape or len(theirs) != len(shape) or theirs[1:] != shape[1:] or theirs[0] < shape[0]:
            raise OptionError(f"into: {name} has the shape {list(theirs)}, and a batch {list(shape)}")
        if dtype is not None and buffer.dtype != dtype:
            raise OptionError(f"into: {name} is {buffer.dtype}, and a batch {dtype}")
