#!/usr/bin/env python3
"""make wheel: what is in it, and that its programs need nothing of a machine but glibc."""
import ast
import contextlib
import glob
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import certificates
import faulty_server
from harness import ROOT, Skip, case, config_text, contains, end, equal, expected_order, main, patience, within, write
from pages import block, halves
from private import Home
from staging import files_of, make_files, photos_sizes, write_manifest
from tmux import Tmux

PROGRAMS = ("dataloaderd", "dataloaderd-stage", "dlctl")
VECTORS = os.path.join(ROOT, "tests", "vectors")
SOUNDS = (".wav", ".flac", ".mp3", ".opus", ".ogg")
LIMIT = 20 << 20  # bytes that a wheel may have
_wheel = []


def wheel():
    """The wheel of this tree, made once."""
    if not _wheel:
        env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "VARIANT")}
        done = subprocess.run(["make", "-s", "-C", ROOT, "wheel"], env=env, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=patience(300))
        equal(done.returncode, 0, done.stdout)
        _wheel.append(os.path.join(ROOT, done.stdout.split()[-1]))
    return _wheel[0]


def unpacked(folder):
    """The package as pip would leave it. Returns the folder of the programs."""
    with zipfile.ZipFile(wheel()) as archive:
        for entry in archive.infolist():
            path = archive.extract(entry, folder)
            os.chmod(path, stat.S_IMODE(entry.external_attr >> 16))
    return os.path.join(folder, "dlclient", "bin")


def run(*command, env=None, status=0):
    done = subprocess.run(command, env=env, check=False, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=patience(120))
    equal(done.returncode, status, f"{' '.join(command)}: {done.stdout}")
    return done.stdout


def environment(**more):
    """Nothing of this machine: no compiler, no library path, no home."""
    return {"PATH": "/nowhere", "HOME": "/nowhere", **more}


# ---- what is in it --------------------------------------------------------------------------------------------------

@case("the wheel has the programs, the library and the licence of all that is in it, and is not large")
def _(box):
    with zipfile.ZipFile(wheel()) as archive:
        names = {entry.filename: entry for entry in archive.infolist()}
        equal(re.sub(r"-[\d.]+(\+git[\w.]+)?-", "-V-", os.path.basename(wheel())), f"dlclient-V-py3-none-manylinux_2_34_{os.uname().machine}.whl")
        for name in [f"dlclient/bin/{name}" for name in PROGRAMS] + ["dlclient/libdlclient.so.0", "dlclient/libdlclient-cuda.so.0"]:
            equal(stat.S_IMODE(names[name].external_attr >> 16), 0o755, f"mode of {name}")
        licences = next(name for name in names if name.endswith("/licenses/LIBRARIES.txt"))
        lines = archive.read(licences).decode().split("\n\n", 1)[1].splitlines()
        for line in lines:
            text = f"{os.path.dirname(licences)}/{line.rpartition('; ')[2]}"
            equal(text in names, True, f"{line}: its licence")
        inside = {re.split(r"\.(so|a)\b", line)[0] for line in lines}
        for name in names:
            if name.startswith("dlclient/lib/"):
                equal(os.path.basename(name).split(".so")[0] in inside, True, f"{name} is among the licences")
        equal({"libcrypto", "libcurl", "libtiff", "libsndfile", "libstdc++"} - inside, set(), "libraries that are known to be inside")
    equal(os.path.getsize(wheel()) < LIMIT, True, f"{os.path.getsize(wheel())} bytes")


@case("a symbol of a newer glibc, and a library that is not to be had, end the build with their names")
def _(box):
    os.makedirs(box.path("built", "bin"))
    for name in ("libdlclient.so.0", "libdlclient-cuda.so.0"):
        shutil.copy(os.path.join(ROOT, "build", "wheel", name), box.path("built"))
    write(box.path("a.c"), b"#include <stdlib.h>\nint main(void) { return (int)arc4random(); }\n")
    write(box.path("b.c"), b"int b(void); int main(void) { return b(); }\n")
    write(box.path("lib.c"), b"int b(void); int b(void) { return 0; }\n")
    program = box.path("built", "bin", "program")
    pack = [sys.executable, os.path.join(ROOT, "packaging", "wheel", "build_wheel.py"), box.path("built"), box.path(".")]
    run("gcc", "-o", program, box.path("a.c"))
    if b"GLIBC_2.36" in open(program, "rb").read():
        contains(run(*pack, status=1), "needs arc4random of glibc 2.36")
    run("gcc", "-shared", "-o", box.path("libnotthere.so"), "-Wl,-soname,libnotthere.so.7", box.path("lib.c"))
    run("gcc", "-o", program, box.path("b.c"), box.path("libnotthere.so"))
    contains(run(*pack, status=1), "libnotthere.so.7 is needed and not to be found")


