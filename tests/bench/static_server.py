#!/usr/bin/env python3
"""Files below a folder over HTTP/1.1, for measurements where nginx is not installed: static_server.py FOLDER PORT

A thread a connection, sendfile(): about the CPU per byte that nginx takes. Ranges, HEAD and
kept connections are answered, nothing else is."""
import os
import socket
import sys
import threading


def answer(connection, folder, head):
    """One request. The connection stays."""
    lines = head.decode("latin-1").split("\r\n")
    method, path, _ = lines[0].split()
    fields = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
    try:
        fd = os.open(folder + path, os.O_RDONLY)
    except OSError:
        connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        return
    try:
        size = os.fstat(fd).st_size
        first, last, status = 0, size - 1, "200 OK"
        if "range" in fields:
            begin, end = fields["range"][len("bytes="):].split("-")
            first, last, status = int(begin), min(int(end or last), last), "206 Partial Content"
        connection.sendall((f"HTTP/1.1 {status}\r\nContent-Length: {last - first + 1}\r\nAccept-Ranges: bytes\r\n"
                            f"Content-Range: bytes {first}-{last}/{size}\r\nETag: \"{size:x}\"\r\n\r\n").encode())
        while method != "HEAD" and first <= last:
            first += os.sendfile(connection.fileno(), fd, first, min(last + 1 - first, 1 << 20))
    finally:
        os.close(fd)


def serve(connection, folder):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    pending = b""
    try:
        while True:
            while b"\r\n\r\n" not in pending:
                received = connection.recv(65536)
                if not received:
                    return
                pending += received
            head, pending = pending.split(b"\r\n\r\n", 1)
            answer(connection, folder, head)
    except OSError:
        pass
    finally:
        connection.close()


def main():
    folder, port = sys.argv[1], int(sys.argv[2])
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen(512)
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=serve, args=(connection, folder), daemon=True).start()


main()
