"""What can go wrong, a class each. Every text is a sentence that names the thing and says what to do; what the daemon
or the library said is kept as it was said."""
from __future__ import annotations

import errno as codes
from typing import Dict, Optional, Type

# What the daemon says when a rank asks for something else than the other ranks of its job.
_DISAGREEMENTS = ("all ranks of a job must ask for the same", "all ranks must load the same state")


class Error(RuntimeError):
    """Whatever dlclient raises is one of these. `errno` is the number of the errno behind it, 0 if there is none."""

    errno: int

    def __init__(self, message: str, errno: int = 0) -> None:
        super().__init__(message)
        self.errno = errno


class LoaderWarning(UserWarning):
    """What is allowed and perhaps not meant, as ranks that never came; shown once a loader."""


class DaemonNotRunning(Error, ConnectionError):
    """No daemon answers at the socket: it does not run, or it listens elsewhere."""


class PermissionDenied(Error, PermissionError):
    """The daemon's socket or the dataset is closed to this user; the text says which group to join."""


class DaemonGone(Error, ConnectionError):
    """The daemon went away and did not come back in time, or closed the connection; the text has its reason."""


class DaemonTimeout(Error, TimeoutError):
    """`timeout` or `open_timeout` was over. The loader can be used on: the next call goes on waiting."""


class VersionMismatch(Error):
    """Package, library and daemon are of versions that do not fit; the text names both."""


class OptionError(Error, ValueError):
    """An option has a value that is not allowed; the text names the option and what is allowed."""


class DatasetNotFound(Error, LookupError):
    """The daemon's configuration has no dataset of this name; the text says which it has."""


class DatasetChanged(Error):
    """The daemon came back with other files under the dataset's name, so the order is another; the text names both."""


class LimitReached(Error):
    """This user has as many connections, jobs or memory as the daemon's configuration allows, or the daemon is at a
    limit of its own; the text names the limit and what to do."""


class RankTaken(Error):
    """Another process is this rank of this job."""


class JobMismatch(Error):
    """The other ranks of the job asked for something else; the text names the field and both values."""


class SampleDamaged(Error):
    """A sample cannot be read or decoded and on_error is "fail" (or max_errors was passed): the job has ended."""


class RingFull(Error):
    """All slots are held by arrays that are still alive, so no batch can come."""


class StillInUse(Error, BufferError):
    """Batch.release() while arrays of the batch are alive: its slot goes back when the last of them dies."""


class BatchReleased(Error):
    """The batch was given back; its fields are gone."""


class LoaderClosed(Error):
    """The loader was closed, or a newer one took its place."""


class ForkedLoader(Error):
    """The loader was opened before a fork(): only the parent can use it."""


class StateError(Error, ValueError):
    """A state that cannot be loaded here; the text names the field and both values."""


class LibraryNotFound(Error, ImportError):
    """libdlclient.so.0 is not to be found; the text says where it was looked for."""


class FrameworkMissing(Error, ImportError):
    """torch, JAX or TensorFlow was asked for and is not installed."""


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
    codes.EADDRINUSE: RankTaken,
    codes.EBUSY: RankTaken,
    codes.EUSERS: RankTaken,
    codes.EDQUOT: LimitReached,
    codes.EMFILE: LimitReached,
    codes.EBADMSG: SampleDamaged,
    codes.ENOBUFS: RingFull,
    codes.ECHILD: ForkedLoader,
}


def error_of(result: int, text: str) -> Error:
    """The exception for a negative errno of the library and the text that came with it."""
    number = -result
    kind: Optional[Type[Error]] = _CLASSES.get(number)
    if number == codes.EINVAL and any(part in text for part in _DISAGREEMENTS):
        kind = JobMismatch
    elif number == codes.ENOMEM and text.startswith("user_memory"):
        kind = LimitReached
    elif number == codes.ECONNREFUSED and text.startswith("no permission"):
        kind = PermissionDenied
    return (kind or Error)(text or f"libdlclient failed with errno {number}", number)
