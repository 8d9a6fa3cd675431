#!/usr/bin/env python3
"""Records docs/first-batch.svg: a new user's terminal, from pip install to training, on this machine and in its own time.

    make wheel && tests/demo/first_batch.py docs/first-batch.svg

Needs Debian's python3-venv, python3-pip and python3-torch; the wheel comes from build/, the photographs from tests/support/photos.sh."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import harness
import record

TITLE = "a new environment: from pip install to training, on 2 CPUs"
LINES = ["python3 -m venv --system-site-packages ~/train && . ~/train/bin/activate     # torch is there",
         "pip install {wheel}",
         "ls photos/train; find photos -name '*.jpg' | wc -l",
         "cat train.py",
         "# wait 3",
         "python3 train.py",
         "dlctl status | head -8",
         "dlctl stop"]


def main():
    target = os.path.abspath(sys.argv[1])
    wheel = glob.glob(os.path.join(ROOT, "build", "dlclient-*.whl"))
    if len(wheel) != 1:
        sys.exit("first_batch.py: make wheel first")
    home = tempfile.mkdtemp()
    try:
        shutil.copy(wheel[0], home)
        shutil.copy(os.path.join(HERE, "train.py"), home)
        os.makedirs(os.path.join(home, "run"), 0o700)
        os.makedirs(os.path.join(home, "photos"))
        shutil.copytree(harness.photos(1000, 4), os.path.join(home, "photos", "train"))
        environment = record.shell_environment(HOME=home, XDG_RUNTIME_DIR=os.path.join(home, "run"), PATH="/usr/bin:/bin",
                                               PIP_CONFIG_FILE="/dev/null", PIP_DISABLE_PIP_VERSION_CHECK="1", TMPDIR=home,
                                               OMP_NUM_THREADS="1")
        os.chdir(home)
        recording = record.Recording(record.SHELL, environment, 110, 42)
        recording.play([line.format(wheel=os.path.basename(wheel[0])) for line in LINES])
        recording.terminal.close()
        if recording.terminal.screen.unknown:
            sys.exit(f"first_batch.py: the screen does not know {recording.terminal.screen.unknown}")
        with open(target, "w", encoding="utf-8") as file:
            file.write(record.svg(recording, TITLE, idle=2))
    finally:
        subprocess.run([os.path.join(home, "train", "bin", "dlctl"), "--private", "stop", "--now"], check=False,
                       env={"HOME": home, "XDG_RUNTIME_DIR": os.path.join(home, "run"), "PATH": "/usr/bin:/bin"},
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.chdir("/")
        shutil.rmtree(home)


main()
