"""once(): one of many processes runs a function, while the others wait for its result.

The library selects the process (dlclient.h, "once only"). This module adds what a function needs: a key for its
arguments, the result as JSON, and exceptions."""
from __future__ import annotations

import ctypes
import errno
import functools
import hashlib
import json
import logging
import os
import re
import threading
import time
import traceback
import weakref
from typing import Any, Callable, Dict, Iterable, Optional, Tuple, TypeVar, Union, overload

from . import _library
from ._errors import Error, OptionError

log = logging.getLogger("dlclient")

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Path = Union[str, "os.PathLike[str]"]

RUN, DONE, FAILED = 1, 2, 3
SLICE_MS = 200
_NAME_BYTES = 51  # of 64: after it comes what tells calls with other arguments apart


class OnceError(Error):
    """The work of once() failed in the process that ran it; the text ends with that process's traceback."""

    #: About the process that ran it: its `traceback` as text, its `pid` on `host`, and the number of the `attempt`.
    traceback: str
    host: str
    pid: int
    attempt: int

    def __init__(self, message: str, number: int = 0, trace: str = "", host: str = "", pid: int = 0,
                 attempt: int = 0) -> None:
        super().__init__(message, number)
        self.traceback = trace
        self.host = host
        self.pid = pid
        self.attempt = attempt


class OnceTimeout(OnceError, TimeoutError):
    """The `timeout` of once() passed while another process was still at work."""


# ---- the library's handle

# A child of a fork would keep the lock of a parent that is killed: it gives up its copies at once.
_handles: "weakref.WeakSet[_Handle]" = weakref.WeakSet()


def _close_in_child() -> None:
    for handle in list(_handles):
        handle.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


