#!/usr/bin/env python3
"""Descriptors of clients whose close() takes as long as the client likes: nobody waits for it."""
import contextlib
import os
import resource
import signal
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from failing_fs import FailingFs
from harness import HandClient, Skip, attach_body, case, check_sequence, contains, equal, field, main, patience, request, within

SO_PASSRIGHTS = 83
YEAR_S = 365 * 86400
N = 50


class Hole:
    """A port of this machine at which nobody accepts, and so nobody reads."""

    def __init__(self, box):
        self.kept = []
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(4096)
        box.cleanups.append(self.listener.close)

    def lingering(self):
        """A socket whose last close() waits for a year, because what was sent is never read."""
        sender = socket.socket()
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, YEAR_S))
        sender.connect(self.listener.getsockname())
        sender.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                sender.send(bytes(65536))
        self.kept.append(sender)  # until the process ends: a close() here would linger as well
        return sender


class Scene:
    def __init__(self, box, **settings):
        self.daemon = box.daemon({"d": box.folder_of_files("d", N)}, **settings)
        self.daemon.read("d")
        self.hole = Hole(box)
        self.before = self.daemon.n_descriptors()

    def send(self, packet, n=1, client=None):
        """Sends a packet with descriptors that are nobody else's any more. Returns the client."""
        client = client or HandClient(self.daemon.socket)

        def send():
            senders = [self.hole.lingering() for _ in range(n)]
            client.send(packet, [sender.fileno() for sender in senders])
        self.in_child(send)
        return client

    def in_child(self, function):
        """Runs it in a process that ends at once, before the daemon looks: what it still has open then is closed without
        lingering, so that the last reference is the daemon's."""
        self.daemon.signal(signal.SIGSTOP)
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                function()
            os._exit(0)
        os.waitpid(child, 0)
        self.daemon.signal(signal.SIGCONT)

    def goes_on(self, what):
        equal(self.daemon.dlctl("status").returncode, 0, f"dlctl status after {what}")

    def cpu_ns(self):
        """CPU time of the main thread, and of those that close."""
        main, closers = 0, 0
        for thread in os.listdir(f"/proc/{self.daemon.pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{self.daemon.pid}/task/{thread}/comm", encoding="ascii") as comm, \
                 open(f"/proc/{self.daemon.pid}/task/{thread}/schedstat", encoding="ascii") as stat:
                spent = int(stat.read().split()[0])
                main += spent if int(thread) == self.daemon.pid else 0
                closers += spent if comm.read().strip() == "closer" else 0
        return main, closers

    def end(self):
        check_sequence(self.daemon.read("d"), N)
        within(30, lambda: self.daemon.n_descriptors() <= self.before, "descriptors are closed")


@case("sockets that linger, sent in every way that is refused: the daemon answers, and closes them in the end")
def _(box):
    scene = Scene(box)
    for what, packet, n in (("an attach with two", request("attach", attach_body("d")), 2),
                            ("an attach with one that is no memory", request("attach", attach_body("d")), 1),
                            ("status with one", request("status"), 1),
                            ("as many as fit into a packet", request("status"), 253),
                            ("an empty packet with one", b"", 1),
                            ("garbage with one", b"\xff" * 10, 1),
                            ("too long a packet with one", field(3, b"x" * 66000), 1)):
        client = scene.send(packet, n)
        scene.goes_on(what)
        client.close()
        scene.goes_on(what + ", and the client has left")
    scene.end()


@case("sockets that linger in packets which are never read: behind garbage, behind empty packets, of a client that has gone")
def _(box):
    scene = Scene(box)
    for what, first in (("garbage", [b"\xff" * 10]), ("empty packets", [b""] * 3), ("nothing", []),
                        ("an attach that takes a while", [request("attach", attach_body("d"))] * 3)):
        client = HandClient(scene.daemon.socket)
        for _ in range(5):
            with contextlib.suppress(OSError):
                for packet in first:
                    client.send(packet)
            scene.send(request("status"), 3, client)
        client.close()
        scene.goes_on("packets behind " + what)
    scene.end()


