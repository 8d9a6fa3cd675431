#!/usr/bin/env python3
"""Unpacking archives while they arrive: those that tarfile, zipfile and the usual programs make, damaged ones, and those
that somebody made to break out. What lies beside the folder is looked at after every archive."""
import bz2
import gzip
import hashlib
import io
import lzma
import os
import random
import shutil
import stat
import struct
import subprocess
import sys
import tarfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import BUILD, SANITIZER, Skip, Table, case, contains, equal, few, main, patience

PROGRAM = os.path.join(BUILD, "tools", "unpack_archive")


class Site:
    """A folder to unpack into, inside of another one that must stay as it is."""

    def __init__(self, box):
        self.outside = box.path("outside")
        self.number = 0
        os.mkdir(self.outside)
        with open(os.path.join(self.outside, "secret"), "w", encoding="utf-8") as file:
            file.write("secret")
        self.folder = None

    def fresh(self):
        self.number += 1
        self.folder = os.path.join(self.outside, f"folder{self.number}")
        os.mkdir(self.folder)
        return self

    def run(self, archive, *arguments):
        before = sorted(os.listdir(self.outside)), os.stat(os.path.join(self.outside, "secret"))
        done = subprocess.run([PROGRAM, self.folder] + [str(argument) for argument in arguments], input=archive,
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=patience(60))
        done.stderr = done.stderr.decode("utf-8")
        if SANITIZER.search(done.stderr) or done.returncode not in (0, 1):
            raise AssertionError(f"{done.returncode}: {done.stderr}")
        now = sorted(os.listdir(self.outside)), os.stat(os.path.join(self.outside, "secret"))
        equal((now[0], now[1].st_nlink, now[1].st_mtime_ns, now[1].st_mode),
              (before[0], before[1].st_nlink, before[1].st_mtime_ns, before[1].st_mode), "what lies beside the folder")
        for folder, _, files in os.walk(self.folder):
            for name in files:
                equal(name.startswith(".dlstage-"), False, f"left behind: {folder}/{name}")
        return done

    def unpack(self, archive, *arguments):
        """Its entries: path -> (size, hash, link)."""
        done = self.run(archive, *arguments)
        equal((done.returncode, done.stderr), (0, ""), "status and message")
        entries = {}
        for line in done.stdout.decode("utf-8").splitlines():
            size, digest, rest = line.split(" ", 2)
            path, _, link = rest.partition("\t")
            equal(path in entries, False, f"{path} told twice")
            entries[path] = (int(size), digest, link or None)
        return entries

    def refused(self, archive, error, *words):
        done = self.run(archive)
        equal(done.returncode, 1, f"status; entries: {done.stdout}")
        contains(done.stderr, error + ":", "stdin", *words)
        return done

    def read(self, path):
        with open(os.path.join(self.folder, path), "rb") as file:
            return file.read()

    def check(self, files, entries):
        """The folder holds just these files, and each was told with its hash."""
        equal(sorted(entries), sorted(files), "entries")
        found = []
        for folder, _, names in os.walk(self.folder):
            found += [os.path.relpath(os.path.join(folder, name), self.folder) for name in names]
        equal(sorted(found), sorted(files), "files")
        for path, content in files.items():
            equal(self.read(path), content, path)
            equal(entries[path], (len(content), hashlib.sha256(content).hexdigest(), None), path)


