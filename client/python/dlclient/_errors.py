"""The exceptions, one class for each kind of error. Every text is a sentence that names the problem and says what to
do; texts of the daemon and of the library are passed on unchanged."""
from __future__ import annotations

import errno as codes
import traceback
from typing import Dict, Optional, Type

# The daemon's texts when the options of a rank differ from those of the other ranks of its job.
_DISAGREEMENTS = ("all ranks of a job must ask for the same", "all ranks must load the same state")


class Error(RuntimeError):
    """The base of all exceptions of dlclient. `errno` is the errno that caused it, 0 if there is none."""

    errno: int

    def __init__(self, message: str, errno: int = 0) -> None:
        super().__init__(message)
        self.errno = errno


class LoaderWarning(UserWarning):
    """Something that is allowed but perhaps not intended, such as ranks that never attached; shown once a loader."""


class DaemonNotRunning(Error, ConnectionError):
    """No daemon answers at the socket: none is running, or it listens elsewhere."""


class PermissionDenied(Error, PermissionError):
    """This user may not use the daemon's socket or the dataset; the text says which group to join."""


class DaemonGone(Error, ConnectionError):
    """The daemon ended and did not come back in time, or closed the connection; the text gives its reason."""


class DaemonTimeout(Error, TimeoutError):
    """`timeout` or `open_timeout` has passed. The loader remains usable: the next call continues to wait."""


class VersionMismatch(Error):
    """The versions of package, library and daemon are incompatible; the text names both."""


class OptionError(Error, ValueError):
    """An option has a value that is not allowed; the text names the option and what is allowed."""


class DatasetNotFound(Error, LookupError):
    """The daemon's configuration has no dataset of this name; the text lists those that it has."""


class DatasetChanged(Error):
    """The daemon came back with other files under the dataset's name, so the order differs; the text names both."""


class LimitReached(Error):
    """This user has as many connections or jobs, or as much memory, as the daemon's configuration allows, or the daemon
    has reached a limit of its own; the text names the limit and says what to do."""


class NotSupported(Error, NotImplementedError):
    """The daemon's machine or container lacks something of the system, such as /proc; the text says what."""


class RankTaken(Error):
    """Another process has attached as this rank of this job."""


class JobMismatch(Error):
    """An option differs from that of the job's other ranks; the text names the option and both values."""


class SampleDamaged(Error):
    """A sample cannot be read or decoded. With on_error="raise" it is one of the batch that was to come, and the next
    next() continues after that batch; `errors` has the texts by their places in it. Otherwise on_error is "fail", and
    the job has ended: the next next() raises JobFailed."""

    errors: Dict[int, str] = {}


class JobFailed(Error):
    """The job has ended and gives no more batches; the text says why. Each further next() raises it again."""


class TooManyErrors(JobFailed):
    """More samples are damaged than max_errors allows, so the job has ended. It is not a SampleDamaged: a loop that
    goes on after those ends here."""


class RingFull(Error):
    """Arrays that are still alive hold all slots, so no batch can come."""


class StillInUse(Error, BufferError):
    """Batch.release() was called while arrays of the batch are alive: its slot is released when the last of them
    dies."""


class BatchReleased(Error):
    """The batch was released; its fields are gone."""


class WorkersGone(Error):
    """The process that starts a loader's worker processes has ended. It is final for this loader."""


class FunctionTraceback(Exception):
    """Where a function of the pipeline failed, in its process: the cause of a SampleDamaged."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"in a worker process:\n{self.text}"


class LoaderClosed(Error):
    """The loader was closed, or replaced by a newer one."""


class ForkedLoader(Error):
    """The loader was opened before a fork(): only the parent can use it."""


class StateError(Error, ValueError):
    """A state that cannot be loaded here; the text names the field and both values."""


class DeviceNotFound(Error, LookupError):
    """No GPU can be used here: no driver, one that is too old, no device, or a framework that was built without it. The
    CPU's memory is always there: leave device= out."""


class DeviceMemoryFull(Error, MemoryError):
    """The GPU has no memory for a batch. The loader remains usable: the next call tries the same batch again."""


class DeviceFailed(Error):
    """A call of CUDA failed, perhaps because of earlier work of the program's. It is final for this loader, and mostly
    for the process; other processes go on."""


class LibraryNotFound(Error, ImportError):
    """libdlclient.so.0 was not found; the text says where it was searched for."""


class FrameworkMissing(Error, ImportError):
    """torch, JAX or TensorFlow was requested and is not installed."""


_CLASSES: Dict[int, Type[Error]] = {
    codes.EINVAL: OptionError,
    codes.ECONNREFUSED: DaemonNotRunning,
    codes.ESHUTDOWN: DaemonNotRunning,
    codes.EACCES: PermissionDenied,
    codes.EPERM: PermissionDenied,
    codes.ECONNRESET: DaemonGone,
    codes.ETIMEDOUT: DaemonTimeout,
    codes.EPROTONOSUPPORT: VersionMismatch,
    codes.ENOENT: DatasetNotFound,
    codes.ESTALE: DatasetChanged,
    codes.ENOSYS: NotSupported,
    codes.EADDRINUSE: RankTaken,
    codes.EBUSY: RankTaken,
    codes.EUSERS: RankTaken,
    codes.EDQUOT: LimitReached,
    codes.EMFILE: LimitReached,
    codes.EBADMSG: SampleDamaged,
    codes.ENOTRECOVERABLE: TooManyErrors,
    codes.ENOBUFS: RingFull,
    codes.ECHILD: ForkedLoader,
}


def error_of(result: int, text: str) -> Error:
    """The exception for a negative errno of the library and the text that came with it."""
    number = -result
    kind: Optional[Type[Error]] = _CLASSES.get(number)
    if number == codes.EINVAL and any(part in text for part in _DISAGREEMENTS):
        kind = JobMismatch
    elif number == codes.ENOMEM and text.startswith(("user_memory", "memory_limit")):
        kind = LimitReached
    elif number == codes.ECONNREFUSED and "no permission" in text:
        kind = PermissionDenied
    return (kind or Error)(text or f"libdlclient failed with errno {number}", number)


def let_go(error: BaseException) -> None:
    """An exception that a program keeps must not keep a batch: its traceback holds the frames that it came through, and
    so their variables. Those of the frames that have ended are dropped; the caller drops its own."""
    traceback.clear_frames(error.__traceback__)
