"""A hub for tests, as the Hugging Face hub's public protocol describes it: repositories of datasets with commits, branches and
tags, listed page by page and fetched through redirects.

    with hub_server.start() as hub:                       # threads of the test's process
        first = hub.commit("org/name", {"data/a.bin": b"...", "README.md": b"..."})     # a branch's next commit: its id
        hub.commit("org/name", {"x": b""}, branch="refs/pr/1");  hub.tag("org/name", "v1", first)
        hub.endpoint                                      # for HF_ENDPOINT
        hub.gate("org/name"); hub.hide("org/name"); hub.rename("org/old", "org/name"); hub.token = "hf_..."
        hub.fault("/api/datasets/*/tree/*", 429, {"Retry-After": "1"}, times=2)         # fnmatch of the path
        hub.requests                                      # [(method, path, authorization)] of hub and storage, in order

    GET  /api/datasets/ORG/NAME[/revision/REV][?expand=sha]      id, sha, siblings
    GET  /api/datasets/ORG/NAME/tree/REV[/PATH]?recursive=&limit=&cursor=    entries; Link: <...>; rel="next"
    GET, HEAD /datasets/ORG/NAME/resolve/REV/PATH                X-Repo-Commit, ETag; 302 to the storage for files of LFS

Files that end as LFS says are in Git LFS: the tree has their SHA-256, and resolve leads to the storage, a server on another
port, which no token may reach. All others are served by the hub, after a redirect to /api/resolve-cache. Ranges and If-Match
work on both. `pointer(sha256, size)` is the text that Git keeps of a file in LFS. Nothing of it is huggingface_hub's code; that
huggingface_hub works with it is tried in tests/integration/test_hub.py.
"""
import fnmatch
import hashlib
import http.server
import json
import threading
import urllib.parse

LFS = (".parquet", ".tar", ".bin", ".arrow")
PAGE = 1000


def pointer(sha256, size):
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


