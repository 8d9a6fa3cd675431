"""Another user beside a job that is measured: hostile_user.py KIND UID SOCKET DATASET [PIPELINE], until it is ended.

`flood` does to the daemon what costs it most, as fast as it can: connects and hangs up, asks without reading, sends what is
not a message, attaches and leaves, keeps nothing. `spin` uses the same CPU and leaves the daemon alone. `equal` reads as
the measured job does. `slow` reads with the longest pipeline that max_step_pixels allows by default, or with PIPELINE.
`orders` has large orders made for many jobs, and seeks before they are complete. `refused` attaches to what there is not,
without a pause."""
import os
import socket
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(os.path.dirname(TESTS), "build", "release")
sys.path.insert(0, os.path.join(TESTS, "support"))
from harness import HandClient, attach_body, field, request  # noqa: E402

SLOW = "resize(8192:8192) gaussian_blur(31, sigma=8) gaussian_blur(31, sigma=8) center_crop(8)"
SAMPLER, N_ORDERS = "random(n=30000000)", 24


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


def be_refused(path, _):
    client = HandClient(path)
    for _ in range(20):
        client.send(request("attach", attach_body("nothing of this name", job="refused")))
        client.receive()
    client.socket.close()


def make_orders(path, dataset):
    clients = []
    for number in range(N_ORDERS):
        client = HandClient(path)
        client.send(request("attach", attach_body(dataset, job=f"orders{number}", batch=4) + field(24, SAMPLER)))
        client.receive()
        clients.append(client)
    for epoch in range(1, 1 << 30):
        for client in clients:
            client.send(request("seek", field(1, epoch)))
            client.receive()
        time.sleep(0.2)


def read(kind, path, dataset, pipeline=SLOW):
    """Becomes a client that reads for ever."""
    os.environ["DATALOADERD_SOCKET"] = path
    if kind == "equal":
        program = os.path.join(BUILD, "bench", "consume")
        os.execv(program, [program, "throughput", str(os.getpid()), "1000000"])
    program = os.path.join(BUILD, "dlctl")
    os.execv(program, [program, "read", dataset, "--batch", "4", "--epochs", "1000000", "--job", "slow", "--pipeline", pipeline])


FLOOD = connect_and_hang_up, ask_without_reading, ask_and_read, send_garbage, attach_and_leave
ACTS = {"flood": FLOOD, "refused": (be_refused,), "orders": (make_orders,)}


def main():
    kind, uid, path, dataset, *pipeline = sys.argv[1:]
    os.setgroups([])
    os.setgid(int(uid))
    os.setuid(int(uid))
    while kind == "spin":
        pass
    if kind in ("equal", "slow"):
        read(kind, path, dataset, *pipeline)
    while True:
        for act in ACTS[kind]:
            try:
                act(path, dataset)
            except (OSError, socket.timeout):
                pass  # refused, closed, full: what it is there for


main()
