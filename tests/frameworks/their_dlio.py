"""Loader classes that DLIO is told to use: dlclient's, of the datasets of the test. What they yield is written down."""
import hashlib
import json
import os

import dlclient.dlio


class Seen(dlclient.dlio.Loader):
    """For each batch a line: epoch, shape, dtype, and a digest of each sample."""
    train, valid = "train", "valid"

    def next(self):
        epoch, kind = self._n_epochs, str(self.dataset_type)
        with open(f"{os.environ['SEEN']}.{kind}.{self._args.my_rank}", "a", encoding="utf-8") as file:
            for batch in super().next():
                digests = [hashlib.sha256(sample.numpy().tobytes()).hexdigest() for sample in batch]
                file.write(json.dumps([epoch, list(batch.shape), str(batch.dtype), digests]) + "\n")
                file.flush()
                yield batch


class Nameless(dlclient.dlio.Loader):
    """Says nothing about the dataset."""


class Stored(dlclient.dlio.Raw):
    """The bytes of the files, and how many."""
    train = "train"

    def next(self):
        with open(f"{os.environ['SEEN']}.raw", "a", encoding="utf-8") as file:
            for batch in super().next():
                file.write(json.dumps([hashlib.sha256(bytes(sample.numpy())).hexdigest() for sample in batch]) + "\n")
                file.flush()
                yield batch
