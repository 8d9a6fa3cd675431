"""libdlclient.so.0 through ctypes: its structs, its functions, and where it is found.

The structs mirror dlclient.h field by field; tests/integration/test_python.py compares every offset with the header.
Functions come twice: those of `quick` keep the interpreter's lock, for calls that never wait; the others drop it."""
from __future__ import annotations

import ctypes
import os
import sys
import threading
from typing import Any, List, Optional, Tuple

from ._errors import LibraryNotFound, VersionMismatch
from ._version import __version__

SONAME = "libdlclient.so.0"
VARIABLE = "DATALOADERD_LIBRARY"
END_OF_EPOCH = 1

ProgressFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class Progress(ctypes.Structure):
    """struct dlc_progress"""

    _fields_ = [
        ("dataset", ctypes.c_char_p),
        ("phase", ctypes.c_char_p),
        ("unit", ctypes.c_char_p),
        ("text", ctypes.c_char_p),
        ("done", ctypes.c_uint64),
        ("total", ctypes.c_uint64),
        ("seconds", ctypes.c_double),
        ("per_second", ctypes.c_double),
        ("seconds_left", ctypes.c_double),
    ]


WaitFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Progress))


class Column(ctypes.Structure):
    """struct dlc_column"""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_uint32),
        ("values", ctypes.c_void_p),
        ("n_values", ctypes.c_uint64),
    ]