@case("sockets that linger of a client that is not let in: over its share of connections, or without a free descriptor")
def _(box):
    scene = Scene(box, user_connections=1)

    def knock(scene):
        os.setuid(12345)
        clients = [HandClient(scene.daemon.socket) for _ in range(20)]
        for client in clients:
            with contextlib.suppress(OSError):
                client.send(request("status"), [scene.hole.lingering().fileno() for _ in range(2)])

    os.chmod(box.folder, 0o755)
    os.chmod(scene.daemon.folder, 0o755)
    os.chmod(scene.daemon.socket, 0o777)
    if os.getuid() == 0:
        for i in range(12):
            scene.in_child(lambda: knock(scene))
            scene.goes_on(f"the {i}. process with too many connections")
    _, most = resource.prlimit(scene.daemon.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(scene.daemon.pid, resource.RLIMIT_NOFILE, (scene.daemon.n_descriptors() - 1, most))
    for _ in range(5):
        scene.send(request("status"), 2).close()
    resource.prlimit(scene.daemon.pid, resource.RLIMIT_NOFILE, (most, most))
    within(30, lambda: scene.daemon.dlctl("status").returncode == 0, "it answers again")
    scene.end()


@case("a file of a file system that does not answer, sent in place of memory: the daemon answers, and closes it later")
def _(box):
    disk = FailingFs(box, box.folder_of_files("files", 3))
    scene = Scene(box)
    name = os.path.join(disk.path, os.listdir(disk.path)[0])
    name = os.path.join(name, os.listdir(name)[0])
    disk.hang("*", ops="flush")
    children = []
    for i in range(20):
        client = HandClient(scene.daemon.socket)
        children.append(os.fork())
        if children[-1] == 0:  # its own end hangs as well
            with contextlib.suppress(BaseException):
                client.send(request("attach", attach_body("d")), [os.open(name, os.O_RDONLY)])
            os._exit(0)
        contains(client.receive().decode(errors="replace"), "d")
        scene.goes_on(f"the {i}. file")
        client.close()
    within(30, lambda: disk.n_hanging() > 0, "a close() hangs")
    disk.clear()
    for child in children:
        os.waitpid(child, 0)
    scene.end()


@case("memory of which the daemon has the last descriptor is given back by the threads that close")
def _(box):
    scene = Scene(box)
    for packet in (request("attach", attach_body("d")), request("status")):
        before = scene.cpu_ns()
        client = HandClient(scene.daemon.socket)

        def send():
            memory = os.memfd_create("large")
            os.posix_fallocate(memory, 0, 128 << 20)
            client.send(packet, [memory])
        scene.in_child(send)
        scene.goes_on("a piece of memory")
        client.close()
        scene.end()
        of_main, of_closers = (now - then for now, then in zip(scene.cpu_ns(), before))
        equal(of_closers > of_main, True, f"{of_closers} ns of the threads that close, {of_main} ns of the main one")


@case("the metrics socket takes no descriptors at all, where the kernel can refuse them; nor does a rank that is attached")
def _(box):
    path = box.path("metrics")
    scene = Scene(box, metrics_socket=path)
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
        except OSError as error:
            raise Skip("the kernel cannot refuse descriptors (before Linux 6.16)") from error
    visitor = socket.socket(socket.AF_UNIX)
    visitor.connect(path)
    rank = HandClient(scene.daemon.socket)
    rank.attach("d")
    for connection in (visitor, rank.socket):
        try:
            socket.send_fds(connection, [b"GET /metrics HTTP/1.1\r\n\r\n"], [0])
        except PermissionError:
            continue
        raise AssertionError("a descriptor was taken")
    visitor.close()
    rank.close()
    scene.end()


@case("a hundred at once, and SIGTERM with such packets in every queue: it ends")
def _(box):
    scene = Scene(box)
    clients = [scene.send(request("status"), 3) for _ in range(100)]
    scene.goes_on("a hundred clients")
    for client in clients:
        client.close()
    scene.end()
    waiting = [HandClient(scene.daemon.socket) for _ in range(10)]
    late = [HandClient(scene.daemon.socket) for _ in range(10)]

    def send_and_stop():
        for client in waiting + late:
            client.send(request("status"), [scene.hole.lingering().fileno()] * 2)
        scene.daemon.signal(signal.SIGTERM)
    scene.in_child(send_and_stop)
    equal(scene.daemon.process.wait(patience(60)), 0, "how it ends")
    for client in waiting + late:
        client.close()


main()
