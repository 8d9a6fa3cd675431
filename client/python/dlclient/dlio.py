"""The loader class for DLIO, the benchmark of MLPerf Storage. DLIO imports it by the name that a workload gives:

    reader:
      data_loader: pytorch
      data_loader_classname: my_loaders.Retinanet
      data_loader_sampler: iterative

with a file my_loaders.py on PYTHONPATH that says which datasets of the daemon's configuration are meant:

    import dlclient.dlio

    class Retinanet(dlclient.dlio.Loader):
        train = "retinanet"

Only DLIO imports this module; nothing else of the package needs DLIO."""
from __future__ import annotations

from typing import Any, Dict, Iterator, Optional

from dlio_benchmark.common.enumerations import (DataLoaderType, DatasetType, FrameworkType,  # type: ignore
                                                Shuffle)
from dlio_benchmark.data_loader.base_data_loader import BaseDataLoader  # type: ignore

from ._errors import OptionError
from ._loader import Loader as _Loader

__all__ = ["Loader", "Raw"]


def _word(value: object) -> str:
    """What a workload says for a value of one of DLIO's enumerations."""
    return str(getattr(value, "value", value))


class Loader(BaseDataLoader):  # type: ignore[misc]
    """Reads and decodes each file, and yields batches of the size that DLIO's own loader yields: grey of uint8, batch x
    height x width x 1. The size is what DLIO makes of `dataset.record_length`, or of `record_length_resize`, if that is
    set: then each picture is resized.

    train, valid    names of the daemon's datasets, a sample a file, as many as DLIO knows of
    pipeline        the steps for a sample, of which the first field is yielded. None: by the format"""

    train: Optional[str] = None
    valid: Optional[str] = None
    pipeline: Optional[str] = None

    def __init__(self, format_type: Any, dataset_type: Any, epoch: int) -> None:
        super().__init__(format_type, dataset_type, epoch, DataLoaderType.PYTORCH)
        self._loader: Optional[_Loader] = None
        self._n_epochs = 0

    # -- what DLIO calls

    def read(self, *_: object) -> None:
        """Attaches to the daemon, which begins to prepare batches. DLIO calls it once, or before each epoch."""
        if self._loader is None:
            self._loader = _Loader(self._dataset(), **self._options())
            self._check(self._loader)

    def next(self) -> Iterator[Any]:
        """The batches of the next epoch; one is valid until the next is asked for."""
        self.read()
        assert self._loader is not None
        self._loader.set_epoch(self._n_epochs)
        self._n_epochs += 1
        for batch in self._loader:
            yield next(iter(batch.values()))

    def finalize(self) -> None:
        """DLIO calls it after each epoch: the loader stays open for the next one, until the process ends."""

    # -- what is asked of dlclient

    def _options(self) -> Dict[str, Any]:
        args = self._args
        shuffles = args.sample_shuffle is not Shuffle.OFF or Shuffle(_word(args.file_shuffle)) is not Shuffle.OFF
        return {"batch_size": self.batch_size, "pipeline": self.pipeline or self._steps(), "seed": args.seed,
                "shuffle": shuffles, "drop_last": True, "partition": "drop", "rank": args.my_rank,
                "world_size": args.comm_size,
                "framework": "torch" if args.framework is FrameworkType.PYTORCH else "numpy"}

    def _dataset(self) -> str:
        kind = "train" if self.dataset_type is DatasetType.TRAIN else "valid"
        name: Optional[str] = getattr(self, kind)
        if not name:
            raise OptionError(f"dlio: which dataset of the daemon is meant? Derive a class from dlclient.dlio.Loader "
                              f"with {kind} = \"NAME\" in it, and let data_loader_classname name that class")
        return name

    def _steps(self) -> str:
        """Grey pixels, in the size of the constant array that stands for a sample in DLIO's own loaders."""
        format_name = _word(self.format_type)
        if format_name not in ("jpeg", "png"):
            raise OptionError(f"dlio: format: {format_name}; jpeg and png are read. For another one, derive a class "
                              f"from dlclient.dlio.Loader that has a pipeline")
        height, width = self._args.resized_image.shape[:2]
        return f"image: decode(mode=L) resize({height}:{width})"

    def _check(self, loader: _Loader) -> None:
        """The daemon's dataset and DLIO's must be the same files."""
        if self._args.num_samples_per_file != 1:
            raise OptionError(f"dlio: num_samples_per_file: {self._args.num_samples_per_file}; a file has one sample")
        if loader.dataset.n_samples != self.num_samples:
            raise OptionError(f"dlio: the dataset {loader.dataset.name} has {loader.dataset.n_samples} samples, and "
                              f"DLIO expects {self.num_samples} ({self.dataset_type}): both must be the same files")


class Raw(Loader):
    """Reads the files and decodes nothing, as the readers of MLPerf Storage 3 do: batches of stored bytes."""

    def _steps(self) -> str:
        return "image: raw" if _word(self.format_type) in ("jpeg", "png") else "file: raw"