# ---- installed ------------------------------------------------------------------------------------------------------

def installed(box):
    """A virtual environment with the wheel and what this machine's Python has: pip, and perhaps NumPy. Returns its bin/."""
    venv = box.path("venv")
    if subprocess.run([sys.executable, "-m", "pip", "--version"], check=False, stdout=subprocess.DEVNULL).returncode:
        raise Skip("python3-pip is not installed")
    run(sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", venv)
    run(os.path.join(venv, "bin", "python"), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
        "--disable-pip-version-check", wheel(), env=environment())
    return os.path.join(venv, "bin")


class Served:
    """A daemon of the wheel: its command, its configuration's path as the daemon sees it, its socket as we do."""

    def __init__(self, box, command, config, path, env=None):
        self.box, self.path, self.env = box, path, env or environment()
        with open(box.path("log"), "ab") as log:
            self.process = subprocess.Popen([*command, "-c", config], env=self.env, cwd="/", stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)
        box.processes.append(self.process)
        within(20, self.answers, "the wheel's daemon answers")

    def answers(self):
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)) as client:
            if self.process.poll() is not None:
                with open(self.box.path("log"), encoding="utf-8") as log:
                    raise AssertionError(f"the daemon ended with {self.process.returncode}: {log.read()}")
            return client.connect_ex(self.path) == 0

    def stop(self):
        self.process.terminate()
        equal(self.process.wait(patience(20)), 0, "exit status of the wheel's daemon")


def configuration(socket_path, index, **datasets):
    return config_text({"socket": socket_path, "index_dir": index, "workers": 2, "memory_limit": "512MiB"}, datasets).encode()


@case("pip installs it without a network and without a compiler; its programs run, and the loader takes its library")
def _(box):
    scripts = installed(box)
    for name in PROGRAMS:
        contains(run(os.path.join(scripts, name), "--version", env=environment()), name)
    contains(run(os.path.join(scripts, "dlctl"), "no-such-command", env=environment(), status=2), "no-such-command")
    write(box.path("conf"), configuration(box.path("s"), box.path("index"), f={"path": box.folder_of_files("f", 20)}))
    notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notified.settimeout(patience(20))
    notified.bind(box.path("notify"))
    daemon = Served(box, [os.path.join(scripts, "dataloaderd")], box.path("conf"), box.path("s"),
                    environment(NOTIFY_SOCKET=box.path("notify")))
    words = notified.recv(4096).decode()
    contains(words, "READY=1", "STATUS=Serving 1 dataset")
    status = json.loads(run(os.path.join(scripts, "dlctl"), "--socket", box.path("s"), "--format", "json", "status", env=environment()))
    libraries = next(fact for fact in status["obtained"] if fact["name"] == "libraries")
    equal(libraries["value"], "portable", "the programs' libraries")
    contains(libraries["text"], "MPI")
    python = os.path.join(scripts, "python")
    if subprocess.run([python, "-c", "import numpy"], check=False, stderr=subprocess.DEVNULL).returncode == 0:
        program = "import dlclient, os; loader = dlclient.Loader('f', batch_size=20)\n" \
            "print(os.path.dirname(loader._library.path)); print([b.indices.tolist() for b in loader][0])"
        lines = run(python, "-c", program, env=environment(DATALOADERD_SOCKET=box.path("s"))).splitlines()
        equal(lines[0].startswith(box.path("venv")), True, f"{lines[0]}: the wheel's own library is used")
        equal(ast.literal_eval(lines[1]), expected_order(20), "the batch")
    daemon.stop()
    contains(notified.recv(4096).decode(), "STOPPING=1")
    notified.close()

    os.remove(glob.glob(box.path("venv", "lib", "python3*", "site-packages", "dlclient", "bin", "dlctl"))[0])
    contains(run(os.path.join(scripts, "dlctl"), "status", env=environment(), status=1), "has no dlctl", "install")


# ---- README's first screen ------------------------------------------------------------------------------------------

SUDO = """#!/bin/sh
[ "$1 $2 $3" = "apt-get install -y" ] || { echo "not expected: $*" >&2; exit 1; }
shift 3
exec dpkg-query -W "$@" >/dev/null
"""
MAKE = """#!/bin/sh
[ "$*" = wheel ] || { echo "not expected: $*" >&2; exit 1; }
mkdir -p build && cp "$WHEEL" build/
"""
TRAIN = """
import sys
def train(images, labels):
    assert (str(images.dtype), str(labels.dtype)) == ("torch.float32", "torch.int64"), (images.dtype, labels.dtype)
    assert images.shape[1:] == (3, 224, 224) and 0 <= images.min() and images.max() <= 1, images.shape
    sys.stdout.write(f"{len(labels)} {int(labels.sum())}\\n")
"""


