"""`dlctl web` of a test, and what a browser or a scraper sends to it."""
import contextlib
import ctypes
import errno
import http.client
import json
import os
import signal
import socket
import subprocess
import urllib.parse

from harness import DLCTL, LIBC, SANITIZER, end, patience, within

PIDFD_GETFD = 438  # the same number on all machines that are newer than it


@contextlib.contextmanager
def ended_early():
    """Whoever has answered may end the connection before all that is sent has arrived."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN):
            raise


def no_requests(host):
    """(bytes, statuses) of what the library refuses, or ends without a word."""
    return [
        (b"GET / HTTP/2.0\r\n" + host + b"\r\n", ["505"]),
        (b"\x16\x03\x01\x02\x00\x01\x00\n\r\n\r\n", [""]),
        (b"hello\r\n\r\n", [""]),
        (b"hello you\r\n\r\n", ["400"]),
        (b"GET / HTTP/1.1\r\n" + host + b"nothing\r\n\r\n", ["400"]),
        (b"GET / HTTP/1.1\r\n" + host + b"Content-Length: -1\r\n\r\n", ["400"]),
        (b"GET / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", ["400"]),
        (b"GET / HTTP/1.1\r\n" + host + b"X: y\r\n" * 10000 + b"\r\n", ["431", ""]),
        (b"GET / HTTP/1.1\r\n" + host + b"X: " + b"y" * 100000 + b"\r\n\r\n", ["431", ""]),
        (b"GET /" + b"y" * 100000, ["414", ""]),
        (b"GET /?" + b"&a" * 6000 + b" HTTP/1.1\r\n" + host + b"\r\n", ["431", ""]),
        (b"GET / HT", [""]),
    ]


class Web:
    """One that serves a daemon; it ends with the box. Without a socket it finds one. `program` goes in front of its command
    line."""

    def __init__(self, box, daemon_socket, *arguments, port=0, program=(), environment=None):
        self.errors_path = box.path(f"web{len(box.processes)}.err")
        with open(self.errors_path, "wb") as errors:
            where = ["--socket", daemon_socket] if daemon_socket else []
            self.process = box.start([*program, DLCTL, *where, "--format", "json", "web", "--port", str(port), *arguments],
                                     stdout=subprocess.PIPE, stderr=errors, env=environment)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"dlctl web has ended: {self.errors()}")
        self.url = json.loads(line)["url"]
        parts = urllib.parse.urlsplit(self.url)
        self.host, self.port = parts.hostname, parts.port
        box.cleanups.append(self.close)

    def errors(self):
        with open(self.errors_path, encoding="utf-8") as file:
            return file.read()

    def close(self):
        end(self.process)
        self.process.stdout.close()
        if SANITIZER.search(self.errors()):
            raise AssertionError(f"dlctl web: {self.errors()}")

    def interrupt(self):
        """Ctrl-C; returns its exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(patience(10))

    def connect(self):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=patience(30))
        connection.connect()
        return connection

    def get(self, path="/", method="GET", **headers):
        """(status, text, headers) of a request on a connection of its own."""
        connection = self.connect()
        try:
            connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            reply = connection.getresponse()
            return reply.status, reply.read().decode(), dict(reply.getheaders())
        finally:
            connection.close()

    def send(self, data, shut=True):
        """Bytes as they are; returns all that comes back. It may answer and end before it has read all of them."""
        back = b""
        with socket.create_connection((self.host, self.port), timeout=patience(30)) as connection:
            with ended_early():
                connection.sendall(data)
                if shut:
                    connection.shutdown(socket.SHUT_WR)
            with ended_early():
                while piece := connection.recv(65536):
                    back += piece
        return back

    def status(self, **known):
        query = "&".join(f"{name}={value}" for name, value in known.items())
        status, text, _ = self.get("/status.json" + ("?" + query if query else ""))
        if status != 200:
            raise AssertionError(f"{status}: {text}")
        return json.loads(text)

    def until(self, condition, what, seconds=20):
        """Asks for the document until it fulfils the condition; returns it."""
        def look():
            document = self.status()
            return document if condition(document) else None
        return within(seconds, look, what)

    def resident_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))

    def option_of(self, connection, level, option):
        """What its end of the connection has for a socket option, which only its process can be asked for: a copy of the
        descriptor is asked. OSError where the kernel gives no copy."""
        process = os.pidfd_open(self.process.pid)
        try:
            for name in os.listdir(f"/proc/{self.process.pid}/fd"):
                copy = LIBC.syscall(PIDFD_GETFD, process, int(name), 0)
                if copy < 0:
                    raise OSError(ctypes.get_errno(), "pidfd_getfd")
                try:
                    with socket.socket(fileno=copy) as its_end:
                        if its_end.getpeername() == connection.sock.getsockname():
                            return its_end.getsockopt(level, option)
                except OSError:
                    pass  # another file, or a socket without a peer
        finally:
            os.close(process)
        raise AssertionError("it does not have the connection")

    def n_descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))
