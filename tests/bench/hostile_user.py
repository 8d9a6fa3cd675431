"""Another user beside a job that is measured: hostile_user.py flood|spin UID SOCKET DATASET, until it is ended.

`flood` does to the daemon what costs it most, as fast as it can: connects and hangs up, asks without reading, sends what is
not a message, attaches and leaves, keeps nothing. `spin` uses the same CPU and leaves the daemon alone."""
import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from harness import HandClient, attach_body, request  # noqa: E402


def connect_and_hang_up(path, _):
    for _ in range(50):
        HandClient(path).socket.close()


def ask_without_reading(path, _):
    client = HandClient(path)
    client.socket.setblocking(False)
    for _ in range(500):
        client.send(request("jobs"))
    client.socket.close()


def ask_and_read(path, _):
    client = HandClient(path)
    for _ in range(100):
        client.send(request("status"))
        client.receive()
    client.socket.close()


def send_garbage(path, _):
    client = HandClient(path)
    client.send(os.urandom(60000))
    client.socket.close()


def attach_and_leave(path, dataset):
    client = HandClient(path)
    client.attach(dataset, job=f"hostile{os.getpid()}", batch=4)
    for descriptor in client.descriptors:
        os.close(descriptor)
    client.socket.close()


def main():
    kind, uid, path, dataset = sys.argv[1:]
    os.setgroups([])
    os.setgid(int(uid))
    os.setuid(int(uid))
    while kind == "spin":
        pass
    while True:
        for act in connect_and_hang_up, ask_without_reading, ask_and_read, send_garbage, attach_and_leave:
            try:
                act(path, dataset)
            except (OSError, socket.timeout):
                pass  # refused, closed, full: what it is there for


main()
