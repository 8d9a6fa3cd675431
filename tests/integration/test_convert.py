#!/usr/bin/env python3
"""Files that a program makes samples of, once, at staging: `prepare = "command: ..."` and `prepare = "convert"`."""
import bz2
import gzip
import lzma
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from harness import ROOT, SLOWER, Skip, case, contains, equal, main, within, write  # noqa: E402
from staging import Staging, files_of  # noqa: E402
from tars import archive  # noqa: E402
from vector_sets import check_set, expected_in  # noqa: E402

ARROW = os.path.join(ROOT, "tests", "vectors", "arrow")
TFRECORD = os.path.join(ROOT, "tests", "vectors", "tfrecord")
LINES = r"""awk -v f="${DATALOADERD_FILE##*/}" '{ printf "{\"file\": \"%s\", \"n\": %d, \"word\": \"%s\"}\n", f, NR, $0 }'"""
FAILED, REFUSED, TOO_MUCH, INTERRUPTED = 69, 78, 76, 130  # exit codes


def words_of(box, n_files=5, n_lines=7):
    """A folder of files of lines."""
    folder = box.path("words")
    for number in range(n_files):
        text = "".join(f"word-{number}-{line}\n" for line in range(n_lines))
        write(os.path.join(folder, f"part{number}", "words.txt"), text.encode())
    return folder


def stage(box, folder, command, **settings):
    return Staging(box, "file://" + folder, name="set", format="auto", prepare="command: " + command, **settings)


def served(box, staging, name="staged", **options):
    return box.daemon({"set": staging.dataset()}, name=name).read("set", shuffle=False, batch=1, **options)


def text_of(line, field):
    return line["fields"][field]["text"]


def is_gone(word):
    """Is no process left with this word among its arguments?"""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if word.encode() in file.read() and int(pid) != os.getpid():
                    return False
        except OSError:
            continue
    return True


@case("each file goes through the command, and its lines of JSON are samples, in the order of the files")
def _(box):
    staging = stage(box, words_of(box), LINES)
    staging.run()
    equal(sorted(files_of(staging.path)), [f"{number:06d}-words.txt.jsonl" for number in range(5)], "files")
    lines = served(box, staging, pipeline="word: text; n")
    expected = [(f"word-{number}-{line}", line + 1) for number in range(5) for line in range(7)]
    equal([(text_of(line, "word"), line["fields"]["n"]["value"]) for line in lines], expected, "samples")
    equal(staging.run().result, "up-to-date", "the second run")
    staging.write_config(prepare="command: head -n 2 | " + LINES)
    equal(staging.run().result, "staged", "with another command")
    equal(len(served(box, staging, name="again", pipeline="n")), 10, "samples of the other command")


@case("what the command writes may be a tar file: members of one name are a sample")
def _(box):
    folder = box.path("packed")
    for number in range(3):
        members = [(f"{number}{i}.{ext}", f"{ext} {number} {i}".encode()) for i in range(4) for ext in ("txt", "bin")]
        archive(os.path.join(folder, f"{number}.tgz"), members, mode="w:gz")
    staging = stage(box, folder, "gzip -dc")
    staging.run()
    lines = served(box, staging, pipeline="txt: text; bin: raw")
    equal([text_of(line, "txt") for line in lines], [f"txt {number} {i}" for number in range(3) for i in range(4)], "texts")


@case("what the command writes may be an Arrow stream or file: a row is a sample")
def _(box):
    folder = box.path("tables")
    os.makedirs(folder)
    for name in ("scalars", "scalars-nulls"):
        shutil.copy(os.path.join(ARROW, name + ".arrow"), folder)
    staging = stage(box, folder, "cat")
    staging.run()
    plain = box.daemon({"plain": {"path": folder, "format": "arrow"}}, name="plain")
    expected = plain.read("plain", shuffle=False, batch=1, pipeline="raw")
    equal([line["fields"] for line in served(box, staging, pipeline="raw")], [line["fields"] for line in expected], "rows")


