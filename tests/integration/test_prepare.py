#!/usr/bin/env python3
"""What preparation makes of pictures is what Pillow makes of them; and it ends well when it is killed, cancelled, out of
space, or given giants."""
import hashlib
import io
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import BUILD, VARIANT, Skip, case, contains, equal, few, identity_bytes, main, patience, photos, png, write

TOOL = os.path.join(BUILD, "tools/prepare_folder")


def pillow():
    try:
        import numpy
        from PIL import Image
    except ImportError as error:
        raise Skip(f"Pillow or NumPy is not installed for this python3: {error}") from error
    return Image, numpy


# ---- the tool and what it leaves -------------------------------------------------------------------------------------

def command(folder, out, steps, *more):
    if not os.path.exists(TOOL):
        raise Skip(f"{TOOL} was not built")
    return [TOOL, folder, out, steps, *map(str, more)]


def prepare(folder, out, steps, *more):
    """Prepares a folder. Returns what the tool reports."""
    done = subprocess.run(command(folder, out, steps, *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=300, check=False)
    if done.returncode != 0:
        raise AssertionError(f"prepare_folder ended with {done.returncode}: {done.stderr}")
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def shard_names(out):
    return sorted(name for name in os.listdir(out) if name.endswith(".shard"))


def samples(out):
    """{path: bytes} of a folder of shards (daemon/data/formats/shard_layout.h)."""
    found = {}
    for name in shard_names(out):
        with open(os.path.join(out, name), "rb") as file:
            shard = file.read()
        table, _, n_samples, n_classes = struct.unpack_from("<4Q", shard, 32)
        names = table + 32 * n_samples + 8 * n_classes
        for i in range(n_samples):
            offset, length, path, _ = struct.unpack_from("<QQQi", shard, table + 32 * i)
            end = shard.index(b"\0", names + path)
            found[shard[names + path:end].decode()] = shard[offset:offset + length]
    return found


def digest(out):
    """Of all that is in the folder, names included."""
    sums = hashlib.sha256()
    for name in sorted(os.listdir(out)):
        sums.update(name.encode())
        with open(os.path.join(out, name), "rb") as file:
            sums.update(file.read())
    return sums.hexdigest()


# ---- pictures --------------------------------------------------------------------------------------------------------

def draw(numpy, rng, width, height):
    """Soft colours with some noise, as photographs have them."""
    noise = numpy.random.default_rng(rng.getrandbits(32))
    Image, _ = pillow()
    small = noise.integers(0, 256, (5, 7, 3), dtype=numpy.uint8)
    pixels = numpy.array(Image.fromarray(small).resize((width, height), Image.BICUBIC)).astype(int)
    pixels += noise.integers(-12, 13, pixels.shape)
    return Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8))


def with_alpha(Image, numpy, picture, mode):
    picture = picture.convert(mode)
    alpha = numpy.tile(numpy.linspace(0, 255, picture.size[0]).astype(numpy.uint8), (picture.size[1], 1))
    picture.putalpha(Image.fromarray(alpha))
    return picture


def kinds(Image, numpy):
    """name: (what to do with an RGB picture, how it is saved)."""
    exif = Image.Exif()
    exif[0x0112] = 6    # "turn me by 90 degrees": neither Pillow nor the daemon do unless they are asked
    return {
        "plain.jpg": (lambda p: p, {"quality": 92}),
        "full_chroma.jpg": (lambda p: p, {"quality": 92, "subsampling": 0}),
        "progressive.jpg": (lambda p: p, {"quality": 85, "progressive": True}),
        "grey.jpg": (lambda p: p.convert("L"), {"quality": 90}),
        "cmyk.jpg": (lambda p: p.convert("CMYK"), {"quality": 90}),
        "turned.jpg": (lambda p: p, {"quality": 90, "exif": exif}),
        "plain.png": (lambda p: p, {}),
        "grey.png": (lambda p: p.convert("L"), {}),
        "palette.png": (lambda p: p.convert("P", palette=Image.ADAPTIVE), {}),
        "alpha.png": (lambda p: with_alpha(Image, numpy, p, "RGB"), {}),
        "grey_alpha.png": (lambda p: with_alpha(Image, numpy, p, "L"), {}),
        "lossy.webp": (lambda p: p, {"quality": 80}),
        "lossless.webp": (lambda p: p, {"lossless": True}),
        "alpha.webp": (lambda p: with_alpha(Image, numpy, p, "RGB"), {"lossless": True, "exact": True}),
    }


def new_size(size, short):
    """torchvision's Resize(short), and never larger than it was."""
    width, height = size
    if min(size) <= short:
        return size
    if width <= height:
        return short, int(short * height / width)
    return int(short * width / height), short