def tar(*members, mode="w", form=tarfile.PAX_FORMAT):
    """A tar of (name, content) and of TarInfos."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=form) as archive:
        for member in members:
            info, content = (member, None) if isinstance(member, tarfile.TarInfo) else (tarfile.TarInfo(member[0]),
                                                                                       member[1])
            if content is not None:
                info.size = len(content)
            archive.addfile(info, io.BytesIO(content or b""))
    return out.getvalue()


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


def zipped(*members, method=zipfile.ZIP_DEFLATED, seekable=True):
    out = io.BytesIO()

    class Pipe(io.RawIOBase):
        def writable(self):
            return True

        def write(self, data):
            return out.write(data)
    with zipfile.ZipFile(out if seekable else Pipe(), "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return out.getvalue()


def some_files():
    chance = random.Random(7)
    files = {f"class{i % 3}/{i:03d}.jpg": chance.randbytes(chance.randrange(3000)) for i in range(40)}
    files.update({"empty": b"", "large": chance.randbytes(700000), "ümlaut/日本.png": b"utf8", "zeros": bytes(200000)})
    return files


def zstd(data):
    if shutil.which("zstd") is None:
        return None
    return subprocess.run(["zstd", "-q", "-c"], input=data, check=True, stdout=subprocess.PIPE).stdout


# ---- what people make -----------------------------------------------------------------------------------------------

@case("every kind of archive comes out as it went in, whatever pieces it arrives in")
def _(box):
    files = some_files()
    plain = tar(*files.items())
    kinds = {
        "tar": plain, "gnu": tar(*files.items(), form=tarfile.GNU_FORMAT), "gz": gzip.compress(plain),
        "bz2": bz2.compress(plain), "xz": lzma.compress(plain), "zst": zstd(plain),
        "zip": zipped(*files.items()), "stored zip": zipped(*files.items(), method=zipfile.ZIP_STORED),
        "zip of a pipe": zipped(*files.items(), seekable=False),
        "gz of two pieces": gzip.compress(plain[:5000]) + gzip.compress(plain[5000:]),
    }
    site = Site(box)
    table = Table()
    for kind, archive in kinds.items():
        for piece in (1 << 20, 4096, 511) + ((7,) if kind == "gz" else ()):
            with table.row(f"{kind}, {piece}"):
                if archive is None:
                    continue
                site.fresh().check(files, site.unpack(archive, 2**40, 10**6, piece))
    with table.row("a tar whose first file is called as bzip2 begins"):
        files = {"BZh91.jpg": b"x", **files}
        site.fresh().check(files, site.unpack(tar(*files.items(), form=tarfile.GNU_FORMAT), 2**40, 10**6, 511))
    table.done()
    if zstd(b"") is None:
        raise Skip("zstd is not installed; the others came out well")


@case("names of GNU tar's and pax's long form, of any depth, and with ./ in front")
def _(box):
    long = "/".join(["deep" + "x" * 90] * 20) + "/" + "n" * 255
    files = {long: b"1", "short": b"2"}
    site = Site(box).fresh()
    site.check(files, site.unpack(tar(*files.items())))
    site.fresh().check(files, site.unpack(tar(*files.items(), form=tarfile.GNU_FORMAT)))
    dotted = tar(special("./", tarfile.DIRTYPE), special("./a/", tarfile.DIRTYPE), ("./a/b", b"c"), ("././/d", b"e"))
    site.fresh().check({"a/b": b"c", "d": b"e"}, site.unpack(dotted))


@case("empty archives are archives, concatenated ones are one, and a folder without files is not made")
def _(box):
    site = Site(box)
    for archive in (tar(), gzip.compress(tar()), zipped(), tar(special("empty", tarfile.DIRTYPE))):
        site.fresh().check({}, site.unpack(archive))
    equal(os.listdir(site.folder), [], "folders")
    both = tar(("a", b"1")) + tar(("b", b"2"))
    for archive in (both, gzip.compress(both), gzip.compress(tar(("a", b"1"))) + gzip.compress(tar(("b", b"2")))):
        site.fresh().check({"a": b"1", "b": b"2"}, site.unpack(archive))


@case("a sparse tar comes out with its zeros, and they take no room")
def _(box):
    source = box.path("sparse")
    site = Site(box)
    with open(source, "wb") as file:
        file.truncate(50 << 20)
        file.seek(10 << 20)
        file.write(b"middle")
    for form in ("gnu", "pax"):
        made = subprocess.run(["tar", "-C", box.folder, "--format", form, "-Scf", "-", "sparse"], check=True,
                              stdout=subprocess.PIPE).stdout
        equal(len(made) < 1 << 20, True, "tar knows the holes")
        entries = site.fresh().unpack(made)
        with open(source, "rb") as file:
            content = file.read()
        site.check({"sparse": content}, entries)
        equal(os.stat(os.path.join(site.folder, "sparse")).st_blocks * 512 < 5 << 20, True, "room on the disk")


@case("links within the folder are kept, hard links are files, and modes are not taken over")
def _(box):
    site = Site(box).fresh()
    mode = tarfile.TarInfo("set")
    mode.mode, mode.uid = 0o6777, 12345
    plain = tarfile.TarInfo("closed")
    plain.mode = 0
    entries = site.unpack(tar(("a/file", b"content"), special("a/link", tarfile.SYMTYPE, "file"),
                              special("b/up", tarfile.SYMTYPE, "../a/file"), special("early", tarfile.SYMTYPE, "late"),
                              special("hard", tarfile.LNKTYPE, "a/file"), ("late", b"x"), mode, plain))
    digest = hashlib.sha256(b"content").hexdigest()
    equal([entries[path] for path in ("a/link", "b/up", "hard")],
          [(0, "-", "file"), (0, "-", "../a/file"), (7, digest, None)], "entries")
    equal([site.read(path) for path in ("a/link", "b/up", "hard", "early")], [b"content"] * 3 + [b"x"], "contents")
    modes = [stat.S_IMODE(os.stat(os.path.join(site.folder, path)).st_mode) for path in ("set", "closed", "a/file")]
    equal(modes, [0o755, 0o644, 0o644], "modes")
    equal(os.stat(os.path.join(site.folder, "set")).st_uid, os.geteuid(), "owner")


@case("running again gives the same, and leaves alone what is there")
def _(box):
    files = some_files()
    archive = tar(*files.items(), special("hard", tarfile.LNKTYPE, "large"), special("link", tarfile.SYMTYPE, "large"))
    site = Site(box).fresh()
    first = site.unpack(archive)
    inodes = {path: os.stat(os.path.join(site.folder, path)).st_ino for path in files}
    os.unlink(os.path.join(site.folder, "empty"))
    equal(site.unpack(archive, 2**40, 10**6, 65536, "keep"), first, "entries")
    again = {path: os.stat(os.path.join(site.folder, path)).st_ino for path in files}
    equal([path for path in files if inodes[path] != again[path] and path != "empty"], [], "written anew")
    equal(site.unpack(archive), first, "entries, all written anew")
    equal([site.read(path) == content for path, content in files.items()], [True] * len(files), "contents")


# ---- what somebody makes --------------------------------------------------------------------------------------------

@case("nothing gets out of the folder: names that climb, links that lead out, files behind links")
def _(box):
    site = Site(box)
    outside = site.outside
    rows = [
        ("EINVAL", [("../escaped", b"x")]), ("EINVAL", [("a/../../escaped", b"x")]), ("EINVAL", [("a/..", b"x")]),
        ("EINVAL", [(outside + "/escaped", b"x")]), ("EINVAL", [("//etc/escaped", b"x")]), ("EINVAL", [("..", b"x")]),
        ("EINVAL", [(".", b"x")]), ("EINVAL", [("a//b", b"x")]), ("EINVAL", [("a/./b", b"x")]),
        ("EINVAL", [("a\nb", b"x")]), ("EINVAL", [("a\x1bb", b"x")]), ("EINVAL", [("x" * 256, b"x")]),
        ("EINVAL", [("y/" * 2100 + "z", b"x")]), ("EINVAL", [(".dlstage-unpack", b"x")]),
        ("EINVAL", [special("../d", tarfile.DIRTYPE)]),
        ("EINVAL", [special("l", tarfile.SYMTYPE, "/etc/passwd")]), ("EINVAL", [special("l", tarfile.SYMTYPE, "..")]),
        ("EINVAL", [special("l", tarfile.SYMTYPE, "../secret")]), ("EINVAL", [special("l", tarfile.SYMTYPE, "")]),
        ("EINVAL", [special("a/l", tarfile.SYMTYPE, "../../secret")]),
        ("EINVAL", [special("s", tarfile.SYMTYPE, "."), special("t", tarfile.SYMTYPE, "s/../secret")]),
        ("EINVAL", [("d/f", b""), special("t", tarfile.SYMTYPE, "d/../../secret")]),
        ("EINVAL", [("d/f", b""), special("s", tarfile.SYMTYPE, "d"), ("s/f2", b"behind a link")]),
        ("EINVAL", [special("s", tarfile.SYMTYPE, "d"), ("d/f", b""), special("s/l", tarfile.SYMTYPE, "../../secret")]),
        ("EINVAL", [special("h", tarfile.LNKTYPE, "../secret")]), ("EINVAL", [special("h", tarfile.LNKTYPE, "later")]),
        ("EINVAL", [special("h", tarfile.LNKTYPE, outside + "/secret")]),
        ("EINVAL", [special("h", tarfile.LNKTYPE, "h")]),
        ("EINVAL", [special("s", tarfile.SYMTYPE, "x"), special("h", tarfile.LNKTYPE, "s")]),
        ("EINVAL", [("d/f", b""), special("h", tarfile.LNKTYPE, "d")]),
        ("EINVAL", [special("n", tarfile.CHRTYPE)]), ("EINVAL", [special("n", tarfile.BLKTYPE)]),
        ("EINVAL", [special("n", tarfile.FIFOTYPE)]),
        ("EINVAL", [("a", b"1"), ("a", b"2")]), ("EINVAL", [("dir/a", b"1"), ("./dir/a", b"2")]),
        ("EINVAL", [("a", b"1"), special("a", tarfile.SYMTYPE, "b")]),
        ("EINVAL", [special("a", tarfile.SYMTYPE, "b"), ("a", b"1")]),
        ("EINVAL", [("Dog/A.jpg", b"1"), ("dog/a.JPG", b"2")]), ("EINVAL", [("é", b"1"), ("É", b"2")]),
        ("EINVAL", [("a", b"1"), ("a/b", b"2")]), ("EINVAL", [("a/b", b"1"), ("a", b"2")]),
        ("EINVAL", [("A", b"1"), ("a/b", b"2")]),
    ]
    table = Table()
    for error, members in rows:
        for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
            with table.row(f"{form} {members}"):
                site.fresh().refused(tar(("good", b"kept"), *members, form=form), error)
                equal(site.read("good"), b"kept", "what came before")
    for name in ("../escaped", "/tmp/escaped-from-zip", "a/../../b"):
        with table.row(f"zip {name}"):
            site.fresh().refused(zipped((name, b"x")), "EINVAL")
    table.done()


@case("a link that an earlier run left in the folder is not followed either")
def _(box):
    site = Site(box).fresh()
    os.symlink(site.outside, os.path.join(site.folder, "d"))
    site.refused(tar(("d/escaped", b"x")), "EINVAL", "d/escaped", "link")
    os.unlink(os.path.join(site.folder, "d"))
    os.symlink("../secret", os.path.join(site.folder, "f"))
    site.check({"f": b"new"}, site.unpack(tar(("f", b"new"))))


@case("names that are not UTF-8 are refused, those of zip too")
def _(box):
    site = Site(box)
    latin = tar(("nam\udce9", b"x"), form=tarfile.GNU_FORMAT)
    equal(b"nam\xe9" in latin, True, "the name is Latin-1")
    site.fresh().refused(latin, "EINVAL", "UTF-8")
    for archive in (zipped(("name", b"x")).replace(b"name", b"nam\xe9"), tar(("name", b"x")).replace(b"name", b"nam\xff")):
        done = site.fresh().run(archive)
        equal(done.returncode, 1, "status")
        equal(os.listdir(site.folder), [], "files")


@case("a bomb ends at the limit, and says so: bytes that come out, holes, files, folders")
def _(box):
    site = Site(box)
    zeros = bytes(30 << 20)
    for archive in (gzip.compress(tar(("bomb", zeros))), zipped(("bomb", zeros)), zipped(("bomb", zeros), seekable=False),
                    gzip.compress(tar(*[(f"part{i}", zeros[:1 << 20]) for i in range(30)]))):
        done = site.fresh().run(archive, 10 << 20)
        equal(done.returncode, 1, "status")
        contains(done.stderr, "EFBIG", "limit of 10485760 bytes")
        size = sum(os.stat(os.path.join(site.folder, name)).st_size for name in os.listdir(site.folder))
        equal(size <= 10 << 20, True, f"{size} bytes are there")
    source = box.path("hole")
    with open(source, "wb") as file:
        file.truncate(1 << 40)
    sparse = subprocess.run(["tar", "-C", box.folder, "--format", "pax", "-Scf", "-", "hole"], check=True,
                            stdout=subprocess.PIPE).stdout
    contains(site.fresh().run(sparse, 10 << 20).stderr, "EFBIG", "hole")
    hard = tar(("a", bytes(6 << 20)), special("b", tarfile.LNKTYPE, "a"))
    contains(site.fresh().run(hard, 10 << 20).stderr, "EFBIG", "\"b\"")
    many = tar(*[(f"f{i}", b"") for i in range(30)])
    contains(site.fresh().run(many, 10 << 20, 20).stderr, "EFBIG", "limit of 20 files")
    equal(len(os.listdir(site.folder)), 20, "files")
    folders = gzip.compress(tar(*[special(f"d{i}", tarfile.DIRTYPE) for i in range(66000)], form=tarfile.USTAR_FORMAT))
    contains(site.fresh().run(folders, 10 << 20, 20).stderr, "EFBIG")


@case("one compression is taken off and no second one, of any kind")
def _(box):
    site = Site(box)
    plain = tar(("a", b"x"))
    table = Table()
    kinds = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstd}
    for name, pack in kinds.items():
        if pack(b"") is None:
            continue
        with table.row(name):
            site.fresh().check({"a": b"x"}, site.unpack(pack(plain)))
        for other, again in kinds.items():
            if again(b"") is None:
                continue
            with table.row(f"{name} in {other}"):
                site.fresh().refused(again(pack(plain)), "EBADMSG", "only one compression")
    deep = plain
    for _ in range(20):
        deep = gzip.compress(deep)
    site.fresh().refused(deep, "EBADMSG", "only one compression")
    skipped = struct.pack("<II", 0x184d2a53, 5) + b"12345"
    if zstd(b"") is not None:
        site.fresh().check({"a": b"x"}, site.unpack(skipped + zstd(plain)))
    table.done()


@case("a bomb of nothing ends, too: folders in folders, zeros behind the end")
def _(box):
    site = Site(box)
    deep = "/".join(["d"] * 64) + "/f"
    site.fresh().check({deep: b"x"}, site.unpack(tar((deep, b"x"))))
    site.fresh().refused(tar(("d/" + deep, b"x")), "EINVAL", "more than 64 folders", "d/d/d")
    many = tar(*[("/".join([f"{i}"] * 40) + "/f", b"") for i in range(30)])
    done = site.fresh().run(many, 1 << 20, 500)
    contains(done.stderr, "EFBIG", "limit of 500 files and folders", "12/12")
    equal(sum(len(folders) + len(files) for _, folders, files in os.walk(site.folder)) <= 500, True, "what was made")
    behind = gzip.compress(tar(("f", b"x")) + bytes(300 << 20), 1)
    done = site.fresh().run(behind, 1 << 20)
    contains(done.stderr, "EFBIG", "limit of 1048576 bytes", "without coming out")


@case("an archive of empty files does not take the last inodes of a disk")
def _(box):
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        raise Skip("needs root and unshare: a small file system")
    archive, small = box.path("a.tar"), box.path("small")
    os.mkdir(small)
    with open(archive, "wb") as file:
        file.write(tar(*[(f"f{i}", b"") for i in range(20000)], form=tarfile.USTAR_FORMAT))
    done = subprocess.run(["unshare", "-m", "sh", "-c", f"mount -t tmpfs -o nr_inodes=10000 none {small} || exit 3; "
                           f"{PROGRAM} {small} < {archive} > /dev/null; ls -A {small} | wc -l"], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode == 3 or "unshare:" in done.stderr:
        raise Skip(f"no mount namespace: {done.stderr.strip()}")
    contains(done.stderr, "ENOSPC", "stdin", "\"f9", "inodes")
    equal(8000 < int(done.stdout) < 9900, True, f"files: {done.stdout}")


# ---- what happens to archives ---------------------------------------------------------------------------------------

@case("an archive that is cut anywhere is an error, and what was whole before is kept whole")
def _(box):
    chance = random.Random(3)
    files = {f"f{i}": chance.randbytes(2000) for i in range(5)}
    plain = tar(*files.items(), form=tarfile.USTAR_FORMAT)
    site = Site(box)
    table = Table()
    for kind, archive in (("tar", plain), ("gz", gzip.compress(plain)), ("bz2", bz2.compress(plain)),
                          ("xz", lzma.compress(plain)), ("zst", zstd(plain)), ("zip", zipped(*files.items())),
                          ("zip of a pipe", zipped(*files.items(), seekable=False))):
        if archive is None:
            continue
        # of a tar the padding behind its end may be missing, of a zip its directory, which is not read
        end = 5 * 2560 + 512 if kind == "tar" else archive.index(b"PK\1\2") if "zip" in kind else len(archive)
        cuts = {0, 1, 100, 511, 512, 513, 2560, 2 * 2560, end - 1, end // 2} | {chance.randrange(end) for _ in range(few(20, 4))}
        for cut in sorted(cuts):
            if cut >= end:
                continue
            with table.row(f"{kind} cut at {cut} of {end}"):
                site.fresh().refused(archive[:cut], "EBADMSG")
                for name in os.listdir(site.folder):
                    equal(site.read(name), files[name], name)
    table.done()


@case("garbage, web pages and single files are no archives")
def _(box):
    site = Site(box)
    chance = random.Random(5)
    for garbage in (b"<!DOCTYPE html><html>404</html>" * 40, chance.randbytes(5000), b"x", gzip.compress(b"just a text" * 99),
                    b"\x7fELF" + bytes(3000), bytes(7), b"7z\xbc\xaf\x27\x1c" + bytes(2000), b"PK\3\4"):
        site.fresh().refused(garbage, "EBADMSG")
        equal(os.listdir(site.folder), [], "files")


@case("bytes that were changed are an error where a checksum covers them, and never more than that")
def _(box):
    chance = random.Random(11)
    files = {f"f{i}": chance.randbytes(500) + bytes(500) for i in range(6)}
    plain = tar(*files.items(), form=tarfile.USTAR_FORMAT)
    site = Site(box)
    n_errors, n = 0, few(40, 10)
    for kind, archive in (("tar", plain), ("gz", gzip.compress(plain)), ("zip", zipped(*files.items())),
                          ("zst", zstd(plain) or plain), ("xz", lzma.compress(plain))):
        for _ in range(n):
            damaged = bytearray(archive)
            for _ in range(chance.choice([1, 1, 1, 8])):
                damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
            done = site.fresh().run(bytes(damaged), 1 << 24, 1000)
            n_errors += done.returncode
            if kind == "xz" and done.returncode == 0:  # libarchive does not look at the CRC of gzip
                equal([site.read(name) == files.get(name) for name in os.listdir(site.folder)], [True] * 6, kind)
            shutil.rmtree(site.folder)
    equal(n_errors > 2 * n, True, f"{n_errors} errors")


@case("an encrypted zip, and one with a wrong checksum, are named")
def _(box):
    site = Site(box)
    archive = zipped(("file", b"content of the file"), method=zipfile.ZIP_STORED)
    site.fresh().refused(archive.replace(b"content of", b"CONTENT of", 1), "EBADMSG", "file")
    encrypted = bytearray(archive)
    encrypted[6] |= 1
    site.fresh().refused(bytes(encrypted), "EBADMSG")
    equal(os.listdir(site.folder), [], "files")
    lying = bytearray(archive)
    struct.pack_into("<I", lying, 22, 5)
    done = site.fresh().run(bytes(lying))
    equal((done.returncode, os.listdir(site.folder)), (1, []), "a size that is not true")


@case("a full disk is said with the file's name, and leaves no half of it")
def _(box):
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        raise Skip("needs root and unshare: a small file system")
    archive, small = box.path("a.tar"), box.path("small")
    os.mkdir(small)
    with open(archive, "wb") as file:
        file.write(tar(("first", bytes(100000)), ("second", bytes(5000000))))
    done = subprocess.run(["unshare", "-m", "sh", "-c", f"mount -t tmpfs -o size=1m none {small} || exit 3; "
                           f"{PROGRAM} {small} < {archive}; ls -A {small}"], check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode == 3 or "unshare:" in done.stderr:
        raise Skip(f"no mount namespace: {done.stderr.strip()}")
    contains(done.stderr, "ENOSPC", "second", "No space left")
    equal(done.stdout.splitlines()[1:], ["first"], "what is left")


main()