class _Handle:
    """struct dlc_once *, closed when the block ends."""

    def __init__(self, options: _library.OnceOptions) -> None:
        self.library = _library.load()
        self.pointer = ctypes.c_void_p()
        result = self.library.once_open(ctypes.byref(options), ctypes.byref(self.pointer))
        if result < 0:
            raise _error_of(result, self.library.error_text())
        _handles.add(self)

    def __enter__(self) -> "_Handle":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        pointer, self.pointer = self.pointer, ctypes.c_void_p()
        if pointer.value:
            self.library.once_close(pointer)

    def wait(self, timeout: Optional[float]) -> int:
        """Waits in slices, between which Python runs signal handlers, so that Ctrl-C ends it."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            slice_ms = SLICE_MS
            if deadline is not None:
                slice_ms = max(0, min(SLICE_MS, int((deadline - time.monotonic()) * 1000)))
            result = int(self.library.once_wait(self.pointer, slice_ms))
            if result == -errno.ETIMEDOUT:
                if deadline is not None and time.monotonic() >= deadline:
                    raise OnceTimeout(f"timeout={timeout:g} s has passed; {self.library.error_text()}", errno.ETIMEDOUT)
            elif result < 0 and result != -errno.EINTR:
                raise _error_of(result, self.library.error_text())
            elif result > 0:
                return result

    @property
    def info(self) -> _library.OnceInfo:
        info: _library.OnceInfo = self.library.once_get_info(self.pointer).contents
        return info

    def end(self, outcome: int, text: str, result: str) -> None:
        # a NUL would end the text there
        done = self.library.once_end(self.pointer, outcome, int(outcome == FAILED),
                                     text.replace("\0", "?").encode("utf-8", "backslashreplace"), result.encode())
        if done < 0:
            raise _error_of(done, self.library.error_text())


def _error_of(result: int, text: str) -> Error:
    return OptionError(text, -result) if result == -errno.EINVAL else OnceError(text, -result)


# ---- what it depends on

def _plain(value: object) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{type(value).__name__} is nothing that JSON has")


def _call_name(name: str, key: Optional[str], arguments: Tuple[Any, ...], keywords: Dict[str, Any]) -> str:
    """The name of a call: a call with other arguments is other work, which is remembered separately."""
    if not arguments and not keywords:
        return name
    try:
        text = json.dumps([name, arguments, keywords], sort_keys=True, default=_plain)
    except (TypeError, ValueError) as error:
        if key is not None:
            return name
        raise OptionError(f"once: the arguments cannot be written as JSON ({error}), so it cannot be known whether "
                          f"they are the same next time: set key= to a text that says what they are") from None
    return f"{name[:_NAME_BYTES]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _key_of(key: Optional[str], inputs: Iterable[Path]) -> str:
    digest = hashlib.sha256(json.dumps(key).encode())
    for path in inputs:
        n_bytes = 0
        digest.update(os.fsencode(path) + b"\0")
        with open(path, "rb") as file:
            for piece in iter(lambda: file.read(1 << 20), b""):
                digest.update(piece)
                n_bytes += len(piece)
        digest.update(n_bytes.to_bytes(8, "little"))
    return digest.hexdigest()


def _name_of(function: Callable[..., Any]) -> str:
    """module.function, with characters that are not allowed replaced."""
    inner = function.func if isinstance(function, functools.partial) else function
    name = getattr(inner, "__qualname__", "")
    if not name or "<" in name:
        raise OptionError("once: set name=; a function without a lasting name of its own cannot be known again")
    module = getattr(inner, "__module__", None) or ""
    if module == "__main__":
        import __main__
        module = os.path.splitext(os.path.basename(getattr(__main__, "__file__", None) or "main"))[0]
    return re.sub(r"[^A-Za-z0-9._-]", "-", f"{module}.{name}").lstrip("._-")[-64:].lstrip("._-")


# ---- running

def _progress(_: object, text: bytes) -> None:
    log.info("once: %s", _library.sentence_of(text))


_threads = threading.local()  # names: what this thread is running just now
_on_progress = _library.ProgressFunction(_progress)


def _run(handle: _Handle, name: str, function: Callable[..., T], arguments: Tuple[Any, ...],
         keywords: Dict[str, Any]) -> T:
    remark = _library.sentence_of(handle.info.remark)
    if remark:
        log.warning("once: %s: %s", name, remark)
    try:
        value = function(*arguments, **keywords)
        try:
            text = json.dumps(value)
        except (TypeError, ValueError) as error:
            raise OnceError(f"once: {name} returned what cannot be handed to the others as JSON ({error}): return "
                            f"numbers, texts, lists or dicts, or nothing") from error
        if len(text) > _library.ONCE_RESULT_MAX:
            raise OnceError(f"once: {name} returned {len(text)} bytes of JSON; at most {_library.ONCE_RESULT_MAX} are "
                            f"handed to the others: write a file and return its name")
    except (KeyboardInterrupt, GeneratorExit):
        raise  # not the work's fault: another process takes over
    except BaseException:
        try:
            if handle.pointer.value:  # else this is a child that the function forked
                handle.end(FAILED, traceback.format_exc(), "")
        except Error as error:
            log.warning("once: %s: %s", name, error)
        raise
    if handle.pointer.value:
        handle.end(DONE, "", text)
    result: T = json.loads(text)  # as the others get it: a tuple is a list
    return result


def _failure_of(name: str, info: _library.OnceInfo) -> OnceError:
    trace = _library.sentence_of(info.text)
    host = _library.text_of(info.host)
    return OnceError(f"once: {name} failed in pid {info.pid} on {host} (attempt {info.attempt}):\n{trace}".rstrip(), 0,
                     trace, host, int(info.pid), int(info.attempt))


def _call(function: Callable[..., T], arguments: Tuple[Any, ...], keywords: Dict[str, Any], name: str, scope: str,
          key: Optional[str], inputs: Iterable[Path], directory: Optional[Path], timeout: Optional[float],
          again: bool) -> T:
    if isinstance(inputs, (str, bytes, os.PathLike)):
        raise OptionError("once: inputs is a list of files, not a single one")
    options = _library.OnceOptions(
        size=ctypes.sizeof(_library.OnceOptions),
        name=_call_name(name, key, arguments, keywords).encode("utf-8", "backslashreplace"),
        scope=scope.encode("utf-8", "backslashreplace"), key=_key_of(key, inputs).encode(),
        dir=None if directory is None else os.fsencode(directory), again=again, on_progress=_on_progress)
    under_way = _threads.__dict__.setdefault("names", [])
    if options.name in under_way:
        raise OptionError(f"once: {name} is called within itself, and would wait for its own end: use another name")
    with _Handle(options) as handle:
        outcome = handle.wait(timeout)
        if outcome == RUN:
            under_way.append(options.name)
            try:
                return _run(handle, name, function, arguments, keywords)
            finally:
                under_way.remove(options.name)
        if outcome == FAILED:
            raise _failure_of(name, handle.info)
        value: T = json.loads(_library.text_of(handle.info.result) or "null")
        return value


@overload
def once(function: F) -> F:
    ...


@overload
def once(*, name: Optional[str] = None, scope: str = "node", key: Optional[str] = None, inputs: Iterable[Path] = (),
         dir: Optional[Path] = None, timeout: Optional[float] = None, again: bool = False) -> Callable[[F], F]:
    ...


@overload
def once(function: Callable[..., T], *arguments: Any, name: str, scope: str = "node", key: Optional[str] = None,
         inputs: Iterable[Path] = (), dir: Optional[Path] = None, timeout: Optional[float] = None,
         again: bool = False) -> T:
    ...


def once(function: Optional[Callable[..., Any]] = None, *arguments: Any, name: Optional[str] = None,
         scope: str = "node", key: Optional[str] = None, inputs: Iterable[Path] = (), dir: Optional[Path] = None,
         timeout: Optional[float] = None, again: bool = False) -> Any:
    """Lets one of many processes run a function; the others wait and get its result.

        @dlclient.once
        def unpack(archive):
            ...
            return folder
        folder = unpack("/data/photos.tar")                 # on each rank

        dlclient.once(shutil.copytree, source, target, name="copy")     # the same without a decorator: with a name

    Needs no daemon and no launcher: a locked file makes sure that of all processes of one user with the same name
    only one runs the function. The result is remembered for each list of arguments: later calls return it, unless
    `key` or the content of `inputs` has changed since. An exception is raised unchanged in the process that ran the
    function; the processes that waited get an OnceError with its traceback, and a later call tries again. If the
    process that runs it dies or is stopped with Ctrl-C, another one takes over. The result must be something that
    JSON can hold, and is returned as JSON gives it back.

    name:     of the work, up to 64 letters, digits, ".", "_", "-". Default for the decorator: module and function
    scope:    "node" (default): once per node, forgotten when it boots. "cluster": once per folder `dir`
    key:      a text on which the work depends besides its arguments; mandatory if they cannot be written as JSON
    inputs:   files whose content the work depends on
    dir:      where it is remembered. "cluster": a folder that all nodes see; default DATALOADERD_ONCE_DIR
    timeout:  how many seconds to wait for others; then OnceTimeout. Default: no limit
    again:    run it even if it is remembered as done"""
    if function is not None and name is not None:
        return _call(function, arguments, {}, name, scope, key, inputs, dir, timeout, again)
    if function is not None and arguments:
        raise OptionError("once: set name= to call a function with arguments")

    def decorate(inner: F) -> F:
        own_name = name if name is not None else _name_of(inner)

        @functools.wraps(inner)
        def call(*args: Any, **keywords: Any) -> Any:
            return _call(inner, args, keywords, own_name, scope, key, inputs, dir, timeout, again)

        return call  # type: ignore[return-value]

    return decorate if function is None else decorate(function)