def expected_of(Image, path, short, quality):
    """What Pillow makes of a file: its pixels after resizing, encoding and decoding."""
    picture = Image.open(path).convert("RGB")
    size = new_size(picture.size, short)
    if size != picture.size:
        picture = picture.resize(size, Image.BILINEAR)
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=quality)
    return Image.open(file)


def psnr(numpy, a, b):
    error = ((numpy.asarray(a).astype(float) - numpy.asarray(b).astype(float)) ** 2).mean()
    return 99.0 if error == 0 else 10 * numpy.log10(255 ** 2 / error)


@case("a prepared picture of any kind has the size and the pixels that Pillow gives it with the same steps")
def _(box):
    Image, numpy = pillow()
    rng = random.Random(20)
    folder = box.path("in")
    os.makedirs(os.path.join(folder, "a"))
    for name, (change, options) in kinds(Image, numpy).items():
        for number in range(3):
            picture = draw(numpy, rng, rng.randint(20, 300), rng.randint(20, 300))
            change(picture).save(os.path.join(folder, "a", f"{number}_{name}"), **options)

    n_equal = 0
    for short, quality in ((64, 90), (131, 75), (400, 100)):
        out = box.path(f"out{short}")
        report = prepare(folder, out, f"resize(short={short}) jpeg({quality})", 100000)
        prepared = samples(out)
        equal(report["kept"], "0", "samples that were kept as they are")
        equal(len(prepared), 3 * len(kinds(Image, numpy)), "samples")
        for path, content in prepared.items():
            expected, got = expected_of(Image, os.path.join(folder, path), short, quality), Image.open(io.BytesIO(content))
            equal((got.format, got.mode), ("JPEG", "RGB"), path)
            equal(got.size, expected.size, f"size of {path}")
            equal(got.info.get("exif"), None, f"EXIF of {path}")
            if psnr(numpy, got, expected) < 50:
                raise AssertionError(f"{path}, short={short}, quality={quality}: PSNR {psnr(numpy, got, expected):.1f} dB")
            n_equal += psnr(numpy, got, expected) == 99
    print(f"        {n_equal} of {3 * len(prepared)} to the bit")


@case("sizes are those of torchvision's Resize, whatever the shape")
def _(box):
    Image, numpy = pillow()
    try:
        from torchvision.transforms import Resize
    except ImportError as error:
        raise Skip(f"torchvision is not installed for this python3: {error}") from error
    rng = random.Random(3)
    folder = box.path("in")
    for number in range(60):
        width, height = rng.randint(50, 400), rng.randint(50, 400)
        write(os.path.join(folder, "a", f"{number}.png"), png(width, height, bytes(3 * width * height)))
    prepare(folder, box.path("out"), "resize(short=50)")
    for path, content in samples(box.path("out")).items():
        source = Image.open(os.path.join(folder, path))
        equal(Image.open(io.BytesIO(content)).size, Resize(50)(source).size, f"size of {path} {source.size}")


@case("photographs keep their looks: resized and encoded at quality 90 they are as near as Pillow's")
def _(box):
    Image, numpy = pillow()
    folder = photos(40, 4)
    prepare(folder, box.path("out"), "resize(short=256) jpeg(90)", 1 << 20)
    for path, content in samples(box.path("out")).items():
        expected = expected_of(Image, os.path.join(folder, path), 256, 90)
        got = Image.open(io.BytesIO(content))
        equal(got.size, expected.size, f"size of {path}")
        if psnr(numpy, got, expected) < 50:
            raise AssertionError(f"{path}: PSNR {psnr(numpy, got, expected):.1f} dB")


def row_offsets(jpeg):
    """Of the segment that says where rows of MCUs begin (proto/jpeg/row_index.h), and where they count from; None."""
    at, offsets = 2, None
    while jpeg[at + 1] != 0xda:
        length = struct.unpack_from(">H", jpeg, at + 2)[0]
        if jpeg[at + 1] == 0xef and jpeg[at + 4:at + 12] == b"dlprows\0":
            offsets = struct.unpack_from(f"<{struct.unpack_from('<I', jpeg, at + 16)[0] + 1}I", jpeg, at + 20)
        at += 2 + length
    return offsets, at + 2 + struct.unpack_from(">H", jpeg, at + 2)[0]


