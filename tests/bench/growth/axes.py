"""The table of `make bench BENCH=growth`: what is raised, from what to what, and what is served at each point.

Everything else stays as it is while one thing is raised. `photo` is what trainings do, and mostly decoding; `raw` hands
out the bytes of 1 KiB files as they are: with the decoding gone, what the daemon and the client themselves cost is seen.
"""
import collections

PHOTO = "random_resized_crop(224) hflip(0.5)"
RAW = "raw"
MANY = 1000000  # samples: no epoch ends while something is measured

# kind: which line of the plot; folder: where the files are, see folders.py; n_samples: that the index says there are.
Point = collections.namedtuple("Point", "axis value kind folder n_samples pipeline ranks jobs batch slots order")
BASE = Point("", 0, "photo", "photos", MANY, PHOTO, 1, 1, 64, 4, "torch")
SMALL = BASE._replace(kind="raw", folder="small", pipeline=RAW)

TITLES = {"ranks": "ranks of one job", "jobs": "jobs on the same data", "batch": "samples a batch",
          "side": "pixels on the long side of a picture", "samples": "samples in the dataset"}


def raised(axis, field, values, *bases, **more):
    """A point for each value and base."""
    return [base._replace(axis=axis, value=value, **{field: value}, **more) for value in values for base in bases]


def all_points():
    sides = [100, 200, 400, 800, 1600, 2800, 4000]
    samples = [10 ** exponent for exponent in range(3, 9)]
    return (raised("ranks", "ranks", [1, 2, 4, 8, 16], BASE, SMALL) +
            raised("jobs", "jobs", [1, 2, 4, 8], BASE, SMALL) +
            raised("batch", "batch", [1, 4, 16, 64, 256, 1024, 4096], BASE, SMALL) +
            [BASE._replace(axis="side", value=side, folder=f"side_{side}", batch=4) for side in sides] +
            raised("samples", "n_samples", samples, SMALL._replace(kind="torch"),
                   SMALL._replace(kind="tdperm", order="tdperm")))


def name_of(point):
    """growth_ranks_16, growth_ranks_16_raw, growth_samples_1e8_tdperm."""
    value = f"1e{len(str(point.value)) - 1}" if point.axis == "samples" else str(point.value)
    first = "torch" if point.axis == "samples" else "photo"
    return f"growth_{point.axis}_{value}" + ("" if point.kind == first else f"_{point.kind}")
