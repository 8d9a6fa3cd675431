"""Watches how much memory a daemon really has.

    with Resident(daemon, 256) as resident:      # MiB: its memory_limit
        ...
    # ended: never more than memory_limit + ALLOWANCE_MIB, and resident.most_mib says how much it was

Counted are all pages of the process: its own, those of files (code, the index), and all shared memory that it has mapped,
though its clients have that, too."""
import re
import threading
import time

from harness import ALLOWANCE_MIB

PAUSE = 0.02


def resident_mib(pid):
    """Anonymous and file pages of the process, and all shared memory that it has mapped."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        text = status.read()
    return sum(int(re.search(name + r":\s+(\d+)", text).group(1)) for name in ("RssAnon", "RssFile", "RssShmem")) / 1024


class Resident:
    def __init__(self, daemon, limit_mib):
        self.daemon = daemon
        self.limit_mib = limit_mib
        self.first_mib = resident_mib(daemon.pid)
        self.most_mib = 0
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self):
        while not self.stop.is_set():
            try:
                self.most_mib = max(self.most_mib, resident_mib(self.daemon.pid))
            except (OSError, AttributeError):  # it has ended
                return
            time.sleep(PAUSE)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, value, trace):
        self.stop.set()
        self.thread.join()
        if kind is None and self.most_mib > self.limit_mib + ALLOWANCE_MIB:
            raise AssertionError(f"the daemon had {self.most_mib:.1f} MiB resident, memory_limit is {self.limit_mib} MiB "
                                 f"and {ALLOWANCE_MIB} MiB are allowed beside it")
        print(f"        resident: {self.most_mib:.1f} MiB at most, memory_limit {self.limit_mib} MiB")
