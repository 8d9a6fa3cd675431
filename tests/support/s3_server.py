#!/usr/bin/env python3
"""A real object store with S3's interface for tests: OpenStack Swift and its s3api, which checks every signature.

    server = s3_server.start(folder)             # s3_server.Absent (its text is the reason to skip) if it cannot run here
    server.endpoint                              # "http://127.0.0.1:PORT"; path style
    server.access_key, server.secret_key         # those of the one account
    server.put("bucket", "a key", b"bytes")      # makes the bucket, too; returns the ETag
    server.credentials(path)                     # a file with them, as AWS writes it
    server.n_requests()                          # received so far, also those that were refused
    server.stop()

By hand: s3_server.py --folder DIR [--port PORT] prints a line of JSON with endpoint and keys, and serves until it is ended.

All four of Swift's servers run in one process of their own on the loopback: one replica, one device, below `folder`, which
needs extended attributes. Signatures of version 2 and 4 are checked against path, query and headers as received: a wrong
one gets 403 SignatureDoesNotMatch, none at all 400. The access key holds a colon, as Swift wants it, so curl's --user
cannot say it. Virtual-host style works for hosts named BUCKET.localhost. Debian: python3-swift; nothing of it runs by itself.
"""
import argparse
import datetime
import hashlib
import hmac
import http.client
import importlib
import importlib.util
import json
import os
import select
import signal
import socket
import subprocess
import sys
import urllib.parse

ACCESS_KEY = "test:tester"
SECRET_KEY = "testing-secret/with+signs="
REGION = "us-east-1"
# Debian's Python has Debian's Swift, whichever Python runs the test.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


class Absent(Exception):
    """It cannot run here; the text says why."""


# ---- the caller's side ----------------------------------------------------------------------------------------------