class Options(ctypes.Structure):
    """struct dlc_options"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("dataset", ctypes.c_char_p),
        ("pipeline", ctypes.c_char_p),
        ("batch_size", ctypes.c_int),
        ("seed", ctypes.c_uint64),
        ("socket", ctypes.c_char_p),
        ("job", ctypes.c_char_p),
        ("rank", ctypes.c_int),
        ("world_size", ctypes.c_int),
        ("shuffle", ctypes.c_bool),
        ("drop_last", ctypes.c_bool),
        ("partition", ctypes.c_char_p),
        ("order", ctypes.c_char_p),
        ("on_error", ctypes.c_char_p),
        ("first_epoch", ctypes.c_uint64),
        ("n_epochs", ctypes.c_uint64),
        ("n_slots", ctypes.c_int),
        ("open_timeout_ms", ctypes.c_int),
        ("on_progress", ProgressFunction),
        ("userdata", ctypes.c_void_p),
        ("first_position", ctypes.c_uint64),
        ("on_restart", ctypes.c_char_p),
        ("restart_timeout_ms", ctypes.c_int),
        ("max_errors", ctypes.c_double),
        ("draws", ctypes.c_uint64),
        ("shuffle_buffer", ctypes.c_int),
        ("dealing", ctypes.c_char_p),
        ("sampler", ctypes.c_char_p),
        ("columns", ctypes.POINTER(Column)),
        ("n_columns", ctypes.c_int),
        ("on_wait", WaitFunction),
        ("leave_forms", ctypes.c_bool),
        ("near_device", ctypes.c_char_p),
        ("leave_operations", ctypes.c_bool),
    ]


class Place(ctypes.Structure):
    """struct dlc_place"""

    _fields_ = [("offset", ctypes.c_uint64), ("n_bytes", ctypes.c_uint64)]


class Extent(ctypes.Structure):
    """struct dlc_extent"""

    _fields_ = [("n", ctypes.c_uint64 * 2)]


class Tensor(ctypes.Structure):
    """struct dlc_tensor"""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_uint32),
        ("n_dims", ctypes.c_uint32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("data", ctypes.c_void_p),
        ("places", ctypes.POINTER(Place)),
        ("extents", ctypes.POINTER(Extent)),
        ("padded_dim", ctypes.c_uint8),
        ("n_padded_dims", ctypes.c_uint8),
        ("pads_left", ctypes.c_uint8),
        ("is_whole", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 4),
    ]


class Batch(ctypes.Structure):
    """struct dlc_batch"""

    _fields_ = [
        ("epoch", ctypes.c_uint64),
        ("step", ctypes.c_uint64),
        ("n_samples", ctypes.c_uint32),
        ("n_tensors", ctypes.c_uint32),
        ("tensors", ctypes.POINTER(Tensor)),
        ("indices", ctypes.c_void_p),
        ("substitutes", ctypes.c_void_p),
        ("n_substituted", ctypes.c_uint32),
        ("idx_slot", ctypes.c_uint32),
        ("sequence", ctypes.c_uint64),
        ("planned_ns", ctypes.c_uint64),
        ("ready_ns", ctypes.c_uint64),
        ("n_skipped", ctypes.c_uint32),
        ("is_replay", ctypes.c_uint32),
        ("position", ctypes.c_uint64),
        ("served", ctypes.c_void_p),
    ]


SAMPLES_ASKED_MAX = 4096
UNKNOWN = 2**64 - 1  # DLC_UNKNOWN: of a stream that has not ended


class Info(ctypes.Structure):
    """struct dlc_info"""

    _fields_ = [
        ("dataset_samples", ctypes.c_uint64),
        ("epoch_samples", ctypes.c_uint64),
        ("epoch_batches", ctypes.c_uint64),
        ("dataset_digest", ctypes.c_char_p),
        ("pipeline", ctypes.c_char_p),
        ("job", ctypes.c_char_p),
        ("memory", ctypes.c_char_p),
        ("rank", ctypes.c_uint32),
        ("world_size", ctypes.c_uint32),
        ("batch_size", ctypes.c_uint32),
        ("n_slots", ctypes.c_uint32),
        ("memory_base", ctypes.c_void_p),
        ("memory_bytes", ctypes.c_uint64),
        ("n_restarts", ctypes.c_uint32),
        ("is_waiting", ctypes.c_uint32),
        ("is_stream", ctypes.c_uint32),
        ("is_made", ctypes.c_uint32),
        ("uses_batch_size", ctypes.c_uint32),
        ("epoch_units", ctypes.c_uint64),
        ("sampler", ctypes.c_char_p),
        ("columns_digest", ctypes.c_char_p),
        ("dataset", ctypes.c_char_p),
        ("socket", ctypes.c_char_p),
        ("ticket", ctypes.c_char_p),
        ("order", ctypes.c_char_p),
        ("blocks_digest", ctypes.c_char_p),
    ]


class Part(ctypes.Structure):
    """struct dlc_part"""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("digest", ctypes.c_char_p),
        ("first", ctypes.c_uint64),
        ("n_samples", ctypes.c_uint64),
    ]


class Launch(ctypes.Structure):
    """struct dlc_launch"""

    _fields_ = [
        ("rank", ctypes.c_int),
        ("world_size", ctypes.c_int),
        ("launcher", ctypes.c_char_p),
        ("run", ctypes.c_char_p),
        ("remark", ctypes.c_char_p),
    ]


class Daemon(ctypes.Structure):
    """struct dlc_daemon"""

    _fields_ = [
        ("absence", ctypes.c_char_p),
        ("socket", ctypes.c_char_p),
        ("version", ctypes.c_char_p),
        ("log", ctypes.c_char_p),
        ("program", ctypes.c_char_p),
        ("pid", ctypes.c_uint64),
        ("up_seconds", ctypes.c_uint64),
        ("n_datasets", ctypes.c_uint32),
        ("n_jobs", ctypes.c_uint32),
        ("is_private", ctypes.c_uint32),
        ("serves_paths", ctypes.c_uint32),
    ]


class Stats(ctypes.Structure):
    """struct dlc_stats"""

    _fields_ = [
        ("n_batches", ctypes.c_uint64),
        ("n_samples", ctypes.c_uint64),
        ("n_substituted", ctypes.c_uint64),
        ("n_skipped", ctypes.c_uint64),
        ("n_waits", ctypes.c_uint64),
        ("waited_ns", ctypes.c_uint64),
        ("restart_ns", ctypes.c_uint64),
        ("opened_ns", ctypes.c_uint64),
        ("read_ns", ctypes.c_uint64),
        ("queued_ns", ctypes.c_uint64),
        ("decode_ns", ctypes.c_uint64),
        ("n_ready", ctypes.c_uint32),
        ("n_held", ctypes.c_uint32),
        ("n_slots", ctypes.c_uint32),
        ("n_restarts", ctypes.c_uint32),
        ("hold_ns", ctypes.c_uint64),
    ]


class Diagnosis(ctypes.Structure):
    """struct dlc_diagnosis"""

    _fields_ = [
        ("limit", ctypes.c_char_p),
        ("input_bound", ctypes.c_char_p),
        ("verdict", ctypes.c_char_p),
        ("advice", ctypes.c_char_p),
        ("seconds", ctypes.c_double),
        ("wait_share", ctypes.c_double),
        ("samples_per_second", ctypes.c_double),
        ("predicted_samples_per_second", ctypes.c_double),
        ("tokens_per_second", ctypes.c_double),
        ("n_texts_cut", ctypes.c_uint64),
        ("n_tokens_cut", ctypes.c_uint64),
    ]


class WorkOptions(ctypes.Structure):
    """struct dlc_work_options"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("socket", ctypes.c_char_p),
        ("ticket", ctypes.c_char_p),
        ("worker", ctypes.c_uint64),
        ("supervises", ctypes.c_bool),
        ("timeout_ms", ctypes.c_int),
        ("limit_ms", ctypes.c_int),
    ]