@case("a file's name may be as long as a name can be")
def _(box):
    folder = box.path("long")
    for name in ("x" * 255, "a" + "\u00e9" * 127):
        write(os.path.join(folder, name), b"word\n")
    staging = stage(box, folder, r"""printf '{"n": 1}\n'""")
    staging.run()
    equal(sorted(files_of(staging.path)), ["000000-a" + "\u00e9" * 99 + ".jsonl", "000001-" + "x" * 200 + ".jsonl"], "files")


@case("what another command writes the same leaves nothing behind beside the version that has it")
def _(box):
    staging = stage(box, words_of(box), LINES)
    staging.run()
    staging.write_config(prepare="command: true; " + LINES)
    equal(staging.run().result, "staged", "the second command")
    equal([name for name in os.listdir(staging.state) if ".converted" in name], [], "left behind")


@case("a file of which the command writes nothing is left out; the command finds it as input and by name")
def _(box):
    folder = words_of(box)
    staging = stage(box, folder, 'case "$DATALOADERD_FILE" in *part[13]*) ;; *) cmp -s - "$DATALOADERD_FILE" && '
                                 r"""printf '{"path": "%s"}\n' "${DATALOADERD_FILE#$PWD/}" ;; esac""")
    staging.run()
    lines = served(box, staging, pipeline="path: text")
    equal([text_of(line, "path") for line in lines], [f"part{number}/words.txt" for number in (0, 2, 4)], "left")
    equal(sorted(files_of(staging.path)), [f"{number:06d}-words.txt.jsonl" for number in (0, 2, 4)], "files")
    equal([name for name in os.listdir(staging.state) if ".converted" in name], [], "left behind")


@case("a command that fails is told with its file and last words; what others made stays, and the next run goes on there")
def _(box):
    folder, log, key = words_of(box), box.path("log"), box.path("key")
    write(log, b"")
    staging = stage(box, folder, f'echo "$DATALOADERD_FILE" >> {log}; case "$DATALOADERD_FILE" in *part4*) '
                                 f'[ -e {key} ] || {{ sleep 1; echo the key is missing >&2; exit 3; }} ;; esac; {LINES}')
    done = staging.run(status=REFUSED)
    contains(done.text, "part4/words.txt: its command ended with status 3: the key is missing")
    equal(staging.version(), None, "a version")
    write(key, b"")
    staging.run()
    with open(log, encoding="utf-8") as file:
        calls = [line.split("/")[-2] for line in file]
    equal(sorted(calls), ["part0", "part1", "part2", "part3", "part4", "part4"], "calls")
    equal(len(served(box, staging, pipeline="n")), 35, "samples")


@case("what cannot be samples is refused, with the file's name and what to do")
def _(box):
    folder = words_of(box, 1)
    for command, code, words in (
            ("printf '<xml>'", REFUSED, "is no file of samples (.arrow, .jsonl, .npz, .tfrecord, .tar): the first byte is 0x3c"),
            ("printf '{\"a\": 1}'", REFUSED, "the last line that its command wrote has no end"),
            ("printf '{\"a\": 1}\\n{\"a\": \\n'", REFUSED, "cannot be served: "),
            ("tar cf - part0; kill -9 $$", REFUSED, "was ended by signal 9"),
            ("tar cf - part0 | head -c 700", REFUSED, "cannot be served: "),
            ("yes '{\"a\": 1}'", TOO_MUCH, "writes more than 1000000 bytes; if that is right, raise unpack_limit"),
            ("exit 7", REFUSED, "ended with status 7 and said nothing on stderr"),
            ("true", REFUSED, "the command wrote nothing for any of the 1 files")):
        done = stage(box, folder, command, unpack_limit="1000000").run(status=None)
        contains(done.text, words)
        equal(done.returncode, code, f"exit code of: {command}")
    command = r"""case "$DATALOADERD_FILE" in *part0*) tar cf - words.txt ;; *) printf '{"a": 1}\n' ;; esac"""
    done = stage(box, words_of(box, 2), "cd \"${DATALOADERD_FILE%/*}\"; " + command).run(status=REFUSED)
    contains(done.text, "wrote a .tar file for part0/words.txt, and a .jsonl file for part1/words.txt; it must write the same form")
    done = stage(box, folder, "cat", pack=True).run(status=REFUSED)
    contains(done.text, "leave pack out")


