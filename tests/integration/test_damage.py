#!/usr/bin/env python3
"""Damaged pictures and files that change: by on_error the job ends with the name and the reason, or the next good sample
of the order takes the place. Never a crash, never a stuck ring."""
import base64
import os
import resource
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (Skip, Table, case, contains, equal, expected_order, few, identity_pixels, indices, main, png,
                     samples_of, sha256_of, within, write)

JPEG = base64.b64decode("""
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpR
Uk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//wAARCAAeACgDASIAAhEB
AxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS
0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKz
tLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgEC
BAQDBAcFBAQAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpj
ZGVmZ2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6
/9oADAMBAAIRAxEAPwDz+K29qtx2me1Xobb2q/Dae1FCHtTOjirGbHZe1Wo7H2rTEKxnG3LelTRwSP7fTit5xw8Hy/E+yPZw+KbKCWIAy2B9aK2I7NEx
uwKKwfs07OMV6v8A4Y9eninbcz7e2zjir4g8tBgfMelWbWAcVaWFXmPtxXPRryp4dOO70R+XUcRdlO3s+MkcVZSEscIMD171d8kFtgPA6+9WVhC4ReCR
1rOVZQTjHRR3fVvsj28PiGyjHaqnBGW9BRWukCxhcAEmiuV1+R8t+XyST/FnsU8Q2j//2Q==""")
WEBP = base64.b64decode("UklGRn4AAABXRUJQVlA4THIAAAAvB0ABAJkyRPQ/NhHR/4BBtpFjVTiJu3+DbCPHKvAGd/duIgBAItzdfSMDBTwBIViJ4pJEYzD"
                        "CDP+/cj9G5BChPWW00cZ5UeiiUbGw8Hg5uB+FhQdKxUWAeWgsUEpyUnb+j8ajIsdmIuRXHC8nGT0FMz4=")
PNG = png(21, 17, identity_pixels(7, 21, 17))
BMP = b"BM" + struct.pack("<IIIIiiHHIIIIII", 54 + 1080, 0, 54, 40, 20, 18, 1, 24, 0, 1080, 0, 0, 0, 0) + bytes(1080)
TIFF_TAGS = ((256, 20), (257, 18), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, 18), (279, 360))
TIFF = b"II*\0" + struct.pack("<I", 368) + bytes(360) + struct.pack("<H", len(TIFF_TAGS)) + \
    b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in TIFF_TAGS) + bytes(4)
N = 24
N_MIXED = 90  # pictures, some of which are damaged
PIPELINE = "resize(16) center_crop(16)"


