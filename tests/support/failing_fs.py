"""A mounted folder that fails as the test says (reads that hang, errors, delays, short reads, a mount that is gone), and a
disk that is small.

    source = box.folder_of_files("files", 100)
    disk = FailingFs(box, source)                       # disk.path shows what lies in `source`
    daemon = box.daemon({"d": disk.path})
    disk.hang("class000/*", ops="open,read")            # from now on; "*" also matches "/"
    disk.fail("*.jpg", "EIO", times=3)
    disk.delay("*", 200, ops="read")
    within(5, lambda: disk.n_hanging() > 0, "a read hangs")
    disk.clear()                                        # what hung goes on
    disk.die()                                          # the server is gone: ENOTCONN from now on

    disk = SmallDisk(box, 6 << 20)
    disk.fill(1 << 20)                                  # all but a MiB is full
    disk.empty()

tests/tools/failing_fs.c says what the rules do. A request that hangs cannot be killed, nor can the process that waits for
it; so the rules are cleared before the box ends its processes. Mounts are made in a mount namespace that belongs to the
test, so they vanish with it whatever happens: what was started before the first FailingFs does not see them. Root only;
Skip says what is missing.
"""
import ctypes
import os
import socket
import subprocess

from harness import LIBC, ROOT, Skip, end, within

PROGRAM = os.path.join(ROOT, "build", "release", "tools", "failing_fs")
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x00020000, 0x4000, 1 << 18
MNT_DETACH = 2
HAS_NAMESPACE = []


def own_mounts():
    """From now on mounts of this process and its children are seen by nobody else."""
    if HAS_NAMESPACE:
        return
    if LIBC.unshare(CLONE_NEWNS) != 0 or LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        raise Skip(f"no mount namespace: {os.strerror(ctypes.get_errno())}")
    HAS_NAMESPACE.append(True)


class FailingFs:
    """`source` as seen through a file system that fails on command, at `path`. The kernel remembers names and attributes
    for `name_seconds`; with 0 every use of a path asks."""

    def __init__(self, box, source, name="disk", name_seconds=0):
        if not os.path.exists(PROGRAM):
            raise Skip("build/release/tools/failing_fs was not built (Debian: libfuse3-dev)")
        if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
            raise Skip("mounting a file system takes root and /dev/fuse")
        own_mounts()
        self.box = box
        self.path = box.path(name)
        self.socket = box.path(name + ".control")
        os.makedirs(self.path, exist_ok=True)  # mounted again, it is there
        device = os.stat(self.path).st_dev
        self.process = box.start([PROGRAM, source, self.path, self.socket, str(name_seconds)])
        box.releases.append(self.release)
        box.cleanups.append(self.unmount)
        within(10, lambda: self.process.poll() is not None or os.stat(self.path).st_dev != device, "it is mounted")
        if self.process.poll() is not None:
            raise Skip("no file system can be mounted here")

    def say(self, command, *words, **options):
        """One command; see failing_fs.c. Returns the number that it answers with, if it does."""
        texts = [str(word) for word in words] + [f"{name}={value}" for name, value in options.items() if value]
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
            control.settimeout(60)
            control.connect(self.socket)
            control.send(" ".join([command, *texts]).encode())
            answer = control.recv(1000).decode()
        if not answer.startswith("ok"):
            raise ValueError(f"failing_fs: {command}: {answer}")
        return int(answer[3:]) if len(answer) > 2 else None

    def hang(self, pattern="*", ops=None, after=0, times=0):
        """Requests get no answer until clear()."""
        self.say("hang", pattern, ops=ops, after=after, times=times)

    def fail(self, pattern, error, ops=None, after=0, times=0):
        """Requests end with an error, by its name."""
        self.say("fail", pattern, error, ops=ops, after=after, times=times)

    def delay(self, pattern, milliseconds, ops=None, after=0, times=0):
        """Answers come later."""
        self.say("delay", pattern, milliseconds, ops=ops, after=after, times=times)

    def short(self, pattern, n_bytes, after=0, times=0):
        """Reads of files that are opened from now on bring at most n_bytes."""
        self.say("short", pattern, n_bytes, after=after, times=times)

    def clear(self, pattern=None):
        """No rules any more, or none with this pattern."""
        self.say("clear", *([pattern] if pattern else []))

    def n_hanging(self):
        """Requests that wait for a clear()."""
        return self.say("hanging")

    def count(self, operation):
        """How many requests of a kind ("open", "read", ...) have come."""
        return self.say("count", operation)

    def die(self):
        """The mount stays, its server is gone: what hangs fails, and so does all that is asked from now on."""
        self.process.kill()
        self.process.wait()

    def release(self):
        """Nothing hangs any more, however the case ended: asked nicely, else by the server's death."""
        try:
            self.clear()
        except (OSError, ValueError):
            if self.process.poll() is None:
                self.die()

    def unmount(self):
        """Lazily: also while somebody uses it. Its process ends."""
        self.release()
        LIBC.umount2(os.fsencode(self.path), MNT_DETACH)
        end(self.process)


class SmallDisk:
    """A tmpfs of `n_bytes` at `path`, in a mount namespace of this test."""

    def __init__(self, box, n_bytes, name="small"):
        if os.geteuid() != 0:
            raise Skip("mounting a disk of limited size takes root")
        own_mounts()
        self.path = box.path(name)
        os.makedirs(self.path)
        if LIBC.mount(b"tmpfs", os.fsencode(self.path), b"tmpfs", 0, f"size={n_bytes}".encode()) != 0:
            raise Skip(f"no tmpfs can be mounted here: {os.strerror(ctypes.get_errno())}")
        box.cleanups.append(lambda: LIBC.umount2(os.fsencode(self.path), MNT_DETACH))

    def fill(self, n_bytes_left):
        """Leaves `n_bytes_left` free; whole pages."""
        self.empty()
        status = os.statvfs(self.path)
        with open(os.path.join(self.path, "filler"), "wb") as file:
            file.write(bytes(status.f_bavail * status.f_bsize - n_bytes_left))

    def empty(self):
        if os.path.exists(os.path.join(self.path, "filler")):
            os.unlink(os.path.join(self.path, "filler"))