@case("a command that fails is told also if the caller ignores SIGCHLD")
def _(box):
    ignoring = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    done = stage(box, words_of(box, 1), LINES + "; exit 3").run(status=REFUSED, program=(sys.executable, "-c", ignoring))
    contains(done.text, "part0/words.txt: its command ended with status 3")


@case("a command that writes nothing for stall_timeout is ended, with all that it has started")
def _(box):
    word = f"sleep-{os.getpid()}"
    done = stage(box, words_of(box, 1), f"sh -c 'exec -a x sleep 1000; : {word}' & sh -c 'sleep 2000; : {word}'",
                 stall_timeout=5).run(status=FAILED)
    contains(done.text, "part0/words.txt: its command wrote nothing for 5 s; if it needs longer, raise stall_timeout")
    within(20, lambda: is_gone(word), "its processes have ended")


@case("Ctrl-C ends the commands too; a run that was killed leaves nothing that the next one takes for whole")
def _(box):
    word = f"wait-{os.getpid()}"
    folder = words_of(box, 2)
    command = f'{LINES}; case "$DATALOADERD_FILE" in *part1*) [ -e {box.path("go")} ] || sleep 500 ;; esac; : {word}'
    staging = stage(box, folder, command)

    def is_part_there():
        return any(name.endswith(".jsonl") for _, _, names in os.walk(staging.state) for name in names)

    for number, code in ((2, INTERRUPTED), (9, -9)):
        process = staging.start()
        within(60, is_part_there, "the first file is converted")
        time.sleep(0.3 * SLOWER)
        process.send_signal(number)
        equal(staging.finish(process, status=None).returncode, code, "exit code")
        if number == 2:
            within(20, lambda: is_gone(word), "its processes have ended")
    for pid in filter(str.isdigit, os.listdir("/proc")):  # what kill -9 could not end
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if word.encode() in file.read() and int(pid) != os.getpid():
                    os.killpg(int(pid), 9)
        except OSError:
            continue
    write(box.path("go"), b"")
    staging.run()
    equal(len(served(box, staging, pipeline="n")), 14, "samples")