class Array(ctypes.Structure):
    """struct dlc_array"""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_uint32),
        ("n_dims", ctypes.c_uint32),
        ("shape", ctypes.c_int64 * 8),
    ]


class WorkStep(ctypes.Structure):
    """struct dlc_work_step"""

    _fields_ = [
        ("function", ctypes.c_char_p),
        ("field", ctypes.c_char_p),
        ("seed", ctypes.c_uint64),
        ("input", Array),
        ("output", Array),
        ("parameter", ctypes.c_char_p),
        ("n_fields", ctypes.c_uint32),
    ]


class Order(ctypes.Structure):
    """struct dlc_order"""

    _fields_ = [
        ("number", ctypes.c_uint64),
        ("epoch", ctypes.c_uint64),
        ("sample", ctypes.c_uint64),
        ("n_steps", ctypes.c_uint32),
        ("steps", ctypes.POINTER(WorkStep)),
        ("n_samples", ctypes.c_uint32),
        ("samples", ctypes.POINTER(ctypes.c_int64)),
        ("lists", ctypes.POINTER(ctypes.POINTER(Array))),
    ]


class Run(ctypes.Structure):
    """struct dlc_run"""

    _fields_ = [
        ("first", ctypes.POINTER(Order)),
        ("n_samples", ctypes.c_uint32),
        ("samples", ctypes.POINTER(ctypes.c_uint64)),
        ("seeds", ctypes.POINTER(ctypes.c_uint64)),
        ("input_strides", ctypes.POINTER(ctypes.c_uint64)),
        ("output_strides", ctypes.POINTER(ctypes.c_uint64)),
        ("begun", ctypes.POINTER(ctypes.c_uint64)),
    ]


ONCE_RESULT_MAX = 1048576


