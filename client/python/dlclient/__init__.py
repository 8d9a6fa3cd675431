"""dlclient: batches from dataloaderd, in the memory of the program that trains.

    import dlclient
    loader = dlclient.Loader("/data/photos", batch_size=64, pipeline="random_resized_crop(224) hflip(0.5)", seed=0)
    for epoch in range(2):
        loader.set_epoch(epoch)
        for batch in loader:                 # batch["image"] uint8 [64, 224, 224, 3], batch["label"] int64 [64]
            ...
    state = loader.state_dict()              # a small plain dict; load_state_dict() also takes it at another world size

The daemon reads, decodes and augments; nothing is started in this process and nothing is copied. Functions of your own
run in processes that the loader starts: pipeline="center_crop(224) python(my)" with workers={"my": function}; and so
does a whole Dataset object: Loader(dlclient.from_dataset(dataset), 64, n_workers=4)."""
from ._answers.timm import timm_rand_augment
from ._batches.batch import Batch
from ._dataset import Dataset, Sampler
from ._device.array import DeviceArray
from ._errors import (BatchReleased, DaemonGone, DaemonNotRunning, DaemonTimeout, DatasetChanged, DatasetNotFound,
                      DeviceFailed, DeviceMemoryFull, DeviceNotFound, Error, ForkedLoader, FrameworkMissing, JobFailed,
                      JobMismatch, LibraryNotFound, LimitReached, LoaderClosed, LoaderWarning, NotSupported,
                      OptionError, PermissionDenied, RankTaken, RingFull, SampleDamaged, StateError, StillInUse,
                      TooManyErrors, VersionMismatch, WorkersGone)
from ._loader import Loader
from ._once import OnceError, OnceTimeout, once
from ._own.begin import WorkerInfo, get_worker_info
from ._own.check import check_steps
from ._own.dataset import from_dataset
from ._own.draws import sample_rng
from ._batches.ragged import Ragged
from ._batches.source import TextLists, Texts
from ._stats import Stats
from ._version import __version__

__all__ = [
    "Batch", "BatchReleased", "DaemonGone", "DaemonNotRunning", "DaemonTimeout", "Dataset", "DatasetChanged",
    "DatasetNotFound", "DeviceArray", "DeviceFailed", "DeviceMemoryFull", "DeviceNotFound", "Error", "ForkedLoader",
    "FrameworkMissing", "JobFailed", "JobMismatch", "LibraryNotFound", "LimitReached", "Loader", "LoaderClosed",
    "LoaderWarning", "NotSupported", "OnceError", "OnceTimeout", "OptionError", "PermissionDenied", "Ragged",
    "RankTaken", "RingFull", "SampleDamaged", "Sampler", "StateError", "Stats", "StillInUse", "TextLists", "Texts",
    "TooManyErrors", "VersionMismatch", "WorkerInfo", "WorkersGone",
    "__version__", "check_steps", "from_dataset", "get_worker_info", "once", "sample_rng", "timm_rand_augment",
]