def start(folder, seconds=30, page=1000):
    """Starts one below `folder` (made if it is not there), whose listings have `page` keys at most. Returns a Server;
    raises Absent."""
    os.makedirs(folder, exist_ok=True)
    check_attributes(folder)
    log = os.path.join(folder, "log")
    with open(log, "wb") as errors:
        process = subprocess.Popen([PYTHON, os.path.abspath(__file__), "--folder", folder, "--page", str(page),
                                    "--until-eof"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
    line = read_line(process, seconds)
    if not line:
        process.kill()
        process.wait()
        with open(log, encoding="utf-8", errors="replace") as errors:
            text = errors.read()
        if "python3-swift" in text:
            raise Absent(text.strip().splitlines()[-1])
        raise RuntimeError(f"the object store did not start: {text}")
    return Server(process, json.loads(line), log)


def check_attributes(folder):
    path = os.path.join(folder, "attribute")
    with open(path, "wb"):
        pass
    try:
        os.setxattr(path, "user.swift", b"1")
    except OSError as error:
        raise Absent(f"no extended attributes in {folder}: {error.strerror}") from None
    finally:
        os.unlink(path)


def read_line(process, seconds):
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    return process.stdout.readline() if ready else b""


class Server:
    def __init__(self, process, said, log):
        self.process = process
        self.endpoint = said["endpoint"]
        self.access_key = said["access_key"]
        self.secret_key = said["secret_key"]
        self.region = said["region"]
        self.log_path = log
        self.buckets = set()
        self.port = urllib.parse.urlsplit(self.endpoint).port

    def request(self, method, path, body=b"", headers=None):
        """A signed request; `path` as it goes over the line, its query sorted. Returns (status, headers, body)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        signed = sign(method, f"127.0.0.1:{self.port}", path, body, self.access_key, self.secret_key, headers or {})
        connection.request(method, path, body=body, headers=signed)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), content

    def put(self, bucket, key, body, headers=None):
        """Stores an object. Returns its ETag with quotes, as S3 says it."""
        if bucket not in self.buckets:
            status, _, content = self.request("PUT", "/" + bucket)
            if status not in (200, 409):  # 409: it is there
                raise RuntimeError(f"bucket {bucket}: {status} {content!r}")
            self.buckets.add(bucket)
        status, said, content = self.request("PUT", f"/{bucket}/{quote(key)}", body, headers)
        if status != 200:
            raise RuntimeError(f"{bucket}/{key}: {status} {content!r}")
        return next(value for name, value in said.items() if name.lower() == "etag")

    def delete(self, bucket, key):
        status, _, content = self.request("DELETE", f"/{bucket}/{quote(key)}")
        if status not in (200, 204):
            raise RuntimeError(f"{bucket}/{key}: {status} {content!r}")

    def n_requests(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return sum(line.startswith("S3 ") for line in log)

    def credentials(self, path, mode=0o600):
        """Writes them as a file in AWS' format. Returns its path."""
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
            file.write(f"[default]\naws_access_key_id = {self.access_key}\naws_secret_access_key = {self.secret_key}\n")
        os.chmod(path, mode)
        return path

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def quote(key):
    return urllib.parse.quote(key, safe="/-_.~")


def sign(method, host, path, body, access_key, secret_key, headers):
    """Headers with a signature of version 4, written apart from libcurl's."""
    now = datetime.datetime.now(datetime.timezone.utc)
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    digest = hashlib.sha256(body).hexdigest()
    signed = {name.lower(): value for name, value in headers.items()}
    signed.update({"host": host, "x-amz-date": stamp, "x-amz-content-sha256": digest})
    names = ";".join(sorted(signed))
    bare, _, query = path.partition("?")
    canonical = "\n".join([method, bare, query, *(f"{name}:{signed[name]}" for name in sorted(signed)), "", names, digest])
    scope = f"{day}/{REGION}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = b"AWS4" + secret_key.encode()
    for part in (day, REGION, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    signed["authorization"] = (f"AWS4-HMAC-SHA256 Credential={access_key}/{scope}, SignedHeaders={names}, "
                               f"Signature={signature}")
    return signed


# ---- the server's side ----------------------------------------------------------------------------------------------

PIPELINE = """[DEFAULT]
swift_dir = {folder}
log_address = {folder}/no-syslog

[pipeline:main]
pipeline = catch_errors gatekeeper listing_formats s3api tempauth proxy-server

[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
s3_acl = false
location = {region}
storage_domain = localhost
max_bucket_listing = {page}
check_bucket_owner = false
dns_compliant_bucket_names = true
[filter:tempauth]
use = egg:swift#tempauth
user_{account}_{user} = {secret} .admin
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
"""


def serve(folder, port, page, until_eof):
    if importlib.util.find_spec("swift") is None or importlib.util.find_spec("eventlet") is None:
        sys.exit("Swift is not installed (Debian: python3-swift)")
    import eventlet
    import eventlet.wsgi
    eventlet.monkey_patch()
    build_configuration(folder, page)
    listeners = {name: listen() for name in ("account", "container", "object")}
    build_rings(folder, {name: listener.getsockname()[1] for name, listener in listeners.items()})
    proxy_listener = listen(port)

    for name, listener in listeners.items():
        eventlet.spawn(run_wsgi, eventlet, listener, storage_server(folder, name))
    from swift.common.wsgi import loadapp
    proxy = counted(loadapp(os.path.join(folder, "proxy.conf")))
    print(json.dumps({"endpoint": f"http://127.0.0.1:{proxy_listener.getsockname()[1]}", "access_key": ACCESS_KEY,
                      "secret_key": SECRET_KEY, "region": REGION}), flush=True)
    if until_eof:
        eventlet.spawn(end_with_parent, eventlet)
    run_wsgi(eventlet, proxy_listener, proxy)


def end_with_parent(eventlet):
    """The test holds the other end of stdin: when it is gone, so are we."""
    eventlet.hubs.trampoline(0, read=True)
    os._exit(0)


def listen(port=0):
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    return listener


def run_wsgi(eventlet, listener, app):
    with open(os.devnull, "w", encoding="ascii") as nothing:
        eventlet.wsgi.server(listener, app, log=nothing, log_output=False, debug=False)


class Cache:
    """Stands in for memcached: without one s3api serves nothing. It forgets at once, so what was put is seen at once."""

    def get(self, key, **_):
        return None

    def set(self, key, value, **_):
        pass

    def delete(self, key, **_):
        pass


def counted(app):
    cache = Cache()

    def call(environ, start_response):
        environ["swift.cache"] = cache
        sys.stderr.write(f"S3 {environ['REQUEST_METHOD']} {environ['PATH_INFO']}\n")
        sys.stderr.flush()
        return app(environ, start_response)
    return call


def build_configuration(folder, page):
    """Swift reads /etc/swift/swift.conf where it is imported; ours takes its place."""
    os.makedirs(os.path.join(folder, "devices", "disk"), exist_ok=True)
    path = os.path.join(folder, "swift.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write("[swift-hash]\nswift_hash_path_suffix = tests\n[storage-policy:0]\nname = one\ndefault = yes\n")
    account, _, user = ACCESS_KEY.partition(":")
    with open(os.path.join(folder, "proxy.conf"), "w", encoding="utf-8") as file:
        file.write(PIPELINE.format(folder=folder, page=page, region=REGION, account=account, user=user, secret=SECRET_KEY))
    import swift.common.utils as utils
    utils.SWIFT_CONF_FILE = path
    utils.validate_hash_conf()


def build_rings(folder, ports):
    from swift.common.ring import RingBuilder
    for name, port in ports.items():
        builder = RingBuilder(4, 1, 1)
        builder.add_dev({"id": 0, "region": 1, "zone": 1, "ip": "127.0.0.1", "port": port, "device": "disk", "weight": 1,
                         "replication_ip": "127.0.0.1", "replication_port": port})
        builder.rebalance()
        builder.get_ring().save(os.path.join(folder, f"{name}.ring.gz"))


def storage_server(folder, name):
    module = importlib.import_module({"object": "swift.obj.server"}.get(name, f"swift.{name}.server"))
    factory = {"account": "AccountController", "container": "ContainerController", "object": "ObjectController"}[name]
    return getattr(module, factory)({"devices": os.path.join(folder, "devices"), "mount_check": "false",
                                     "swift_dir": folder, "log_address": folder + "/no-syslog",
                                     "bind_ip": "127.0.0.1", "fallocate_reserve": "0", "disable_fallocate": "true"})


def main():
    arguments = argparse.ArgumentParser(description="An object store with S3's interface, for tests")
    arguments.add_argument("--folder", required=True, help="where it keeps everything")
    arguments.add_argument("--port", type=int, default=0, help="0: any that is free")
    arguments.add_argument("--page", type=int, default=1000, help="keys in a listing's page at most")
    arguments.add_argument("--until-eof", action="store_true", help="end when stdin does")
    given = arguments.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    serve(os.path.abspath(given.folder), given.port, given.page, given.until_eof)


if __name__ == "__main__":
    main()