@case("README's first screen, as it stands there: install, train as before and with dataloaderd, look")
def _(box):
    home, folder = Home(box), box.folder_of_pictures("photos", 80, width=260, height=260)
    python = "/usr/bin/python3"
    if not os.path.exists(python) or subprocess.run([python, "-c", "import torchvision, pip, venv"], check=False,
                                                    stderr=subprocess.DEVNULL).returncode:
        raise Skip("torchvision of Debian's Python, its pip or venv is not installed")
    for name, text in (("sudo", SUDO), ("make", MAKE)):
        write(box.path("bin", name), text.encode())
        os.chmod(box.path("bin", name), 0o755)
    before, after = (TRAIN + program for program in halves(block("README.md", "-from torchvision")))
    write(box.path("before.py"), before.replace("/data/photos/train", folder).encode())
    write(box.path("after.py"), after.replace("/data/photos/train", folder).encode())
    with open(os.path.join(ROOT, "tests", "demo", "train.py"), "rb") as program:      # what the recording at its top shows
        write(box.path("shown.py"), program.read().replace(b"photos/train", b"./photos"))
    commands = [line.partition(" # ")[0] for line in block("README.md", "dlctl status").replace("/data/photos/train", folder).splitlines()]
    commands = [line + " --seconds 1" if " bench " in line else line for line in commands]
    equal([command.split()[1] for command in commands][-1], "web", "the command that goes on until Ctrl-C")
    env = dict(home.env, PATH=f"{box.path('bin')}:/usr/bin:/bin", WHEEL=wheel(), PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1",
               PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_CACHE_DIR="1")
    script = "\n".join(["mkdir tree; cd tree", block("README.md", "sudo apt-get install -y make"), "cd ..; python3 before.py >before.out",
                        "python3 after.py >after.out", "python3 shown.py", *commands[:-1], "timeout 1 " + commands[-1] + " || [ $? = 124 ]"])
    done = subprocess.run(["bash", "-euxc", script], env=env, cwd=box.folder, check=False, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=patience(300))
    equal(done.returncode, 0, done.stdout)
    for name in ("before.out", "after.out"):
        with open(box.path(name), encoding="ascii") as file:
            lines = [[int(word) for word in line.split()] for line in file]
        equal([n for n, _ in lines], [64, 16] * 2, f"samples of the batches: {name}")
        equal([sum(n_ones for _, n_ones in lines[i:i + 2]) for i in (0, 2)], [40, 40], f"labels of an epoch: {name}")
    contains(done.stdout, "epoch 3  loss", "private", "photos", "http://127.0.0.1:9750/")


@case("the wheel's daemon takes the socket that systemd passes")
def _(box):
    programs = unpacked(box.path("wheel"))
    write(box.path("conf"), configuration("/nowhere/s", box.path("index"), f={"path": box.folder_of_files("f", 4)}))
    passed = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    passed.bind(box.path("s"))
    passed.listen(8)
    command = ["sh", "-c", f"exec 3<&{passed.fileno()}; export LISTEN_PID=$$; exec \"$@\"", "sh", os.path.join(programs, "dataloaderd"),
               "-c", box.path("conf")]
    process = box.start(command, pass_fds=[passed.fileno()], env=dict(os.environ, LISTEN_FDS="1"))
    lines = run(os.path.join(programs, "dlctl"), "--socket", box.path("s"), "--format", "json", "status", env=environment())
    equal(json.loads(lines)["pid"], process.pid, "who answers")
    passed.close()
    end(process)


@case("the wheel's dlctl top draws in a terminal, and knows where Debian and RHEL describe terminals")
def _(box):
    programs = unpacked(box.path("wheel"))
    write(box.path("conf"), configuration(box.path("s"), box.path("index"), f={"path": box.folder_of_files("f", 4)}))
    box.start([os.path.join(programs, "dataloaderd"), "-c", box.path("conf")])
    within(20, lambda: os.path.exists(box.path("s")), "a daemon")
    with open(os.path.join(programs, "dlctl"), "rb") as file:
        equal(b"/etc/terminfo:/lib/terminfo:/usr/share/terminfo" in file.read(), True, "places of descriptions")
    terminal = Tmux(box, [os.path.join(programs, "dlctl"), "--socket", box.path("s"), "top"])
    terminal.until("0 jobs, 0 ranks", "the head")
    terminal.keys("q")
    terminal.until("status 0", "the end")


# ---- a machine with nothing but glibc -------------------------------------------------------------------------------

GLIBC = ("libc.so.6", "libm.so.6", "libgcc_s.so.1")