class OnceOptions(ctypes.Structure):
    """struct dlc_once_options"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("scope", ctypes.c_char_p),
        ("key", ctypes.c_char_p),
        ("dir", ctypes.c_char_p),
        ("again", ctypes.c_bool),
        ("on_progress", ProgressFunction),
        ("userdata", ctypes.c_void_p),
    ]


class OnceInfo(ctypes.Structure):
    """struct dlc_once_info"""

    _fields_ = [
        ("attempt", ctypes.c_uint64),
        ("status", ctypes.c_int),
        ("text", ctypes.c_char_p),
        ("result", ctypes.c_char_p),
        ("host", ctypes.c_char_p),
        ("pid", ctypes.c_int64),
        ("when", ctypes.c_int64),
        ("remark", ctypes.c_char_p),
    ]


_LOADER = ctypes.c_void_p
_ONCE = ctypes.c_void_p
_WORK = ctypes.c_void_p
_OUT = ctypes.POINTER(ctypes.c_void_p)
_NUMBER = ctypes.POINTER(ctypes.c_uint64)
_NAMES = ctypes.POINTER(ctypes.POINTER(ctypes.c_char_p))

# name, result, arguments
_FUNCTIONS: List[Tuple[str, Any, List[Any]]] = [
    ("dlc_open", ctypes.c_int, [ctypes.POINTER(Options), _OUT]),
    ("dlc_close", None, [_LOADER]),
    ("dlc_detach", None, [_LOADER]),
    ("dlc_next", ctypes.c_int, [_LOADER, ctypes.c_int, _OUT]),
    ("dlc_await_length", ctypes.c_int, [_LOADER, ctypes.c_int]),
    ("dlc_release", ctypes.c_int, [_LOADER, ctypes.c_void_p]),
    ("dlc_sample_error", ctypes.c_char_p, [_LOADER, ctypes.c_void_p, ctypes.c_uint32]),
    ("dlc_set_epoch", ctypes.c_int, [_LOADER, ctypes.c_uint64]),
    ("dlc_seek", ctypes.c_int, [_LOADER, ctypes.c_uint64, ctypes.c_uint64]),
    ("dlc_cursor_after", ctypes.c_int, [ctypes.POINTER(Options), ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64,
                                        ctypes.c_uint64, _NUMBER, _NUMBER]),
    ("dlc_pipeline_steps", ctypes.c_int, [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]),
    ("dlc_fd", ctypes.c_int, [_LOADER]),
    ("dlc_get_info", ctypes.POINTER(Info), [_LOADER]),
    ("dlc_get_stats", ctypes.c_int, [_LOADER, ctypes.POINTER(Stats), ctypes.c_size_t]),
    ("dlc_diagnose", ctypes.c_int, [_LOADER, ctypes.POINTER(Diagnosis), ctypes.c_size_t]),
    ("dlc_get_launch", ctypes.c_int, [ctypes.POINTER(Launch), ctypes.c_size_t]),
    ("dlc_get_daemon", ctypes.c_int, [ctypes.c_bool, ctypes.POINTER(Daemon), ctypes.c_size_t]),
    ("dlc_get_part", ctypes.c_int, [_LOADER, ctypes.c_uint32, ctypes.POINTER(Part), ctypes.c_size_t]),
    ("dlc_hold", ctypes.c_char_p, [_LOADER]),
    ("dlc_progress_line", ctypes.c_int, [ctypes.POINTER(Progress), ctypes.c_uint, ctypes.c_bool, ctypes.c_char_p,
                                         ctypes.c_size_t]),
    ("dlc_warning", ctypes.c_char_p, [_LOADER]),
    ("dlc_n_classes", ctypes.c_int64, [_LOADER]),
    ("dlc_class_name", ctypes.c_char_p, [_LOADER, ctypes.c_uint64]),
    ("dlc_epoch_length", ctypes.c_int, [_LOADER, ctypes.c_uint64, _NUMBER, _NUMBER]),
    ("dlc_epoch_order", ctypes.c_int, [_LOADER, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64]),
    ("dlc_batches_from", ctypes.c_int, [_LOADER, ctypes.c_uint64, _NUMBER]),
    ("dlc_sample_names", ctypes.c_int, [_LOADER, ctypes.c_void_p, ctypes.c_uint32, _NAMES]),
    ("dlc_sample_numbers", ctypes.c_int, [_LOADER, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p,
                                          ctypes.POINTER(ctypes.c_uint32)]),
    ("dlc_once_open", ctypes.c_int, [ctypes.POINTER(OnceOptions), _OUT]),
    ("dlc_once_wait", ctypes.c_int, [_ONCE, ctypes.c_int]),
    ("dlc_once_end", ctypes.c_int, [_ONCE, ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p]),
    ("dlc_once_close", None, [_ONCE]),
    ("dlc_once_get_info", ctypes.POINTER(OnceInfo), [_ONCE]),
    ("dlc_work_open", ctypes.c_int, [ctypes.POINTER(WorkOptions), _OUT]),
    ("dlc_work_next_run", ctypes.c_int, [_WORK, ctypes.c_int, _OUT]),
    ("dlc_work_run_done", ctypes.c_int, [_WORK, ctypes.c_uint32, ctypes.c_char_p]),
    ("dlc_work_deliver", ctypes.c_int, [_WORK, ctypes.c_uint32, ctypes.POINTER(ctypes.c_int64)]),
    ("dlc_work_varies", ctypes.c_bool, [_WORK, ctypes.c_uint32, ctypes.c_uint32]),
    ("dlc_work_ended", ctypes.c_int, [_WORK, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_bool]),
    ("dlc_work_close", None, [_WORK]),
    ("dlc_last_error", ctypes.c_char_p, []),
    ("dlc_version", ctypes.c_char_p, []),
]


class Functions:
    """The library's functions under their names without dlc_, for one of the two ways of calling them."""

    open: Any
    close: Any
    detach: Any
    next: Any
    await_length: Any
    release: Any
    sample_error: Any
    set_epoch: Any
    seek: Any
    cursor_after: Any
    pipeline_steps: Any
    fd: Any
    get_info: Any
    get_stats: Any
    diagnose: Any
    get_part: Any
    hold: Any
    progress_line: Any
    get_launch: Any
    get_daemon: Any
    warning: Any
    n_classes: Any
    class_name: Any
    epoch_length: Any
    epoch_order: Any
    batches_from: Any
    sample_names: Any
    sample_numbers: Any
    once_open: Any
    once_wait: Any
    once_end: Any
    once_close: Any
    once_get_info: Any
    work_open: Any
    work_next_run: Any
    work_run_done: Any
    work_deliver: Any
    work_varies: Any
    work_ended: Any
    work_close: Any
    last_error: Any
    version: Any

    def __init__(self, library: ctypes.CDLL, path: str) -> None:
        for name, result, arguments in _FUNCTIONS:
            try:
                function = library[name]
            except AttributeError:
                raise VersionMismatch(f"{path} has no {name}(): it is older than this package, dlclient {__version__}. "
                                      f"Install the library of the same version") from None
            function.restype = result
            function.argtypes = arguments
            setattr(self, name[len("dlc_"):], function)


