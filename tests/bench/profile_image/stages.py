"""Which function belongs to which stage of an image: one table.

A place is "file:function", the file as it is called in the tree, or for code without our debug information the library
or "kernel": "daemon/augment/resize/resize_avx2.c:avx2_rows", "libjpeg.so.62:jpeg_idct_islow", "kernel:copy_page". Of a function that
was inlined, the place is tried first, then those around it; rows of what is left over ("rest of ...") come after all others.
The first row that matches counts; code that no row knows belongs to its thread, see THREADS.
"""
import fnmatch

# The order of the stages is that of the table's lines, not of matching: rows are tried from above.
STAGES = (
    ("entropy decoding", ("daemon/decode/jpeg/entropy.*", "daemon/decode/jpeg/bits.*", "daemon/decode/jpeg/scan.*",
                          "daemon/decode/jpeg/huffman.*", "daemon/decode/jpeg/tables.*", "libjpeg*:decode_mcu*",
                          "libjpeg*:jpeg_fill_bit_buffer", "libjpeg*:jpeg_huff_decode", "libjpeg*:*huff*")),
    ("IDCT", ("daemon/decode/jpeg/idct*", "daemon/decode/jpeg/kernels*:*idct*", "daemon/decode/jpeg/kernels*:transform*",
              "daemon/decode/jpeg/kernels*:repeat_first_row", "daemon/decode/jpeg/kernels*:only_first_row",
              "libjpeg*:*idct*")),
    ("upsampling and colour", ("daemon/decode/jpeg/kernels*", "daemon/decode/jpeg/libjpeg.c:cmyk_to_rgb",
                               "libjpeg*:*upsample*", "libjpeg*:*ycc*", "libjpeg*:*rgb*", "libjpeg*:*merged*")),
    ("libjpeg, whatever of it has no name", ("libjpeg*",)),
    ("rest of decoding", ("daemon/decode/*", "libspng*", "libwebp*", "libz*")),
    ("resize: weights", ("daemon/augment/resize/axis.*", "daemon/augment/resize/resample.c:*weights*", "daemon/augment/resize/resample.c:*_filter",
                         "daemon/augment/resize/resample.c:sinc", "daemon/augment/resize/resample.c:axis_*", "daemon/augment/resize/resample.c:same_key",
                         "daemon/augment/resize/resample.c:prepare_*")),
    ("resize: horizontal", ("daemon/augment/resize*:*_row", "daemon/augment/resize*:*_rows",
                            "daemon/augment/resize/*:*row*")),
    ("resize: vertical", ("daemon/augment/resize*:*column*", "daemon/augment/resize*:*block*")),
    ("rest of resizing", ("daemon/augment/*", "daemon/base/philox*", "proto/philox*")),
    ("copying and clearing", ("libc*:*mem*",)),
    ("planner", ("daemon/pipeline/planner/*", "daemon/pipeline/feed*", "daemon/pipeline/task.*",
                 "daemon/data/*", "proto/order.*", "proto/tdperm.*")),
    ("reader", ("daemon/io/*", "liburing*")),
    ("client", ("client/*",)),
)

# What is left, by the thread that runs it.
WORKERS, KERNEL, OTHER = "rest of the workers", "kernel, in the workers", "other threads"
THREADS = (("worker", WORKERS), ("bare_loop", WORKERS), ("planner", "planner"), ("reader", "reader"), ("dl-reader", "reader"),
           ("iou-", "reader"), ("growth_rank", "client"))

NAMES = [name for name, _ in STAGES[:-3]] + [KERNEL, WORKERS, "planner", "reader", "client", OTHER]


def by_thread(thread, places):
    for begin, stage in THREADS:
        if thread.startswith(begin):
            return KERNEL if stage == WORKERS and places and places[0].startswith("kernel:") else stage
    return OTHER


def matches(place, patterns):
    return any(fnmatch.fnmatchcase(place, pattern) for pattern in patterns)


def stage_of(thread, places):
    """places: of one sample, the innermost function first."""
    for is_rest in (False, True):
        for place in places:
            for name, patterns in STAGES:
                if name.startswith("rest of") == is_rest and matches(place, patterns):
                    return name
    return by_thread(thread, places)


def place_of(places):
    """What to show of them: the innermost that is ours, or no header of a compiler at least."""
    named = [place for place in places if not place.startswith("..")]
    return (named or places or ["?"])[0]
