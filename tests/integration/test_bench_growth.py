#!/usr/bin/env python3
"""What `make bench BENCH=growth` and BENCH=profile stand on: their datasets, their arithmetic, their plots."""
import os
import subprocess
import sys
from xml.etree import ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "bench")]
from growth import axes, lines, measure, report
from harness import (ROOT, Skip, case, check_bytes, check_sequence, contains, equal, identity_pixels, main, png, samples_of,
                     write)
from profile_image import instructions, perf, stages

TOOLS = os.path.join(ROOT, "build", "release", "tools")


def tool(name, *arguments):
    program = os.path.join(TOOLS, name)
    if not os.path.exists(program):
        raise Skip(f"build/release/tools/{name} was not built")
    return subprocess.run([program, *map(str, arguments)], check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, timeout=300)


# ---- datasets -------------------------------------------------------------------------------------------------------

@case("a daemon takes an index of many samples over few files as the folder's own")
def _(box):
    folder, index = box.folder_of_files("d", 7, n_classes=3), box.path("index")
    done = tool("many_index", folder, index, "d", 25)
    equal(done.returncode, 0, done.stdout)
    daemon = box.daemon({"d": folder}, index_dir=index)
    rows = daemon.read("d", batch=5)
    check_sequence(rows, 25, batch=5)
    files = samples_of(folder)
    check_bytes(rows, [files[i % 7] for i in range(25)])


@case("an index that is there stays, until the folder changes")
def _(box):
    folder, index = box.folder_of_files("d", 7), box.path("index")
    tool("many_index", folder, index, "listed", 25)
    path = os.path.join(index, "listed.index")
    before = os.stat(path).st_mtime_ns
    tool("many_index", folder, index, "listed", 25)
    equal(os.stat(path).st_mtime_ns, before, "when it was written")
    write(os.path.join(folder, "class000", "more.jpg"), b"more")
    tool("many_index", folder, index, "listed", 25)
    contains(tool("list_index", "--stats", folder, index).stdout, "loaded", "samples 25")


@case("an index of no files is refused")
def _(box):
    os.makedirs(box.path("d", "class"))
    done = tool("many_index", box.path("d"), box.path("index"), "d", 25)
    equal(done.returncode, 1, done.stdout)
    contains(done.stdout, "many_index: ")


def jpeg_size(path):
    """Width and height by the frame header."""
    with open(path, "rb") as file:
        data = file.read()
    at = 2
    while data[at + 1] != 0xc0:
        at += 2 + int.from_bytes(data[at + 2:at + 4], "big")
    return int.from_bytes(data[at + 7:at + 9], "big"), int.from_bytes(data[at + 5:at + 7], "big")


@case("a photo is scaled to the side that was asked for, up and down, whatever its own shape")
def _(box):
    sources = [box.path("wide.png"), box.path("high.png")]
    for number, (path, (width, height)) in enumerate(zip(sources, ((90, 30), (40, 70)))):
        write(path, png(width, height, identity_pixels(number, width, height)))
    for side, height in ((20, 15), (300, 225)):
        done = tool("scale_photos", box.path(str(side)), side, *sources)
        equal(done.returncode, 0, done.stdout)
        equal([jpeg_size(path) for path, _ in samples_of(box.path(str(side)))], [(side, height)] * 2)
    equal(tool("scale_photos", box.path("bad"), 20, sources[0], box.path("missing.png")).returncode, 1)
    equal(os.path.exists(box.path("bad")), False, "a folder of which a part is missing is there")


# ---- points and plots -----------------------------------------------------------------------------------------------

@case("every point has a name of its own, which no other one's figure can be taken for")
def _(box):
    points = axes.all_points()
    names = [f"{axes.name_of(point)}_{figure}" for point in points for figure in measure.FIGURES]
    equal(len(set(names)), len(names), "names")
    equal([axes.name_of(point) for point in points if point.value == 10 ** 8],
          ["growth_samples_1e8", "growth_samples_1e8_tdperm"])
    equal({point.axis for point in points}, set(axes.TITLES), "axes")


@case("repeats become medians")
def _(box):
    rows = [dict.fromkeys(measure.FIGURES, value) for value in (9.0, 1.0, 2.0)]
    for row in rows:
        row["threads_us"] = {"worker": row["cpu_us"]}
        row["sleeps"] = row["cpu_us"]
    row = measure.summary(rows)
    equal((row["cpu_us"], row["first_ms"], row["threads_us"], row["sleeps"], row["cpu_low"], row["cpu_high"]),
          (2.0, 2.0, {"worker": 2.0}, 2.0, 1.0, 9.0))