def blob_id(data):
    """As Git names a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def is_lfs(path):
    return path.endswith(LFS)


class Repository:
    def __init__(self):
        self.commits = {}  # id -> {path: bytes}
        self.refs = {}     # branch or tag -> id
        self.gated = self.hidden = False

    def commit_of(self, revision):
        return self.refs.get(revision) or (revision if revision in self.commits else None)


class Refusal(Exception):
    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code = status, code


class Hub:
    def __init__(self, page=PAGE, link_to=None):
        self.page = page
        self.link_to = link_to  # the address that Link headers name; a mirror's name the hub's own
        self.repositories = {}
        self.renamed = {}
        self.token = None  # that lets in to what is gated or hidden
        self.requests = []
        self.faults = []
        self.blobs = {}    # SHA-256 -> bytes, of the storage
        self.lock = threading.Lock()
        self.servers = [self.serve(HubTalk), self.serve(StorageTalk)]
        self.endpoint, self.storage = (f"http://127.0.0.1:{server.server_address[1]}" for server in self.servers)

    def serve(self, talk):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), talk)
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # who hangs up has seen enough
        server.hub = self
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return server

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    # -- what tests say to it

    def commit(self, name, files, branch="main"):
        """Adds files to those of the branch (None takes one out)."""
        with self.lock:
            repository = self.repositories.setdefault(name, Repository())
            before = repository.refs.get(branch) or repository.refs.get("main")
            whole = {**repository.commits.get(before, {}), **files}
            whole = {path: data for path, data in sorted(whole.items()) if data is not None}
            text = json.dumps([before, [(path, blob_id(data)) for path, data in whole.items()]])
            commit = hashlib.sha1(text.encode()).hexdigest()
            repository.commits[commit] = whole
            repository.refs[branch] = commit
            self.blobs.update({hashlib.sha256(data).hexdigest(): data for path, data in files.items()
                               if data is not None and is_lfs(path)})
        return commit

    def tag(self, name, tag, commit):
        self.repositories[name].refs[tag] = commit

    def gate(self, name):
        self.repositories[name].gated = True

    def hide(self, name):
        self.repositories[name].hidden = True

    def rename(self, old, new):
        self.repositories[new] = self.repositories.pop(old)
        self.renamed[old] = new

    def fault(self, pattern, status, headers=None, body=b"", times=None):
        with self.lock:
            self.faults.append([pattern, status, headers or {}, body, times])

    def fault_for(self, path):
        with self.lock:
            for fault in self.faults:
                if fnmatch.fnmatchcase(path, fault[0]) and fault[4] != 0:
                    fault[4] = None if fault[4] is None else fault[4] - 1
                    return fault
        return None

    def asked(self, part):
        """Requests whose path has this part."""
        with self.lock:
            return [request for request in self.requests if part in request[1]]


class Talk(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        hub = self.server.hub
        with hub.lock:
            hub.requests.append((self.command, self.path, self.headers.get("Authorization")))
        target, _, query = self.path.partition("?")
        fault = hub.fault_for(urllib.parse.unquote(target))
        try:
            if fault:
                self.answer(fault[1], fault[3], fault[2])
            else:
                self.serve(hub, target.split("/")[1:], dict(urllib.parse.parse_qsl(query)))
        except Refusal as refusal:
            said = {"X-Error-Code": refusal.code, "X-Error-Message": str(refusal)}
            self.answer(refusal.status, json.dumps({"error": str(refusal)}).encode(),
                        {name: value for name, value in said.items() if value})

    def answer(self, status, body=b"", headers=None):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer_file(self, data, etag, headers=None):
        """The whole, or the range that is asked for, if it is still the file that is meant."""
        headers = {"ETag": f'"{etag}"', "Accept-Ranges": "bytes", **(headers or {})}
        if self.headers.get("If-Match") not in (None, f'"{etag}"'):
            self.answer(412, b"", headers)
            return
        asked = self.headers.get("Range")
        if not asked:
            self.answer(200, data, headers)
            return
        first, _, last = asked.removeprefix("bytes=").partition("-")
        first, last = int(first), min(int(last) if last else len(data) - 1, len(data) - 1)
        if first >= len(data):
            self.answer(416, b"", {"Content-Range": f"bytes */{len(data)}"})
        else:
            self.answer(206, data[first:last + 1], {**headers, "Content-Range": f"bytes {first}-{last}/{len(data)}"})

    def log_message(self, *_):
        pass


class StorageTalk(Talk):
    def serve(self, hub, parts, query):
        if self.headers.get("Authorization"):
            raise Refusal(400, "", "a token has come to the storage")
        if parts[-1] not in hub.blobs or query.get("signed") != "yes":
            raise Refusal(403, "", "not signed")
        self.answer_file(hub.blobs[parts[-1]], "of-the-storage")


class HubTalk(Talk):
    def serve(self, hub, parts, query):
        parts = [urllib.parse.unquote(part) for part in parts]
        if parts[:2] == ["api", "datasets"]:
            self.serve_api(hub, "/".join(parts[2:4]), parts[4:], query)
        elif parts[:2] == ["api", "resolve-cache"] and parts[2] == "datasets":
            self.serve_file(hub, "/".join(parts[3:5]), parts[5], "/".join(parts[6:]), True)
        elif parts[0] == "datasets" and parts[3:4] == ["resolve"]:
            self.serve_file(hub, "/".join(parts[1:3]), parts[4], "/".join(parts[5:]), False)
        else:
            raise Refusal(404, "", "Sorry, we can't find the page you are looking for.")

    def repository(self, hub, name, is_content=False):
        sent = self.headers.get("Authorization")
        is_known = hub.token is not None and sent == f"Bearer {hub.token}"
        found = hub.repositories.get(name)
        if sent and hub.token is not None and not is_known:
            raise Refusal(401, "", "Invalid credentials in Authorization header")
        if found is None or (found.hidden and not is_known):  # who is not known is not told which
            raise Refusal(404 if is_known else 401, "RepoNotFound" if is_known else "", "Repository not found")
        if found.gated and is_content and not is_known:
            raise Refusal(403 if sent else 401, "GatedRepo", f"Access to dataset {name} is restricted.")
        return found

    def commit(self, repository, revision):
        commit = repository.commit_of(revision)
        if commit is None:
            raise Refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return commit

    def moved(self, hub, name):
        if name not in hub.renamed:
            return False
        self.answer(307, b"", {"Location": self.path.replace(name, hub.renamed[name], 1)})
        return True

    def serve_api(self, hub, name, rest, query):
        if self.moved(hub, name):
            return
        repository = self.repository(hub, name)
        if rest and rest[0] == "tree":
            self.serve_tree(hub, name, repository, rest[1], "/".join(rest[2:]), query)
            return
        commit = self.commit(repository, rest[1] if rest[:1] == ["revision"] else "main")
        info = {"_id": "0" * 24, "id": name, "sha": commit, "private": repository.hidden, "gated": repository.gated}
        if "expand" not in query:
            info["siblings"] = [{"rfilename": path} for path in repository.commits[commit]]
        self.answer(200, json.dumps(info).encode(), {"Content-Type": "application/json"})

    def serve_tree(self, hub, name, repository, revision, folder, query):
        files = repository.commits[self.commit(repository, revision)]
        inside = folder + "/" if folder else ""
        entries, folders = [], set()
        for path, data in files.items():
            if not path.startswith(inside):
                continue
            below = path[len(inside):].split("/")
            for depth in range(1, len(below)):
                folders.add(inside + "/".join(below[:depth]))
            if len(below) > 1 and query.get("recursive") not in ("true", "True", "1"):
                continue
            entry = {"type": "file", "oid": blob_id(data), "size": len(data), "path": path}
            if is_lfs(path):
                digest = hashlib.sha256(data).hexdigest()
                entry["lfs"] = {"oid": digest, "size": len(data), "pointerSize": len(pointer(digest, len(data)))}
            entries.append(entry)
        if folder and not entries and not folders:
            raise Refusal(404, "EntryNotFound", f"{folder} does not exist on \"{revision}\"")
        entries += [{"type": "directory", "oid": hashlib.sha1(path.encode()).hexdigest(), "size": 0, "path": path}
                    for path in folders if query.get("recursive") in ("true", "True", "1") or "/" not in path[len(inside):]]
        entries.sort(key=lambda entry: entry["path"])
        begin = int(query.get("cursor", "0"))
        page = min(hub.page, int(query.get("limit", hub.page)))
        headers = {"Content-Type": "application/json"}
        if begin + page < len(entries):
            more = urllib.parse.urlencode({**query, "cursor": begin + page})
            target = self.path.partition("?")[0]
            headers["Link"] = f'<{hub.link_to or hub.endpoint}{target}?{more}>; rel="next"'
        self.answer(200, json.dumps(entries[begin:begin + page]).encode(), headers)

    def serve_file(self, hub, name, revision, path, is_cache):
        if self.moved(hub, name):
            return
        repository = self.repository(hub, name, is_content=not is_cache)
        commit = self.commit(repository, revision)
        data = repository.commits[commit].get(path)
        if data is None:
            raise Refusal(404, "EntryNotFound", "Entry not found")
        said = {"X-Repo-Commit": commit}
        if is_cache:
            self.answer_file(data, blob_id(data), said)
        elif is_lfs(path):
            digest = hashlib.sha256(data).hexdigest()
            self.answer(302, b"", {**said, "X-Linked-Size": str(len(data)), "X-Linked-Etag": f'"{digest}"',
                                   "Location": f"{hub.storage}/{digest}?signed=yes"})
        else:
            target = urllib.parse.quote(f"/api/resolve-cache/datasets/{name}/{commit}/{path}")
            self.answer(307, b"", {**said, "Location": target})


def start(**how):
    return Hub(**how)