class Bare:
    """A root folder of glibc and the wheel alone, in a mount namespace of its own when something runs in it."""

    def __init__(self, box):
        if os.getuid() != 0:
            raise Skip("only root can make another root folder")
        self.root = box.path("root")
        loader = glob.glob("/lib64/ld-linux-*.so.*") or glob.glob("/lib/ld-linux-*.so.*")
        for name in GLIBC:
            path = subprocess.run(["gcc", f"-print-file-name={name}"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
            self.add(path, f"/lib/{name}")
        self.add(loader[0], loader[0])
        for name in ("proc", "dev", "tmp", "etc"):
            os.makedirs(f"{self.root}/{name}")
        write(f"{self.root}/etc/hosts", b"127.0.0.1 localhost\n")
        unpacked(f"{self.root}/wheel")

    def add(self, path, place):
        os.makedirs(os.path.dirname(self.root + place), exist_ok=True)
        shutil.copy(os.path.realpath(path), self.root + place)

    def command(self, *words):
        """The program inside is our child's own process, so that it ends with it."""
        inside = f"mount --rbind /proc {self.root}/proc && mount --rbind /dev {self.root}/dev && exec chroot {self.root} \"$@\""
        return ["unshare", "--mount", "sh", "-c", inside, "sh", f"/wheel/dlclient/bin/{words[0]}", *words[1:]]

    def run(self, *words, status=0):
        return run(*self.command(*words), env=environment(PATH=os.environ["PATH"]), status=status)


@case("where nothing is but glibc: pictures and sound of all kinds come out as from the programs of this machine")
def _(box):
    bare = Bare(box)
    try:
        bare.run("dlctl", "--version")
    except AssertionError as error:
        raise Skip(f"this machine makes no mount namespaces: {error}") from None
    data = f"{bare.root}/data"
    os.makedirs(f"{data}/pictures/class")
    for path in glob.glob(os.path.join(VECTORS, "pictures", "*.[!j]*")) + glob.glob(os.path.join(VECTORS, "pictures", "*.jp*g")):
        shutil.copy(path, f"{data}/pictures/class")
    os.makedirs(f"{data}/sound")
    sounds = [name for name in sorted(os.listdir(os.path.join(VECTORS, "sound"))) if name.endswith(SOUNDS)]
    for name in sounds:
        shutil.copy(os.path.join(VECTORS, "sound", name), f"{data}/sound")
    write(f"{data}/sound/list.jsonl", "".join(json.dumps({"audio": name}) + "\n" for name in sounds).encode())

    def datasets(folder):
        return {"pictures": {"path": f"{folder}/pictures"},
                "sound": {"path": f"{folder}/sound/list.jsonl", "format": "jsonl", "files": "audio=audio"}}

    write(f"{bare.root}/etc/conf", configuration("/tmp/s", "/tmp/index", **datasets("/data")))
    theirs = box.daemon(datasets(data))
    daemon = Served(box, bare.command("dataloaderd"), "/etc/conf", f"{bare.root}/tmp/s", environment(PATH=os.environ["PATH"]))
    for name, pipeline in (("pictures", "resize(64) center_crop(48)"), ("sound", "audio: audio(rate=16000, seconds=1)")):
        words = ("read", name, "--batch", "1", "--pipeline", pipeline, "--on-error", "skip", "--no-shuffle")
        expected = theirs.dlctl("--format", "json", *words)
        equal(expected.returncode, 0, expected.stderr)
        lines = [json.loads(line) for line in bare.run("dlctl", "--socket", "/tmp/s", "--format", "json", *words).splitlines()]
        equal(lines, [json.loads(line) for line in expected.stdout.splitlines()], name)
        equal(len(lines) > 5, True, f"{name}: {len(lines)} samples")
    end(daemon.process)


@case("where nothing is but glibc: dlctl stage fetches over https, trusting the authorities of that system")
def _(box):
    bare = Bare(box)
    folder = make_files(box.path("origin"), photos_sizes(n_each=4))
    write_manifest(folder)
    authority = certificates.Authority(box.path("."))
    place = f"{bare.root}/etc/pki/tls/certs/ca-bundle.crt"
    os.makedirs(os.path.dirname(place))
    with contextlib.closing(faulty_server.Server(folder, certificate=authority.certificate("localhost"))) as server:
        write(f"{bare.root}/etc/conf", configuration("/tmp/s", "/tmp/index", photos={
            "path": "/staged/photos", "origin": server.url("manifest.jsonl")}))
        os.makedirs(f"{bare.root}/staged")
        contains(bare.run("dlctl", "stage", "--config", "/etc/conf", "photos", status=69), "certificate")
        shutil.copy(authority.path, place)
        bare.run("dlctl", "stage", "--config", "/etc/conf", "photos")
    equal({name: digest for name, digest in files_of(f"{bare.root}/staged/photos").items() if name.endswith(".jpg")},
          {name: digest for name, digest in files_of(folder).items() if name.endswith(".jpg")}, "what was staged")


main()