def damaged():
    """(name, content) of files that are no picture, or no whole one."""
    size = JPEG.index(b"\xff\xc0") + 5
    png_size = PNG.index(b"IHDR") + 4
    yield "empty.jpg", b""
    yield "one_byte.jpg", b"\xff"
    yield "only_soi.jpg", b"\xff\xd8"
    yield "cut_in_header.jpg", JPEG[:100]
    yield "cut_in_data.jpg", JPEG[:-90]
    yield "no_picture.jpg", b"<html><body>404 Not Found</body></html>"
    yield "zeros.jpg", bytes(5000)
    yield "huge_claim.jpg", JPEG[:size] + struct.pack(">HH", 65500, 65500) + JPEG[size + 4:]
    yield "zero_size.jpg", JPEG[:size] + struct.pack(">HH", 0, 0) + JPEG[size + 4:]
    yield "cut.png", PNG[:len(PNG) // 2]
    yield "only_signature.png", PNG[:8]
    yield "huge_claim.png", PNG[:png_size] + struct.pack(">II", 2**31 - 1, 2**31 - 1) + PNG[png_size + 8:]
    yield "cut.webp", WEBP[:60]
    yield "riff_only.webp", b"RIFF\x10\0\0\0WEBPVP8 "
    yield "text.webp", b"RIFF is a word"
    yield "cut.bmp", BMP[:-1]
    yield "only_letters.bmp", b"BM" + bytes(30)
    yield "huge_claim.bmp", BMP[:18] + struct.pack("<ii", 2**31 - 1, 2**31 - 1) + BMP[26:]
    yield "cut.ppm", b"P6 20 18 255 " + bytes(20 * 18 * 3 - 1)
    yield "text_in_numbers.pgm", b"P2 2 2 255 1 2 three 4 "
    yield "huge_claim.pgm", b"P5 99999 99999 255 " + bytes(99)
    yield "no_directory.tif", b"II*\0\x08\0\0\0\0\0"
    yield "cut.tif", TIFF[:len(TIFF) - 40]
    yield "cut_gif.jpg", b"GIF89a\x14\0\x12\0\0\0\0,\0\0\0\0\x14\0\x12\0\0\2\5\x84"


def folder_with(box, name, bad, number=11):
    """An image folder of N good pictures, in which number 11 is the bad one. Returns (folder, path of the bad one)."""
    folder = box.folder_of_pictures(name, N, width=20, height=18)
    path = samples_of(folder)[number][0]
    os.unlink(path)
    path = path[:-4] + os.path.splitext(bad[0])[1]
    write(path, bad[1])
    return folder, path


def substitute_of(position, n, bad, order):
    """The next good sample of the order."""
    for step in range(1, n):
        candidate = order[(position + step) % n]
        if candidate not in bad:
            return candidate
    raise AssertionError("no good sample")


def check_substitutes(lines, good, bad, n, **terms):
    """Lines of a rank: in their order, bad ones replaced by the next good sample of the order, with its very pixels."""
    world, rank = terms.get("world", 1), terms.get("rank", 0)
    order = expected_order(n, seed=terms.get("seed", 0))
    equal(indices(lines), expected_order(n, world=world, rank=rank, seed=terms.get("seed", 0)), "order")
    for place, line in enumerate(lines):
        index = line["index"]
        if index in bad:
            index = substitute_of((place * world + rank) % n, n, bad, order)
            equal(line.get("substitute"), index, f"what stands for sample {line['index']}")
            contains(line["error"], bad[line["index"]])
        else:
            equal("substitute" in line, False, f"sample {index} stands for itself")
        equal(line["fields"]["image"]["sha256"], good[index], f"pixels of sample {index}")


@case("damaged, cut, empty, oversized and misnamed files end a job with their name, and only that job")
def _(box):
    bad = list(damaged())
    folders = {f"d{number}": folder_with(box, f"d{number}", each) for number, each in enumerate(bad)}
    good = box.folder_of_pictures("good", 8)
    daemon = box.daemon(dict({name: folder for name, (folder, _) in folders.items()}, good=good))
    steady = daemon.reader("good", job="steady", epochs=400, batch=4, delay_ms=20)
    steady.wait_lines(8)
    rows = Table()
    order = expected_order(N)
    for name, (_, path) in folders.items():
        with rows.row(os.path.basename(path) + " of " + bad[int(name[1:])][0]):
            reader = daemon.reader(name, pipeline=PIPELINE, batch=4, epochs=3)
            status, lines = reader.finish(20)
            equal(status, 1, "exit status")
            contains(reader.errors(), os.path.basename(path), "11")
            equal(indices(lines), order[:order.index(11) // 4 * 4], "whole batches before it")
    rows.done()
    equal(steady.process.poll(), None, "the steady reader still reads")
    contains(daemon.log(), "sample 11")
    steady.process.terminate()
    steady.finish()


@case("with on_error=substitute each of them is replaced by the next good sample of the order, the same on every world")
def _(box):
    bad = list(damaged())
    folder = box.folder_of_pictures("d", N_MIXED, width=20, height=18)
    clean = box.daemon({"d": folder}, name="clean")
    good = {line["index"]: line["fields"]["image"]["sha256"] for line in clean.read("d", pipeline=PIPELINE)}
    clean.stop()
    names = {}
    for place, (name, content) in enumerate(bad):
        index = place * 3 if place < 10 else N_MIXED - 2 * len(bad) + place  # some of them neighbours
        path = samples_of(folder)[index][0]
        os.unlink(path)
        new_path = path[:-4] + os.path.splitext(name)[1]
        write(new_path, content)
        names[index] = os.path.basename(new_path)
    daemon = box.daemon({"d": folder})
    terms = {"pipeline": PIPELINE, "on_error": "substitute"}
    check_substitutes(daemon.read("d", batch=8, seed=5, **terms), good, names, N_MIXED, seed=5)
    for rank, lines in enumerate(daemon.read_ranks("d", 3, batch=5, seed=5, **terms)):
        check_substitutes(lines, good, names, N_MIXED, world=3, rank=rank, seed=5)
    [dataset] = daemon.objects("datasets")
    equal(dataset["n_errors"] >= len(bad), True, f"errors are counted: {dataset['n_errors']}")
    equal(dataset["last_error"] != "", True, "and the last one is shown")
    contains(daemon.log(), "takes its place")


@case("if nothing is good, substitution ends the job instead of searching for ever")
def _(box):
    folder = box.path("d")
    for number in range(30):
        write(os.path.join(folder, "c", f"{number}.jpg"), b"no picture")
    daemon = box.daemon({"d": folder})
    daemon.refused("d", "no good sample", pipeline="decode", on_error="substitute", batch=4)
    equal(daemon.process.poll(), None, "the daemon lives")


@case("files that vanish, shrink, grow or become unreadable while they are served: that sample's error, with its name")
def _(box):
    for reading in ("auto", "threads"):
        folder = box.folder_of_files(f"d-{reading}", 400, size=3000)
        daemon = box.daemon({"d": folder}, reader=reading)
        samples = samples_of(folder)
        reader = daemon.reader("d", shuffle=False, on_error="substitute", slots=2, batch=4, delay_ms=20)
        reader.wait_lines(8)
        os.unlink(samples[300][0])
        os.truncate(samples[310][0], 100)
        os.truncate(samples[320][0], 0)
        with open(samples[330][0], "ab") as file:
            file.write(b"more than before" * 300)
        os.unlink(samples[340][0])
        os.mkdir(samples[340][0])
        os.unlink(samples[350][0])
        os.mkfifo(samples[350][0])
        os.unlink(samples[360][0])
        os.symlink("/nowhere/at/all", samples[360][0])
        hashes = {index: sha256_of(path) for index, (path, _) in enumerate(samples) if os.path.isfile(path)}
        bad = (300, 310, 320, 330, 340, 350, 360)
        lines = reader.good()
        equal(indices(lines), list(range(400)), f"all samples in order ({reading})")
        for line in lines:
            index = line["index"]
            equal(line.get("substitute"), index + 1 if index in bad else None, f"substitute of {index} ({reading})")
            if index in bad:
                contains(line["error"], os.path.basename(samples[index][0]))
            else:
                equal(line["fields"]["image"]["sha256"], hashes[index], f"bytes of sample {index} ({reading})")


@case("a file that may not be read is that sample's error; io_uring and the pool agree")
def _(box):
    if os.getuid() == 0 and not os.path.exists("/usr/bin/setpriv"):
        raise Skip("setpriv is needed to be somebody whom permissions stop")
    folder = box.folder_of_files("d", 30)
    os.chmod(samples_of(folder)[12][0], 0)
    program = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.getuid() == 0 else []
    os.chmod(box.folder, 0o755)
    for reading in ("auto", "threads"):
        os.makedirs(box.path(reading), exist_ok=True)
        if os.getuid() == 0:
            os.chown(box.path(reading), 65534, 65534)
        daemon = box.daemon({"d": folder}, name=reading, program=program, reader=reading)
        daemon.refused_after(12, "d", "000012.jpg", "permission")


@case("a passing lack of descriptors costs a moment and no sample; one that lasts ends the job with its reason")
def _(box):
    folder = box.folder_of_files("d", 200)
    daemon = box.daemon({"d": folder}, reader="threads")
    limits = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    for policy in ("fail", "substitute", "skip"):
        reader = daemon.reader("d", shuffle=False, on_error=policy, slots=2, batch=4, delay_ms=5)
        reader.wait_lines(8)
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        daemon.wait_log("tried again")
        n_lines = len(reader.lines)
        time.sleep(0.3)
        equal(len(reader.lines) < 200, True, f"it waits: {n_lines} lines, then {len(reader.lines)}")
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, limits)
        lines = reader.good()
        equal(indices(lines), list(range(200)), f"all samples in order ({policy})")
        equal([line for line in lines if "substitute" in line], [], "each is itself")
        equal(daemon.objects("errors"), [], "a lack of descriptors is no damage")
    reader = daemon.reader("d", shuffle=False, on_error="skip", slots=2, batch=4, delay_ms=5)
    reader.wait_lines(8)
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
    status, lines = reader.finish(20)
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, limits)
    equal((status, len(lines) % 4), (1, 0), "the job ends behind whole batches")
    contains(reader.errors(), "Too many open files")
    equal(len(daemon.read("d", job="later")), 200, "samples afterwards")


@case("a dataset folder that vanishes: errors with names, the daemon goes on, and serves again when it is back")
def _(box):
    folder = box.folder_of_files("d", 200)
    other = box.folder_of_files("e", 10)
    daemon = box.daemon({"d": folder, "e": other})
    reader = daemon.reader("d", batch=2, slots=2, delay_ms=20)
    reader.wait_lines(4)
    os.rename(folder, folder + ".away")
    os.mkdir(folder)
    equal(len(daemon.read("e")), 10, "samples of the other dataset")
    reader.process.kill()
    reader.finish()
    status, _ = daemon.reader("d", job="later").finish(20)
    equal(status, 1, "nothing can be read from an empty folder")
    os.rmdir(folder)
    os.rename(folder + ".away", folder)
    equal(len(daemon.read("d", job="again")), 200, "samples when the folder is back")


@case("no folder, an empty folder, a file in its place: said when somebody asks, and other datasets are served")
def _(box):
    os.makedirs(box.path("empty"))
    os.makedirs(box.path("hollow", "class"))
    write(box.path("file"), b"not a folder")
    good = box.folder_of_files("good", 5)
    daemon = box.daemon({"gone": box.path("gone"), "empty": box.path("empty"), "hollow": box.path("hollow"),
                         "file": box.path("file"), "good": good})
    for name in ("gone", "empty", "hollow", "file"):
        daemon.refused(name, name)
    equal(len(daemon.read("good")), 5, "samples of the good one")
    states = {dataset["name"]: dataset["state"] for dataset in daemon.objects("datasets")}
    equal(states["gone"], "failed", "state of the missing one")


@case("a folder that changed between two runs is indexed again, and what changed is said; else the index is used as it is")
def _(box):
    folder = box.folder_of_files("d", 30)
    daemon = box.daemon({"d": folder})
    equal(len(daemon.read("d")), 30, "samples at first")
    first = daemon.objects("datasets")[0]
    daemon.stop()
    stamps = index_stamps(daemon)

    daemon.start()
    equal(len(daemon.read("d")), 30, "samples of the unchanged folder")
    second = daemon.objects("datasets")[0]
    equal(second["digest"], first["digest"], "digest of the unchanged folder")
    equal(index_stamps(daemon), stamps, "index files were not written again")
    daemon.stop()

    time.sleep(0.02)  # longer than a tick of the file system's clock
    write(os.path.join(folder, "class000", "added.jpg"), b"one more")
    daemon.start()
    lines = daemon.read("d", shuffle=False)
    equal(len(lines), 31, "samples of the changed folder")
    third = daemon.objects("datasets")[0]
    equal(third["digest"] != first["digest"], True, "another digest")
    contains(third["text"] + daemon.log(), "changed")
    daemon.stop()

    for name in os.listdir(daemon.settings["index_dir"]):  # and an index that is damaged is made again
        path = os.path.join(daemon.settings["index_dir"], name)
        with open(path, "r+b") as file:
            file.seek(os.path.getsize(path) // 2)
            file.write(b"\xff" * 16)
    daemon.start()
    equal(indices(daemon.read("d", shuffle=False)), list(range(31)), "samples with a damaged index")
    equal(daemon.objects("datasets")[0]["digest"], third["digest"], "digest after a damaged index")


def index_stamps(daemon):
    folder = daemon.settings["index_dir"]
    return {name: os.stat(os.path.join(folder, name)).st_mtime_ns for name in os.listdir(folder)}


@case("while a large folder is indexed, attaching waits, status answers and others are served")
def _(box):
    folder = box.path("large")
    for number in range(20):
        os.makedirs(os.path.join(folder, f"c{number:02d}"))
        for each in range(few(1000, 200)):
            with open(os.path.join(folder, f"c{number:02d}", f"{each}.jpg"), "wb"):
                pass
    good = box.folder_of_files("good", 5)
    daemon = box.daemon({"large": folder, "good": good})
    equal(len(daemon.read("good", job="a")), 5, "samples of the small dataset")
    waiting = daemon.reader("large", job="b", limit=2, shuffle=False)
    equal(len(waiting.good()), 2, "samples of the large one, once its index is there")
    within(30, lambda: daemon.objects("datasets")[0]["n_samples"] == few(20000, 4000), "the large index")


main()