@case("gpu_jpeg: Pillow reads the same pixels and orientation, and each row of MCUs lies where the file says")
def _(box):
    Image, numpy = pillow()
    rng, folder, out = random.Random(21), box.path("in"), box.path("out")
    os.makedirs(os.path.join(folder, "a"))
    taken = set()
    for name, (change, options) in kinds(Image, numpy).items():
        change(draw(numpy, rng, rng.randint(20, 300), rng.randint(20, 300))).save(os.path.join(folder, "a", name), **options)
        if name.endswith(".jpg") and name != "cmyk.jpg":
            taken.add(f"a/{name}")
    report = prepare(folder, out, "gpu_jpeg")
    equal((report["kept"], report["first"][:36]), (str(len(kinds(Image, numpy)) - len(taken)), "a/alpha.png: cannot be transcoded: n"),
          "what was kept as it is")
    for path, content in samples(out).items():
        with open(os.path.join(folder, path), "rb") as file:
            source = file.read()
        if path not in taken:
            equal(content, source, f"bytes of {path}")
            continue
        before, got = Image.open(io.BytesIO(source)), Image.open(io.BytesIO(content))
        equal((got.mode, got.size, got.getexif().get(0x0112)), (before.mode, before.size, before.getexif().get(0x0112)), path)
        equal(bool((numpy.asarray(got) == numpy.asarray(before)).all()), True, f"pixels of {path}")
        offsets, scan = row_offsets(content)
        for number, offset in enumerate(offsets[1:-1]):
            equal(content[scan + offset - 2:scan + offset], bytes([0xff, 0xd0 + number % 8]), f"{path}, row {number}")
        equal(scan + offsets[-1], len(content), f"the end of {path}")


@case("gpu_jpeg: after resizing all kinds of pictures can be transcoded, and have the pixels that they have without it")
def _(box):
    Image, numpy = pillow()
    rng, folder = random.Random(22), box.path("in")
    os.makedirs(os.path.join(folder, "a"))
    for name, (change, options) in kinds(Image, numpy).items():
        change(draw(numpy, rng, rng.randint(20, 300), rng.randint(20, 300))).save(os.path.join(folder, "a", name), **options)
    prepare(folder, box.path("plain"), "resize(short=64) jpeg(90)")
    report = prepare(folder, box.path("rows"), "resize(short=64) jpeg(90) gpu_jpeg")
    equal(report["kept"], "0", "samples that were kept as they are")
    plain, rows = samples(box.path("plain")), samples(box.path("rows"))
    equal(list(rows), list(plain), "names")
    for path, content in rows.items():
        equal(row_offsets(content)[0] is not None, True, f"offsets in {path}")
        equal(bool((numpy.asarray(Image.open(io.BytesIO(content))) == numpy.asarray(Image.open(io.BytesIO(plain[path])))).all()),
              True, f"pixels of {path}")


@case("gpu_jpeg: photographs keep their pixels")
def _(box):
    Image, numpy = pillow()
    folder = photos(40, 4)
    equal(prepare(folder, box.path("out"), "gpu_jpeg", 1 << 20)["kept"], "0", "samples that were kept as they are")
    n_before, n_after = 0, 0
    for path, content in samples(box.path("out")).items():
        before = Image.open(os.path.join(folder, path))
        equal(bool((numpy.asarray(Image.open(io.BytesIO(content))) == numpy.asarray(before)).all()), True, f"pixels of {path}")
        n_before, n_after = n_before + os.path.getsize(os.path.join(folder, path)), n_after + len(content)
    print(f"        {n_after / n_before - 1:+.2%} bytes")


@case("gpu_jpeg: the kernels that decode rows give photographs the pixels that the daemon gives the source, resized ones too")
def _(box):
    tool = os.path.join(BUILD, "tools/decode_rows")
    if not os.path.exists(tool):
        raise Skip(f"{tool} was not built")
    done = subprocess.run([tool, photos(40, 4)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                          timeout=300, check=False)
    equal(done.returncode, 0, f"exit status; {done.stderr}{done.stdout}")
    contains(done.stdout, "files 40\n", "left 0\n", "other 0\n")


@case("thousands of small files are packed as they are, each once and in order")
def _(box):
    n = few(5000, 1000)
    folder, out = box.folder_of_files("in", n, n_classes=7), box.path("out")
    report = prepare(folder, out, "", "4MiB", 4)
    equal((report["samples"], report["kept"]), (str(n), "0"), "samples")
    found = samples(out)
    equal(list(found), [f"class{number * 7 // n:03d}/{number:06d}.jpg" for number in range(n)], "names, in order")
    for number, content in enumerate(found.values()):
        equal(content, identity_bytes(number, 200), f"bytes of file {number}")


# ---- how it ends -----------------------------------------------------------------------------------------------------

def folder_of_noise(box, n_pictures):
    """PNGs that take a while."""
    rng = random.Random(9)
    folder = box.path("noise")
    for number in range(n_pictures):
        write(os.path.join(folder, f"c{number % 2}", f"{number:03d}.png"), png(300, 200, rng.randbytes(300 * 200 * 3)))
    return folder


@case("killed at any moment and started again it gives the same shards, and no half one is ever visible")
def _(box):
    folder, out, whole = folder_of_noise(box, 60), box.path("out"), box.path("whole")
    begin = time.monotonic()
    prepare(folder, whole, "resize(100) jpeg(95)", 400000, 2)
    seconds = time.monotonic() - begin
    complete = {name: digest_of(os.path.join(whole, name)) for name in shard_names(whole)}
    equal(len(complete) > 10, True, f"shards: {len(complete)}")

    rng, n_kills, n_kept = random.Random(7), 0, 0
    for _ in range(12):
        process = box.start(command(folder, out, "resize(100) jpeg(95)", 400000, 2), stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, seconds / 3))
        process.kill()
        n_kills += process.wait() == -signal.SIGKILL
        if os.path.isdir(out):
            for name in shard_names(out):
                equal(digest_of(os.path.join(out, name)), complete[name], f"{name} after a kill")
            n_kept = len(shard_names(out))
    prepare(folder, out, "resize(100) jpeg(95)", 400000, 2)
    equal(digest(out), digest(whole), "the folder in the end")
    print(f"        {n_kills} kills, {n_kept} of {len(complete)} shards were there before the last run")


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


