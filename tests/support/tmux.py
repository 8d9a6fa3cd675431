"""A program in a real terminal: tmux, whose screen can be read. It ends with the box."""
import os
import shlex
import shutil
import subprocess

from harness import Skip, patience, within


class Tmux:
    def __init__(self, box, command, size=(100, 30), **environment):
        if not shutil.which("tmux"):
            raise Skip("needs tmux")
        self.socket = box.path(f"tmux{len(box.cleanups)}")
        if len(self.socket) > 100:
            raise Skip("the path of the socket is too long")
        keep = {name: os.environ[name] for name in ("PATH", "HOME", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS")
                if name in os.environ}
        self.environment = {**keep, "LANG": "C.UTF-8", **environment}
        # A leak check at the exit of a program whose terminal has gone may never end.
        self.environment["ASAN_OPTIONS"] = keep.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        line = shlex.join(["env", "-u", "TMUX"] + settings + [str(word) for word in command])
        box.cleanups.append(self.close)
        # A shell with job control is what people have around it.
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), "env PS1='$ ' sh -i")
        self.tmux("set-option", "-g", "status", "off")
        self.keys(f"{line}; echo status $?", "Enter")

    def tmux(self, *arguments):
        done = subprocess.run(["tmux", "-S", self.socket] + list(arguments), env=dict(self.environment, TERM="xterm-256color"),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False,
                              timeout=patience(30))
        if done.returncode != 0:
            raise AssertionError(f"tmux {arguments}: {done.stderr}")
        return done.stdout

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def resize(self, n_columns, n_rows):
        self.tmux("resize-window", "-x", str(n_columns), "-y", str(n_rows))

    def screen(self, styles=False):
        return self.tmux("capture-pane", "-p", *(["-e", "-N"] if styles else []))

    def until(self, condition, what, seconds=20):
        """The screen, once it has the text or fulfils the condition."""
        def look():
            screen = self.screen()
            return screen if (condition in screen if isinstance(condition, str) else condition(screen)) else None
        try:
            return within(seconds, look, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; the screen:\n{self.screen()}") from None

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                       timeout=patience(30))