@case("a table's cell says from what to what, and how many times")
def _(box):
    equal(report.from_to([(1, 800.0), (2, 9.0), (16, 1200.0)]), "800 to 1,200 (× 1.5)")
    equal(report.from_to([(1, 2.04), (16, 1.0)]), "2.0 to 1.0 (× 0.49)")


def heights(svg):
    return [float(dot.get("cy")) for dot in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}circle")]


@case("what is flat is drawn level, and ten times as much rises by the same everywhere")
def _(box):
    flat = heights(lines.chart("t", [("p", {"a": [(1, 7.0), (16, 7.0)]})]))
    equal(flat[0], flat[1], "height")
    low, middle, high = heights(lines.chart("t", [("p", {"a": [(1, 2.0), (10, 20.0), (100, 200.0)]})]))
    if not low > middle or abs((low - middle) - (middle - high)) > 0.21:  # heights are rounded to a tenth
        raise AssertionError(f"drawn at {low}, {middle}, {high}")


@case("titles and names of lines may hold anything")
def _(box):
    chart = ElementTree.fromstring(lines.chart('a < b & "c"', [("<p>", {"&": [(1, 1.0)]})]))
    equal(chart.get("aria-label"), 'a < b & "c"')


# ---- stages ---------------------------------------------------------------------------------------------------------

@case("code belongs to its stage wherever it was inlined, and what nobody knows to its thread")
def _(box):
    intrinsic = "../../usr/lib/gcc/immintrin.h:_mm256_add_epi32"
    for thread, places, expected in (
            ("worker-0", ["daemon/decode/jpeg/jpeg_bits.h:peek", "daemon/decode/jpeg/entropy.c:read_mcu"], "entropy decoding"),
            ("worker-0", [intrinsic, "daemon/augment/resize/resize_avx2.c:clip", "daemon/augment/resize/resize_avx2.c:column_block"],
             "resize: vertical"),
            ("worker-0", [intrinsic, "daemon/augment/resize/resize_avx2.c:finish"], "rest of resizing"),
            ("worker-0", ["daemon/decode/jpeg/kernels_scalar.c:row_420"], "upsampling and colour"),
            ("worker-0", ["daemon/decode/jpeg/kernels_scalar.c:idct_block"], "IDCT"),
            ("worker-0", ["libjpeg.so.62.3.0:[unknown]"], "libjpeg, whatever of it has no name"),
            ("worker-0", ["kernel:clear_page"], "kernel, in the workers"),
            ("worker-0", ["libc.so.6:pthread_mutex_lock"], "rest of the workers"),
            ("dl-reader", ["kernel:io_read"], "reader"),
            ("planner", ["libc.so.6:epoll_wait"], "planner"),
            ("growth_rank", ["kernel:futex_wait"], "client"),
            ("order", ["kernel:clear_page"], "other threads")):
        equal(stages.stage_of(thread, places), expected, places)
        if expected not in stages.NAMES:
            raise AssertionError(f"{expected} has no line in the table")


@case("the profiler's lines are read, with names that hold blanks")
def _(box):
    sample = perf.SAMPLE.match("   my thread  7761/7784       55f0fa6af408 operator new (/usr/lib/my lib.so)")
    equal(sample.groups(), ("my thread", "7761", "7784", "55f0fa6af408", "operator new", "/usr/lib/my lib.so"))
    mapped = perf.MMAP.search("x  7761 PERF_RECORD_MMAP2 7761/7761: [0x5000(0x9000) @ 0x3000 fe:00 113 237]: r-xp /x/bare_loop")
    equal(mapped.groups(), ("7761", "5000", "9000", "3000", "r-xp", "/x/bare_loop"))
    equal(perf.offset_in({"/x": [(7, 0x5000, 0x6000, 0x3000)]}, 7, "/x", 0x5010), 0x3010)
    equal(perf.offset_in({"/x": [(7, 0x5000, 0x6000, 0x3000)]}, 8, "/x", 0x5010), None)


@case("counted instructions are told apart by the function's own file")
def _(box):
    text = (" 1,000  /t/daemon/decode/jpeg/idct_avx2.c:transform [/t/b]\n"
            "    40  /usr/lib/gcc/avx2intrin.h:transform\n"
            "   500  ???:0x000226a0 [/usr/lib/libjpeg.so.62.3.0]\n"
            "     2  ./string/memset.S:__memset_avx2 [/usr/lib/libc.so.6]\n"
            " 9,999  ???:start_thread [/usr/lib/libc.so.6]\n"
            "     5  daemon/io/threads.c:read_one [/t/b]\n")
    counts = instructions.counts_by_stage(text, "/t")
    equal(dict(counts), {"IDCT": 1040, "libjpeg, whatever of it has no name": 500, "copying and clearing": 2,
                         "reader": 5})


main()
