"""Where the peers are installed: one virtual environment, build/peers/venv, filled list by list when a peer needs one.

All of them agree on their versions, so one environment holds them; should a list not install, its peers are missing and
the others go on. What was installed stays until the list changes or `make clean`.
"""
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
FOLDER = os.path.join(ROOT, "build", "peers")
VENV = os.path.join(FOLDER, "venv")
PYTHON = os.path.join(VENV, "bin", "python")

# Of each list: megabytes to fetch, and on disk.
SIZES = {"torch": (3200, 4700), "dali": (270, 550), "spdl": (20, 50), "tensorflow": (330, 1500), "ffcv": (70, 200),
         "formats": (120, 400), "dlio": (25, 120)}

# FFCV asks pkg-config for all of OpenCV and includes all of its headers, but uses two of its libraries, whose headers are
# small packages. This stands in for the rest.
OPENCV_PC = """Name: opencv4
Description: the two libraries of OpenCV that FFCV uses
Version: 4
Libs: -lopencv_imgproc -lopencv_core
Cflags: -I{folder} -I/usr/include/opencv4
"""
OPENCV_HPP = "#include <opencv2/core.hpp>\n#include <opencv2/imgproc.hpp>\n"


class NotInstalled(Exception):
    """A list could not be installed; the text says why."""


def say(text):
    print(f"peers: {text}", file=sys.stderr, flush=True)


def interpreter():
    """A Python of at least 3.10 that can make environments: PATH's, else Debian's."""
    check = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))"
    for python in (shutil.which("python3"), "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", check], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return python
    raise NotInstalled("no Python of 3.10 or later with venv and pip (Debian: python3-venv)")


def pip(*arguments, env=None):
    """Runs pip in the environment; what is large is named while it comes."""
    command = [PYTHON, "-m", "pip", *arguments]
    log = os.path.join(FOLDER, "pip.log")
    with open(log, "a", encoding="utf-8") as file, \
         subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env) as process:
        last = ""
        for line in process.stdout:
            file.write(line)
            last = line.strip() if line.startswith("ERROR") else last
            if re.search(r"Downloading .*\(\d{3,}\.\d MB\)", line):
                say(line.strip()[:110])
    if process.returncode != 0:
        raise NotInstalled(f"{last or 'pip failed'} (all of pip's words: {os.path.relpath(log, ROOT)})")


def ffcv_environment():
    """Where the compiler finds what FFCV includes."""
    folder = os.path.join(FOLDER, "ffcv")
    os.makedirs(os.path.join(folder, "opencv2"), exist_ok=True)
    with open(os.path.join(folder, "opencv4.pc"), "w", encoding="utf-8") as file:
        file.write(OPENCV_PC.format(folder=folder))
    with open(os.path.join(folder, "opencv2", "opencv.hpp"), "w", encoding="utf-8") as file:
        file.write(OPENCV_HPP)
    return dict(os.environ, PKG_CONFIG_PATH=folder)


def requirements(name):
    return os.path.join(os.path.dirname(HERE), f"requirements-{name}.txt")


def install(name):
    """One list, if it is not there yet as it stands now."""
    stamp = os.path.join(VENV, f".installed-{name}")
    with open(requirements(name), "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    if os.path.exists(stamp):
        with open(stamp, encoding="ascii") as file:
            if file.read() == digest:
                return
    say(f"installing {name} into build/peers: {SIZES[name][0]} MB to fetch, {SIZES[name][1]} MB on disk, once")
    if name == "torch":                 # the first of all: whatever is there is half done or of an older list
        shutil.rmtree(VENV, ignore_errors=True)
        os.makedirs(FOLDER, exist_ok=True)
        subprocess.run([interpreter(), "-m", "venv", VENV], check=True, stdout=sys.stderr)
    more = [] if name == "torch" else ["-c", requirements("torch")]
    if name == "ffcv":
        # numba wants llvmlite, which is missing in FFCV's own list
        pip("install", "--disable-pip-version-check", "--no-cache-dir", "--progress-bar=off", *more, numba_line())
        more += ["--no-deps", "--no-build-isolation"]
    if name == "dlio":
        more += ["--no-deps"]           # it asks for TensorFlow and DALI; its list has what a workload of torch needs
    pip("install", "--disable-pip-version-check", "--no-cache-dir", "--progress-bar=off", *more, "-r", requirements(name),
        env=ffcv_environment() if name == "ffcv" else None)
    if name in ("torch", "formats"):
        pip("uninstall", "-y", "triton")  # a gigabyte for compiling models, which nobody here does
    with open(stamp, "w", encoding="ascii") as file:
        file.write(digest)


def numba_line():
    with open(requirements("ffcv"), encoding="utf-8") as file:
        return next(line.strip() for line in file if line.startswith("numba"))


def make(names):
    """Installs these lists. Returns what could not be installed: name -> why."""
    failed = {}
    for name in names:
        if "torch" in failed:
            failed[name] = "torch, on which all peers stand, is not installed"
            continue
        try:
            install(name)
        except (NotInstalled, subprocess.CalledProcessError, OSError) as error:
            failed[name] = str(error)
    return failed


def versions():
    """What is installed, name -> version, without starting anything of it."""
    found = {}
    for folder in glob.glob(os.path.join(VENV, "lib", "python*", "site-packages", "*.dist-info")):
        name, _, version = os.path.basename(folder)[:-len(".dist-info")].rpartition("-")
        found[name.lower().replace("_", "-")] = version
    return found
