#!/usr/bin/env python3
"""dlctl completion: real shells complete commands, options, their words and the names of datasets and jobs."""
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import BUILD, DLCTL, Skip, case, contains, end, equal, main, patience

# What is typed, and what the line becomes. Each ends in what no other word begins with.
LINES = (("dlctl stat", "dlctl status "), ("dlctl read --on-er", "dlctl read --on-error "), ("dlctl look pho", "dlctl look photos "),
         ("dlctl jobs tra", "dlctl jobs training "), ("dlctl diagnose tra", "dlctl diagnose training "),
         ("dlctl once --sc", "dlctl once --scope "), ("dlctl once --scope clu", "dlctl once --scope cluster "),
         ("dlctl --format js", "dlctl --format json "), ("dlctl completion fi", "dlctl completion fish "),
         ("dlctl stage --config /etc/debian_ver", "dlctl stage --config /etc/debian_version "),
         ("dlctl help class_b", "dlctl help class_balanced "), ("dlctl order --sampler stra", "dlctl order --sampler stratified"),
         ("dlctl read --pipeline 'resize(256) center", "dlctl read --pipeline 'resize(256) center_crop"))


def environment(daemon, box):
    return {"PATH": BUILD + os.pathsep + os.environ["PATH"], "HOME": box.path("."), "TERM": "dumb", "LC_ALL": "C.UTF-8",
            "DATALOADERD_SOCKET": daemon.socket}


def script(box, shell):
    if not shutil.which(shell):
        raise Skip(f"{shell} is not installed")
    path = box.path(f"dlctl.{shell}")
    with open(path, "wb") as file:
        subprocess.run([DLCTL, "completion", shell], check=True, stdout=file, timeout=patience(30))
    return path


class Terminal:
    """A shell that a person types into."""

    def __init__(self, box, command, env):
        master, slave = pty.openpty()
        self.process = box.start(command, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True)
        os.close(slave)
        self.fd, self.text = master, ""

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def until(self, words):
        """What came since the last call, once these words are in it."""
        deadline = time.monotonic() + patience(20)
        while words not in self.text:
            if time.monotonic() > deadline:
                raise AssertionError(f"{words!r} did not come: {self.text!r}")
            if select.select([self.fd], [], [], 0.2)[0]:
                self.text += re.sub("\x1b\\[[0-9;?]*[a-zA-Z]|\x07", "", os.read(self.fd, 65536).decode(errors="replace"))
        text, self.text = self.text, ""
        return text

    def close(self):
        end(self.process)
        os.close(self.fd)


def serving(box):
    """A daemon with a dataset that is called photos and a job that is called training."""
    daemon = box.daemon({"photos": box.folder_of_files("photos", 4)})
    daemon.reader("photos", job="training", batch=1, delay_ms=60000).wait_lines(1)
    return daemon


def check_lines(box, command, begin):
    """Types each line with a tabulator at its end, and `echo` in front, so that the shell says what it made of it."""
    daemon = serving(box)
    terminal = Terminal(box, command, environment(daemon, box))
    terminal.type(f"PS1='> '\n{begin}\necho ready-$((1+1))\n")
    terminal.until("ready-2")
    for typed, expected in LINES:
        terminal.type(typed + "\t")
        terminal.until(expected)
        terminal.type("\x15echo done-$((2+3))\n")  # Ctrl-U: the line is not run
        terminal.until("done-5")
    terminal.close()


@case("bash completes commands, options, words, files, datasets and jobs")
def _(box):
    check_lines(box, ["bash", "--norc", "-i"], f". {script(box, 'bash')}")


@case("zsh completes the same")
def _(box):
    check_lines(box, ["zsh", "-f", "-i"], f"autoload -U compinit; compinit -u -D; . {script(box, 'zsh')}")


@case("fish completes the same")
def _(box):
    path = script(box, "fish")
    daemon = serving(box)
    for typed, expected in LINES:
        done = subprocess.run(["fish", "--no-config", "-c", f"source {path}; complete -C $argv[1]", typed], check=False,
                              env=environment(daemon, box), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=patience(60))
        word = shlex.split(expected + "'" * (expected.count("'") % 2))[-1]  # fish names it without its quotes
        equal(done.stdout.split("\n")[0].split("\t")[0], word, f"{typed}: {done.stdout}")


@case("every command and each of its options is in the script of each shell")
def _(box):
    def said(*arguments):
        return subprocess.run([DLCTL, *arguments], check=True, stdout=subprocess.PIPE, text=True, timeout=patience(30)).stdout

    commands = re.findall(r"^  ([a-z]+) +\S", said("--help"), re.MULTILINE)
    equal({"status", "read", "once", "completion"} - set(commands), set(), "commands")
    scripts = {shell: said("completion", shell) for shell in ("bash", "zsh", "fish")}
    for command in commands:
        options = re.findall(r"^  (?:-\w, )?--([a-z-]+)", said(command, "--help"), re.MULTILINE)
        parts = {"bash": re.search(rf"^    {command}\)\n.*?^        esac ;;$", scripts["bash"], re.MULTILINE | re.DOTALL)[0],
                 "zsh": re.search(rf"^    {command}\)\n.*? ;;$", scripts["zsh"], re.MULTILINE | re.DOTALL)[0],
                 "fish": "\n".join(line for line in scripts["fish"].splitlines() if f"_from {command}'" in line)}
        for option in options:
            for shell, words in (("bash", f"--{option}"), ("zsh", f"--{option}["), ("fish", f" -l {option} ")):
                contains(parts[shell] + (f"--{option}[" if f",--{option}}}" in parts[shell] else ""), words)


main()