def pack(data, ending):
    """Compressed by the usual program, or Python's own writer of the same form."""
    if ending == ".zst":
        return subprocess.run(["zstd", "-q"], input=data, stdout=subprocess.PIPE, check=True).stdout
    return {".gz": gzip.compress, ".tgz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}[ending](data)


@case("compressed archives, tables and records are decompressed: the samples are those of the plain files")
def _(box):
    def tar_of(number):
        path = os.path.join(box.path("plain-tar"), f"{number}.tar")
        archive(path, [(f"{number}{i}.txt", f"text {number} {i}".encode()) for i in range(4)])
        return path

    with open(os.path.join(TFRECORD, "tokens", "tokens.tfrecord-00000-of-00002"), "rb") as file:
        records = file.read()
    sets = {"tar": {"a.tar.gz": tar_of(0), "b.tgz": tar_of(1), "c.tar.xz": tar_of(2), "d.tar.bz2": tar_of(3)},
            "arrow": {"a.arrow.gz": os.path.join(ARROW, "scalars.arrow"), "b.arrow.xz": os.path.join(ARROW, "scalars-nulls.arrow")},
            "tfrecord": {"a.tfrecord.gz": records, "b.tfrecord.bz2": records},
            "jsonl": {"a.jsonl.gz": b'{"n": 1}\n{"n": 2}\n', "b.json.xz": b'{"n": 3}\n'}}
    if shutil.which("zstd"):
        sets["tar"]["e.tar.zst"] = tar_of(4)
    for form, files in sets.items():
        folder, plain = box.path(f"{form}-packed"), box.path(f"{form}-plain")
        for name, source in files.items():
            data = source
            if isinstance(source, str):
                with open(source, "rb") as file:
                    data = file.read()
            write(os.path.join(folder, name), pack(data, os.path.splitext(name)[1]))
            write(os.path.join(plain, f"{name.split('.')[0]}.{form}"), data)
        write(os.path.join(folder, "README.md"), b"# about\n")
        staging = Staging(box, "file://" + folder, name=form, format="auto", prepare="convert")
        contains(staging.run().text, "1 files are left out", "README.md")
        equal([name.split("-", 1)[1].split(".", 1)[1] for name in sorted(files_of(staging.path))],
              ["json.jsonl" if name == "b.json.xz" else form for name in files], f"endings of {form}")
        daemon = box.daemon({"got": staging.dataset(), "wanted": {"path": plain, "format": "auto"}}, name=form)
        got, wanted = (daemon.read(name, shuffle=False, batch=1, pipeline="raw") for name in ("got", "wanted"))
        equal([line["fields"] for line in got], [line["fields"] for line in wanted], form)
    write(os.path.join(box.path("cut"), "x.tar.gz"), pack(b"0" * 100_000, ".gz")[:-9])
    done = Staging(box, "file://" + box.path("cut"), name="cut", format="auto", prepare="convert").run(status=REFUSED)
    contains(done.text, "x.tar.gz: its command ended with status 1: gzip: stdin: unexpected end of file")


PACKED = {"mds": ("fixed", {"fixed-zstd": "zstd", "fixed-gz": "gzip", "fixed-bz2": "bzip2", "fixed-br": "brotli"}),
          "litdata": ("records", {f"records-{name}": "zstd" for name in ("zstd", "zstd9", "batch", "sample")})}


@case("files that are not compressed, beside others that are, or compressed without a name that says so, are samples too")
def _(box):
    lines = [b'{"n": %d}\n' % i for i in range(6)]
    sets = {"beside": {"a.jsonl": lines[0], "b.jsonl.gz": pack(lines[1], ".gz"), "c.jsonl": lines[2], "d.ndjson.xz": pack(lines[3], ".xz")},
            "unsaid": {"a.jsonl": pack(lines[0], ".gz"), "b.jsonl": pack(lines[1], ".gz"), "c.jsonl": lines[2], "d.jsonl": lines[3]}}
    with open(os.path.join(TFRECORD, "tokens", "tokens.tfrecord-00000-of-00002"), "rb") as file:
        records = file.read()
    sets["records"] = {"t.tfrecord-00000-of-00003": pack(records, ".gz"), "t.tfrecord-00001-of-00003": records, "t.tfrecord-00002-of-00003": pack(records, ".gz")}
    stagings = {}
    for name, files in sets.items():
        for file, content in files.items():
            write(os.path.join(box.path(name), file), content)
        write(os.path.join(box.path(name), "README.md"), b"# about\n")
        stagings[name] = Staging(box, "file://" + box.path(name), name=name, format="auto", prepare="convert")
        contains(stagings[name].run().text, "1 files are left out", "README.md")
    write(box.path("one", "t.tfrecord"), records)
    daemon = box.daemon({**{name: staging.dataset() for name, staging in stagings.items()}, "one": {"path": box.path("one"), "format": "auto"}})
    for name in ("beside", "unsaid"):
        equal([line["fields"]["n"]["value"] for line in daemon.read(name, shuffle=False)], [0, 1, 2, 3], name)
    one = [line["fields"] for line in daemon.read("one", shuffle=False, pipeline="raw")]
    equal([line["fields"] for line in daemon.read("records", shuffle=False, pipeline="raw")], 3 * one, "records")


@case("compressed tables and texts keep their names: their rows are samples")
def _(box):
    sets = {"csv": {"a.csv.gz": pack(b"n,t\n0,x\n", ".gz"), "b.csv": b"n,t\n1,y\n", "c.csv.bz2": pack(b"n,t\n2,z\n", ".bz2")},
            "text": {"a.txt.gz": pack(b"0\n1\n", ".gz"), "b.txt.xz": pack(b"2\n", ".xz")}}
    stagings = {}
    for name, files in sets.items():
        for file, content in files.items():
            write(os.path.join(box.path(name), file), content)
        stagings[name] = Staging(box, "file://" + box.path(name), name=name, format="auto", prepare="convert")
        stagings[name].run()
        equal(sorted(files_of(stagings[name].path)), [f"{file[0]}.{'txt' if name == 'text' else name}" for file in sorted(files)], "names")
    daemon = box.daemon({name: staging.dataset() for name, staging in stagings.items()})
    equal([line["fields"]["n"]["value"] for line in daemon.read("csv", shuffle=False)], [0, 1, 2], "rows")
    equal([line["fields"]["text"]["text"] for line in daemon.read("text", shuffle=False)], ["0", "1", "2"], "lines")


@case("compressed shards of MDS and LitData are decompressed and keep their names: the samples are those of the plain ones")
def _(box):
    for form, (plain, packed) in PACKED.items():
        vectors = os.path.join(ROOT, "tests", "vectors", form)
        for name, program in packed.items():
            if not shutil.which(program):
                print(f"        without {name}: there is no {program}")
                continue
            folder = shutil.copytree(os.path.join(vectors, name), box.path("origin", name))
            staging = Staging(box, "file://" + folder, name=name, format="auto", prepare="convert")
            staging.run()
            equal(sorted(map(os.path.basename, files_of(staging.path))),
                  sorted(file.replace(".zstd:9", "").replace(".zstd.bin", ".bin").split(".mds")[0] + ".mds" * (".mds" in file) for file in os.listdir(folder)),
                  "files")
            check_set(box.daemon({"set": staging.dataset()}, name=f"of-{name}"), "set",
                      expected_in(os.path.join(vectors, f"{plain}.jsonl")), batch=3)


@case("a shard that lies there decompressed is taken as it is; a damaged one ends the staging with its name")
def _(box):
    folder = shutil.copytree(os.path.join(ROOT, "tests", "vectors", "mds", "fixed-gz"), box.path("origin"))
    first, second = sorted(name for name in os.listdir(folder) if name.endswith(".gz"))[:2]
    with gzip.open(os.path.join(folder, first)) as file:
        write(os.path.join(folder, first[:-3]), file.read())
    with open(os.path.join(folder, second), "rb") as file:
        good = file.read()
    write(os.path.join(folder, second), good[:-20])
    staging = Staging(box, "file://" + folder, name="set", format="auto", prepare="convert")
    contains(staging.run(status=REFUSED).text, second, "its command ended with status 1")
    write(os.path.join(folder, second), good)
    staging.run()
    check_set(box.daemon({"set": staging.dataset()}), "set",
              expected_in(os.path.join(ROOT, "tests", "vectors", "mds", "fixed.jsonl")))


@case("a compressed archive of arrays is unpacked: the rows are those of the arrays; damage and a second archive are refused")
def _(box):
    try:
        import numpy
    except ImportError as error:
        raise Skip("NumPy is not installed for this python3") from error
    fields = {"tokens": numpy.arange(70_000 * 9, dtype=numpy.uint16).reshape(70_000, 9), "label": numpy.arange(70_000)}
    folder = box.path("packed")
    os.makedirs(folder)
    numpy.savez_compressed(os.path.join(folder, "train.npz"), **fields)
    write(os.path.join(folder, "README.md"), b"# about\n")
    numpy.savez(box.path("plain.npz"), **fields)
    staging = Staging(box, "file://" + folder, name="npz", format="auto", prepare="convert")
    contains(staging.run().text, "1 files are left out", "README.md")
    equal(sorted(files_of(staging.path)), ["000000-train.npz"], "files")
    with numpy.load(os.path.join(staging.path, "000000-train.npz")) as arrays:
        for name, array in fields.items():
            equal(bool((arrays[name] == array).all()), True, name)
    daemon = box.daemon({"got": staging.dataset(), "wanted": {"path": box.path("plain.npz"), "format": "npy"}})
    got, wanted = (daemon.read(name, shuffle=False, batch=512, pipeline="tokens; label", limit=3) for name in ("got", "wanted"))
    equal([line["fields"] for line in got], [line["fields"] for line in wanted], "rows")
    equal(len(got), 3 * 512, "rows")
    numpy.savez_compressed(os.path.join(folder, "test.npz"), **fields)
    done = Staging(box, "file://" + folder, name="two", format="auto", prepare="convert").run(status=REFUSED)
    contains(done.text, "test.npz and train.npz are archives of arrays", "whose origin names it")
    os.unlink(os.path.join(folder, "test.npz"))
    with open(os.path.join(folder, "train.npz"), "r+b") as file:
        file.seek(5_000)
        file.write(b"damage")
    done = Staging(box, "file://" + folder, name="bad", format="auto", prepare="convert").run(status=REFUSED)
    contains(done.text, "train.npz: its command ended with status 1: not converted:")
    numpy.savez_compressed(os.path.join(folder, "train.npz"), a=numpy.array([{}, None]))
    done = Staging(box, "file://" + folder, name="objects", format="auto", prepare="convert").run(status=REFUSED)
    contains(done.text, "what the command wrote for train.npz cannot be served", "Python objects")


@case("arrays in Fortran order are put into C order under their names; labels and objects beside them stay, damage is refused")
def _(box):
    try:
        import numpy
    except ImportError as error:
        raise Skip("no numpy") from error
    python = {"DATALOADERD_PYTHON": sys.executable}
    folder, plain = box.path("fortran"), box.path("plain")
    fields = {"x": numpy.arange(2 * 3 * 40_000, dtype=">i4").reshape(40_000, 2, 3), "label": numpy.arange(40_000, dtype=numpy.uint8)}
    for name, array in fields.items():
        for where, order in ((folder, "F"), (plain, "C")):
            os.makedirs(where, exist_ok=True)
            numpy.save(os.path.join(where, f"{name}.npy"), numpy.asarray(array, order=order))
    write(os.path.join(folder, "README.md"), b"# about\n")
    box.daemon({"set": {"path": folder, "format": "npy"}}, name="unstaged").refused("set", "x.npy", 'prepare = "convert"', pipeline="x")
    staging = Staging(box, "file://" + folder, name="npy", format="auto", prepare="convert")
    staging.run(environment=python)
    equal(sorted(files_of(staging.path)), ["README.md", "label.npy", "x.npy"], "files")
    daemon = box.daemon({"got": staging.dataset(), "wanted": {"path": plain, "format": "npy"}})
    got, wanted = (daemon.read(name, batch=512, limit=3) for name in ("got", "wanted"))
    equal([line["fields"] for line in got], [line["fields"] for line in wanted], "rows")
    numpy.save(os.path.join(folder, "y.npy"), numpy.array([{}, None]))
    staging = Staging(box, "file://" + folder, name="objects", format="auto", prepare="convert")
    staging.run(environment=python)
    daemon = box.daemon({"set": staging.dataset()}, name="objects")
    equal([line["fields"] for line in daemon.read("set", batch=512, limit=3)], [line["fields"] for line in wanted], "beside objects")
    daemon.refused("set", "Python objects", pipeline="y")
    write(os.path.join(folder, "x.npy"), b"\x93NUMPY cut")
    done = Staging(box, "file://" + folder, name="cut", format="auto", prepare="convert").run(status=REFUSED, environment=python)
    contains(done.text, "x.npy: its command ended with status 1: not converted:")


@case("Parquet without pyarrow: it is said where it is missing and how to get it")
def _(box):
    folder = box.path("parquet")
    write(os.path.join(folder, "x.parquet"), b"PAR1PAR1")
    python = box.path("python")
    write(python, b"#!/bin/sh\nexec python3 -S -I \"$@\"\n")  # a Python without packages
    os.chmod(python, 0o755)
    if subprocess.run([python, "-c", "import pyarrow"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        raise Skip("this Python has pyarrow among its own modules")
    staging = Staging(box, "file://" + folder, name="set", format="auto", prepare="convert")
    done = staging.run(status=REFUSED, environment={"DATALOADERD_PYTHON": python})
    contains(done.text, "x.parquet: its command ended with status 1: converting Parquet needs pyarrow")
    contains(done.text, "-m pip install pyarrow")
    done = staging.run(status=FAILED, environment={"DATALOADERD_PYTHON": box.path("none")})
    contains(done.text, f"x.parquet: the program {box.path('none')} cannot be started")
    os.rename(os.path.join(folder, "x.parquet"), os.path.join(folder, "x.pq"))
    done = Staging(box, "file://" + folder, name="other", format="auto", prepare="convert").run(status=REFUSED)
    contains(done.text, "converts compressed chunks of LitData (.zstd.bin, chunk-*.bin), compressed shards of MDS (.mds.zstd), "
             "arrays (.npy, .npz), Parquet files (.parquet), compressed files (.gz", "the dataset has none")


if __name__ == "__main__":
    main()
