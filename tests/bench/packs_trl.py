"""The CPU time of TRL's plan of packs, for packs.py: packs_trl.py N. Prints microseconds a document, all N at once and 1,000 at a
time. Its function is ended where it begins to copy tokens: by then it has sorted the lengths and filled the bins."""
import json
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute
import trl.data_utils


class Planned(Exception):
    pass


class Compute:
    """pyarrow.compute without take(), with which copying begins."""

    def __getattr__(self, name):
        return getattr(pyarrow.compute, name)

    def take(self, *_):
        raise Planned


def plan_s(table):
    begin = time.process_time()
    try:
        trl.data_utils._pack_bfd(table, 4096)
    except Planned:
        return time.process_time() - begin
    raise RuntimeError("TRL plans in another way than it did: look at _pack_bfd()")


def main():
    n = int(sys.argv[1])
    lengths = np.clip((320 * np.exp(1.03 * np.random.default_rng(0).standard_normal(n))).astype(np.int64), 1, 10 ** 6)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    table = pa.table({"tokens": pa.LargeListArray.from_arrays(offsets, np.zeros(offsets[-1], dtype=np.int8))})
    trl.data_utils.pc = Compute()
    whole = plan_s(table) / n
    some = min(n, 100000)
    print(json.dumps([1e6 * whole, 1e6 * sum(plan_s(table.slice(i, 1000)) for i in range(0, some, 1000)) / some]))


main()