class Library(Functions):
    """The loaded library. Its calls drop the interpreter's lock; those of `quick` keep it."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(ctypes.CDLL(path), path)
        self.quick = Functions(ctypes.PyDLL(path), path)
        check_versions(self.version_text, path)

    @property
    def version_text(self) -> str:
        return text_of(self.version())

    def error_text(self) -> str:
        """The error text of this thread's last call."""
        return sentence_of(self.quick.last_error())


def text_of(value: Optional[bytes]) -> str:
    """Names and what is made of them, as os.listdir() has them: bytes that are not UTF-8 stay what they are."""
    return os.fsdecode(value) if value else ""


def sentence_of(value: Optional[bytes]) -> str:
    """What is shown to a person: it can always be printed."""
    return value.decode("utf-8", "backslashreplace") if value else ""


def split_version(text: str) -> Tuple[Tuple[int, ...], str]:
    """Of "0.1.0+git20261128010203.0123abcd" the numbers, and when the commit was made, as a text that can be compared;
    "" in a tree, and in a release."""
    numbers, _, commit = text.partition("+git")
    return tuple(int(number) for number in numbers.split(".")), commit.partition(".")[0]


def check_versions(library: str, path: str) -> None:
    """A newer library works with an older package (its structs grow at their ends), but not the other way round."""
    try:
        theirs, their_commit = split_version(library)
    except ValueError:
        theirs, their_commit = (), ""
    ours, our_commit = split_version(__version__)
    is_older = theirs < ours or (theirs == ours and "" < their_commit < our_commit)
    if theirs[:1] != ours[:1] or is_older:
        raise VersionMismatch(f"{path} is libdlclient {library or 'of no version'}, this package is dlclient "
                              f"{__version__} and needs that version or a newer {ours[0]}.x: install them together")


def candidates() -> List[str]:
    """Where the library may be: only the path in the environment if there is one; else beside the package (a wheel),
    below the same prefix (make install), and where the system looks."""
    named = os.environ.get(VARIABLE)
    if named:
        return [named]
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.join(here, SONAME)]
    prefix = os.path.dirname(os.path.dirname(os.path.dirname(here)))
    multiarch = getattr(sys.implementation, "_multiarch", "")
    if os.path.basename(prefix) == "lib":
        places += [os.path.join(prefix, multiarch, SONAME), os.path.join(prefix, SONAME)]
    return [place for place in places if os.path.exists(place)] + [SONAME]


_lock = threading.Lock()
_loaded: Optional[Library] = None


def load() -> Library:
    """The library, loaded once a process. LibraryNotFound or VersionMismatch if it cannot be loaded."""
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = _find()
        return _loaded


def _find() -> Library:
    refusals = []
    for path in candidates():
        try:
            return Library(path)
        except OSError as error:
            refusals.append(f"{path} ({error})")
    raise LibraryNotFound(f"libdlclient cannot be loaded; tried {', '.join(refusals)}. Install dataloaderd's wheel, or "
                          f"say where the library is with {VARIABLE}")
