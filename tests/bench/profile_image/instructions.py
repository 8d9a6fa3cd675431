"""Where there is no perf: instructions, counted by valgrind's callgrind. They are not a time: a division counts like an
addition, and the kernel's are missing. Threads are not told apart, so what belongs to no stage is "rest of the workers"."""
import collections
import os
import re
import subprocess
import time

from profile_image import stages

LINE = re.compile(r"^\s*([\d,]+)(?: \([^)]*\))?\s+(\S+):([^\s\[]+)(?:\s+\[(.*)\])?$")
# A program's and its threads' first functions do nothing; but when counting begins anew in the middle of them, callgrind books
# all that they have called as their own.
FRAMES = re.compile(r"(clone|start_thread|_start|\(below main\)|main|__libc_start_\w+(@@.*)?|daemon_run|event_base_\w+|"
                    r"\w+_main)$")
OURS = ("daemon/", "client/", "proto/", "tests/")


def works():
    """None, or why not."""
    try:
        subprocess.run(["callgrind_annotate", "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    except FileNotFoundError:
        return "valgrind is not installed"
    return None


def counts_by_stage(text, root):
    """callgrind_annotate's lines -> stage -> instructions. What was inlined stands below its own file with the name of
    the function around it, so the same name's line in our tree says whose it is."""
    rows, homes = [], {}
    for line in text.split("\n"):
        match = LINE.match(line)
        if not match:
            continue
        count, file, function, program = match.groups()
        file = file[len(root) + 1:] if file.startswith(root + os.sep) else file  # it leaves out the folder that it runs in
        if file.startswith(OURS):
            homes.setdefault(function, f"{file}:{function}")
        if not FRAMES.match(function):
            rows.append((int(count.replace(",", "")), file, function, program))
    counts = collections.Counter()
    for count, file, function, program in rows:
        if file.startswith(OURS):
            places = [f"{file}:{function}"]
        elif program and ".so" in program:
            places = [f"{os.path.basename(program)}:{function}"]
        else:
            places = [homes.get(function, f"{file}:{function}")]
        counts[stages.stage_of("worker", places)] += count
    return counts


def read(path, root):
    done = subprocess.run(["callgrind_annotate", "--auto=no", "--threshold=100", "--show-percs=no", path], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return counts_by_stage(done.stdout, root)


def of_command(path, command, root):
    subprocess.run(["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={path}", *command], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return read(path, root)


def of_bare_loop(path, build, photos, n_images, root):
    """stage -> instructions an image: of twice as many images minus those of as many, which leaves out what finding the files takes."""
    once, twice = ([os.path.join(build, "bench", "bare_loop"), photos, "1", str(n)] for n in (n_images, 2 * n_images))
    before, counts = of_command(path, once, root), of_command(path, twice, root)
    return {stage: max(0, n - before[stage]) / n_images for stage, n in counts.items()}


def command_of_daemon(path):
    """What goes in front of the daemon's command line."""
    return ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={path}"]


def of_daemon(path, daemon, n_images, root):
    """The same of a daemon that was started so and is at work: from now on until it has made as many."""
    subprocess.run(["callgrind_control", "-z", str(daemon.process.pid)], check=True, stdout=subprocess.DEVNULL)
    n = daemon.n_samples()
    while daemon.n_samples() < n + n_images:
        time.sleep(0.2)
    subprocess.run(["callgrind_control", "-d", str(daemon.process.pid)], check=True, stdout=subprocess.DEVNULL)
    n = daemon.n_samples() - n
    return {stage: count / n for stage, count in read(path + ".1", root).items()}
