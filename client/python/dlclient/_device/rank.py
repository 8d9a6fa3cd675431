"""One attached rank whose batches are on a device. A batch is queued, not waited for: what the program asks of its
stream afterwards runs when the batch is there."""
from __future__ import annotations

import collections
import errno
import threading
from typing import Any, Callable, Deque, List, Optional, Tuple

from .._batches.batch import Batch, State
from .._batches.form import Form, as_it_is
from .._errors import DeviceMemoryFull, Error, RingFull
from .._lease import Handle, Lease, deliver, held_by, sweep
from .._rank import Rank
from .device import Device, close_left
from .library import CudaBatch, device_error_of
from .device_source import DeviceSource


class DeviceLease(Lease):
    """Holds one batch on a device. It may die in any thread, also in one that must not call CUDA, so it only says so:
    the rank releases the batch when it takes the next one."""

    __slots__ = ()

    def __del__(self) -> None:
        try:
            self.handle.released_by = threading.get_ident()
            if self.handle.freed is not None:
                self.handle.freed.put(None)
        except AttributeError:  # a signal's exception kept it from being made
            pass


class DeviceRank(Rank):
    """A rank with its device."""

    def __init__(self, handle: Handle, device: Device, epoch: int, position: int, form: Form,
                 state: Callable[[object], State]) -> None:
        super().__init__(handle, epoch, position, form, state)
        self._device = device
        self._asked_on = 0  # the stream of the last call of _next()
        self._read: Deque[Tuple[Lease, List[Any]]] = collections.deque()  # handed out and released, but still read from

    def _result(self, result: int) -> int:
        """What a call of the library returned; raises what a function that it called has raised. Memory that was
        missing for the batch after this one is asked for again with that one."""
        self._device.memory.settle()
        trouble, self._device.memory.trouble = self._device.memory.trouble, None
        try:
            if trouble is None or (result >= 0 and isinstance(trouble, Error)):
                return result
            if isinstance(trouble, MemoryError) and not isinstance(trouble, Error):
                raise DeviceMemoryFull(str(trouble), errno.ENOMEM) from trouble
            raise trouble
        finally:
            del trouble  # its traceback refers to this frame: a cycle, which would keep the handle

    def _set_epoch(self, epoch: int) -> int:
        return self._result(int(self._device.library.set_epoch(self._device.pointer, epoch)))

    def _seek(self, epoch: int, position: int) -> int:
        return self._result(int(self._device.library.seek(self._device.pointer, epoch, position)))

    def take(self, timeout: Optional[float]) -> Optional[Batch]:
        address = self.handle.out.value
        if address is not None:  # taken on the stream of that call: the one that is current now may be another one
            self.handle.check()
            before, stream = self._asked_on, self._device.memory.stream()
            if stream != before:
                self._device.use(address, stream)
                self._asked_on = stream
        return super().take(timeout)

    def _next(self, timeout_ms: int) -> int:
        device, handle = self._device, self.handle
        close_left()
        device.memory.delivered()  # if a signal's exception came before that
        self._settle(False)
        sweep(handle)
        functions = device.library if timeout_ms else device.library.quick
        self._asked_on = device.memory.stream()
        result = int(functions.next(device.pointer, timeout_ms, self._asked_on, handle.out_reference))
        if result == -errno.ENOBUFS and self._read:  # not the program's, which would have to let go of some
            self._settle(True)
            sweep(handle)
            result = int(functions.next(device.pointer, timeout_ms, self._asked_on, handle.out_reference))
        return self._result(result)

    def _settle(self, wait: bool) -> None:
        """Lets go of batches that have been read. `wait`: of one of them at least."""
        while self._read and (wait or self._device.memory.is_read(self._read[0][1])):
            if wait:
                self._device.memory.await_read(self._read[0][1])
            self._read.popleft()
            wait = False

    def _deliver(self) -> Batch:
        handle, memory = self.handle, self._device.memory
        address = int(handle.out.value or 0)
        record = CudaBatch.from_address(address)
        lease = DeviceLease(handle, address, record.batch.epoch, record.batch.step)
        source = DeviceSource(lease, record, self._form, memory)
        batch = Batch._of(source, self._state)
        if memory.owns:
            batch._keep(as_it_is)
        readers = memory.ready(source)
        if readers:
            self._read.append((lease, readers))
        self.at = (batch.epoch, batch.position)
        deliver(lease)
        memory.delivered()
        if readers:
            batch._source = None
        elif memory.owns:
            batch._let_slot_go()
        return batch

    def _drop(self, address: int) -> None:
        record, memory = CudaBatch.from_address(address), self._device.memory
        lease = DeviceLease(self.handle, address, record.batch.epoch, record.batch.step)
        readers = memory.drop(DeviceSource(lease, record, self._form, memory))
        if readers:
            self._read.append((lease, readers))
        deliver(lease)
        memory.delivered()

    def _text(self) -> str:
        return self._device.library.error_text()

    def _error(self, result: int) -> Error:
        if -result in (errno.EIO, errno.ENOMEM, errno.ENODEV):
            return device_error_of(result, self._text())
        return super()._error(result)

    def _ring_full(self) -> RingFull:
        held = self.handle.held()
        most = self._device.memory.n_batches
        return RingFull(f"{len(held)} of {most} batches on the device are held by batches and arrays that are alive: "
                        f"{held_by(held)}. del them, or open the loader with framework=\"torch\" or \"jax\", whose "
                        f"arrays have memory of their own", errno.ENOBUFS)
