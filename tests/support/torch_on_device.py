"""The real torch, built for CPUs, with device memory of the tests' driver: torch.empty(device="cuda") gives tensors over
it, from an allocator that does what torch's own does: memory of a tensor that died is given out again at once on the
same stream, and on others only when the streams of record_stream() have passed. Views, strides and dtypes are torch's.

install() replaces what has to be another one; scripts call it before dlclient opens a loader."""
import contextlib
import ctypes
import weakref

import on_device
import torch

_real_empty, _real_to, _real_copy = torch.empty, torch.Tensor.to, torch.Tensor.copy_
_real_device = torch._C._TensorBase.device.__get__


class Stream:
    """torch.cuda.Stream"""

    def __init__(self, number):
        self.cuda_stream = number


class _Block:
    def __init__(self, pointer, n_bytes, stream, index):
        self.pointer, self.n_bytes, self.stream, self.index = pointer, n_bytes, stream, index
        self.used_on = set()
        self.events = []


class State:
    """What torch.cuda knows."""

    current = Stream(0)
    index = 0       # of the current device
    blocks = {}     # alive, by address
    freed = []
    full = False    # no memory is left


def _give_back(pointer):
    block = State.blocks.pop(pointer)
    for number in block.used_on:
        event = on_device.event()
        on_device.check(on_device.cuda.cuEventRecord(ctypes.c_void_p(event), ctypes.c_void_p(number)))
        block.events.append(event)
    State.freed.append(block)


def _is_passed(block):
    while block.events:
        if on_device.cuda.cuEventQuery(ctypes.c_void_p(block.events[-1])) != 0:
            return False
        on_device.check(on_device.cuda.cuEventDestroy_v2(ctypes.c_void_p(block.events.pop())))
    return True


def _allocate(n_bytes, index):
    if State.full:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate more than there is")
    number = State.current.cuda_stream
    for block in State.freed:
        if block.n_bytes == n_bytes and block.stream == number and block.index == index and _is_passed(block):
            State.freed.remove(block)
            block.used_on = set()
            break
    else:
        block = _Block(on_device.allocate(n_bytes), n_bytes, number, index)
    State.blocks[block.pointer] = block
    memory = (ctypes.c_uint8 * n_bytes).from_address(block.pointer)
    tensor = torch.frombuffer(memory, dtype=torch.uint8)
    weakref.finalize(memory, _give_back, block.pointer).atexit = False
    return tensor


def _block_of(tensor):
    pointer = tensor.data_ptr()
    return next((block for block in State.blocks.values() if block.pointer <= pointer < block.pointer + block.n_bytes),
                None)


def empty(*shape, dtype=None, device=None, **others):
    if device is None or torch.device(device).type != "cuda":
        return _real_empty(*shape, dtype=dtype, device=device, **others)
    shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    size = _real_empty(shape, dtype=dtype)
    n_bytes = size.numel() * size.element_size()
    if n_bytes == 0:
        return size
    flat = _allocate(n_bytes, torch.device(device).index or 0)
    return flat.view(size.dtype).view(shape)


def _device(tensor):
    block = _block_of(tensor)
    return torch.device("cuda", block.index) if block is not None else _real_device(tensor)


def _copy(tensor, source):
    block = _block_of(tensor)
    if block is None:
        return _real_copy(tensor, source)
    n_bytes = tensor.numel() * tensor.element_size()
    assert tensor.shape == source.shape and tensor.stride() == source.stride() and tensor.dtype == source.dtype
    if _block_of(source) is None:
        on_device.wait(State.current.cuda_stream)
        return _real_copy(tensor, source)
    on_device.copy(tensor.data_ptr(), source.data_ptr(), n_bytes, State.current.cuda_stream)
    return tensor


def _to(tensor, device=None, *others, **keywords):
    if isinstance(device, (str, torch.device)) and torch.device(device).type == "cuda":
        if _block_of(tensor) is not None and not keywords.get("copy"):
            return tensor
        return _copy(empty(tuple(tensor.shape), dtype=tensor.dtype, device=device), tensor.contiguous())
    return _real_to(tensor, device, *others, **keywords)


def _cpu(tensor):
    """Waits for the current stream, as torch does."""
    if _block_of(tensor) is not None:
        on_device.wait(State.current.cuda_stream)
    return tensor.clone()


@contextlib.contextmanager
def stream(other):
    before, State.current = State.current, other
    try:
        yield
    finally:
        State.current = before


def install(n_devices=1):
    for index in reversed(range(n_devices)):  # the first one is current
        on_device.begin(index)
    torch.version.cuda = "12.8"
    torch.cuda.is_available = lambda: True
    torch.cuda.current_device = lambda: State.index
    torch.cuda.current_stream = lambda device=None: State.current
    torch.cuda.stream = stream
    torch.empty = empty
    torch.Tensor.device = property(_device)
    torch.Tensor.is_cuda = property(lambda tensor: _block_of(tensor) is not None)
    torch.Tensor.record_stream = lambda tensor, used: _block_of(tensor).used_on.add(used.cuda_stream)
    torch.Tensor.to = _to
    torch.Tensor.cpu = _cpu
    torch.Tensor.copy_ = _copy
