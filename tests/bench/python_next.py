"""python_next.py MODE: what the Python client costs. Prints JSON; exit 77 without NumPy.

    ready   microseconds of next(iterator) for a batch that is ready, its Batch made; `cold` of the first one after a
            pause; `array` of making batch["image"]
    first   milliseconds from Loader() to its first batch, the package imported before

DATALOADERD_SOCKET says where the daemon is; the dataset is "photos"."""
import gc
import json
import statistics
import sys
import time

try:
    import dlclient
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(77)

SLOTS = 16
ROUNDS = 30


def quantiles(values):
    values.sort()
    return {"p50": statistics.median(values), "p99": values[len(values) * 99 // 100], "n": len(values)}


def ready():
    """A ring as trainers have it: full; all but one of its slots are taken in a row, so that the daemon is not at work
    beside us, as tests/bench/consume.c does it."""
    loader = dlclient.Loader("photos", batch_size=8, pipeline="center_crop(32)", slots=SLOTS, epochs=None, timeout=0)
    iterator, times, cold, arrays, clock = iter(loader), [], [], [], time.perf_counter_ns
    gc.disable()
    for _ in range(ROUNDS):
        batch, image, held = None, None, []
        while loader.stats().ready < SLOTS - 1:
            time.sleep(0.1)
        for _ in range(SLOTS - 1):
            begin = clock()
            try:
                batch = next(iterator)
            except dlclient.DaemonTimeout:
                break                                       # it was not ready: not what is measured
            between = clock()
            image = batch["image"]
            end = clock()
            (times if held else cold).append((between - begin) / 1e3)
            arrays.append((end - between) / 1e3)
            image[0, 0, 0, 0] += 1
            held.append(batch)
        del batch, image, held
    row = quantiles(times)
    row.update(array=statistics.median(arrays), cold=statistics.median(cold))
    return row


def first():
    begin = time.perf_counter()
    loader = dlclient.Loader("photos", batch_size=64, pipeline="random_resized_crop(224) hflip(0.5)")
    batch = next(iter(loader))
    batch["image"].shape  # pylint: disable=pointless-statement
    return {"ms": (time.perf_counter() - begin) * 1e3}


print(json.dumps({"ready": ready, "first": first}[sys.argv[1]]()))