@case("cancelled it ends with a word, leaves nothing half-made, and can go on")
def _(box):
    folder, out = folder_of_noise(box, 60), box.path("out")
    process = box.start(command(folder, out, "jpeg(95)", 1 << 20, 1), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + patience(20)
    while not (os.path.isdir(out) and os.listdir(out)) and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=patience(20))
    equal(process.returncode, 1, "exit status")
    contains(errors.decode(), "cancelled")
    equal([name for name in os.listdir(out) if name not in shard_names(out)], [], "what is no shard")
    equal(prepare(folder, out, "jpeg(95)", 1 << 20)["samples"], "60", "samples")


@case("a full disk ends it with an error that says so, and what was whole is kept")
def _(box):
    folder, out, mount = folder_of_noise(box, 40), box.path("out"), box.path("mount.sh")
    os.makedirs(out)
    write(mount, b'mount -t tmpfs -o size=3m tmpfs "$1" || exit 77\nout=$1; shift\n"$@"; rc=$?\nls "$out"; exit $rc\n')
    if not shutil.which("unshare"):
        raise Skip("there is no unshare")
    done = subprocess.run(["unshare", "-Urm", "sh", mount, out, *command(folder, out, "", 500000)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=patience(60),
                          check=False)
    if done.returncode == 77 or "unshare" in done.stderr:
        raise Skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    equal(done.returncode, 1, "exit status")
    contains(done.stderr, "No space left on device")
    names = done.stdout.split()
    equal(len(names) >= 3 and all(name.endswith(".shard") for name in names), True, f"left behind: {names}")


def anonymous_mib(pid):
    """Memory of a process that no file stands behind, now. 0 when it has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            return sum(int(line.split()[1]) // 1024 for line in status if line.startswith("RssAnon"))
    except OSError:
        return 0


@case("what is no picture is packed as it is, whatever its size, and giants cost no more memory than they may")
def _(box):
    Image, numpy = pillow()
    folder, out, rng = box.path("in"), box.path("out"), random.Random(1)
    for number in range(4):
        write(os.path.join(folder, "a", f"small{number}.jpg"), identity_bytes(number, 1000))
    giant, n_large = rng.randbytes(1 << 20) * few(300, 50), few(3, 1)  # memory is what release looks at
    write(os.path.join(folder, "b", "giant.jpg"), giant)
    for name, size, n_copies in (("many", (2500, 2000), few(12, 3)), ("large", (5000, 4000), n_large)):
        path = os.path.join(folder, "a", name)
        draw(numpy, rng, 500, 400).resize(size).save(path, "JPEG", progressive=True)
        for number in range(n_copies):
            shutil.copy(path, f"{path}{number}.jpg")
        os.unlink(path)

    process = box.start(command(folder, out, "resize(300) jpeg(90)", "64MiB", 8), stdout=subprocess.PIPE)
    highest, deadline = 0, time.monotonic() + patience(60)
    while process.poll() is None and time.monotonic() < deadline:
        highest = max(highest, anonymous_mib(process.pid))
        time.sleep(0.002)
    report, _ = process.communicate(timeout=60)
    equal(process.returncode, 0, "exit status")
    contains(report.decode(), "kept 5\n", "first a/small0.jpg: ", "unknown picture format")
    found = samples(out)
    equal(found["b/giant.jpg"] == giant, True, "the giant's bytes")
    equal(found["a/small3.jpg"], identity_bytes(3, 1000), "a small file's bytes")
    for name in ("many0.jpg", f"large{n_large - 1}.jpg"):
        equal(Image.open(io.BytesIO(found[f"a/{name}"])).size, (375, 300), name)
    print(f"        {highest} MiB at most")
    if VARIANT == "release":    # sanitizers have memory of their own
        equal(highest <= 150, True, f"{highest} MiB: 40 of the window, 88 of one sample, and the program's own")


main()
