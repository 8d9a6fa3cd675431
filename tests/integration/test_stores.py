#!/usr/bin/env python3
"""Object stores: patterns of keys, regions, clocks, and the keys that a user's own tools have."""
import contextlib
import http.server
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import faulty_server
from harness import Table, case, equal, main
from surveys import plan, refused, store, write

LISTING = ("<ListBucketResult><IsTruncated>false</IsTruncated>"
           "<Contents><Key>a</Key><Size>1</Size><ETag>&quot;e&quot;</ETag></Contents></ListBucketResult>")


@case("braces and wildcards choose among a bucket's keys, and among a web server's files; each name must be there")
def _(box):
    shards = [f"wds/train-{number:03d}.tar" for number in range(12)]
    names = [*shards, "wds/val/0/x.parquet", "wds/val/y.parquet", "wds/val/.z.parquet", "wds/train-x.idx"]
    rows = [("wds/train-{000..011}.tar", [name[4:] for name in shards]), ("wds/train-*.tar", [name[4:] for name in shards]),
            ("wds/train-00{1,3}.tar", ["train-001.tar", "train-003.tar"]), ("wds/**/*.parquet", ["val/0/x.parquet", "val/y.parquet"]),
            ("wds/{val,none*}/**", ["0/x.parquet"]), ("*/train-?.idx", ["wds/train-x.idx"])]
    table = Table()
    with contextlib.ExitStack() as stack:
        server = store(box, 5)
        stack.callback(server.stop)
        for name in names:
            server.put("shards", name, name.encode())
        options = {"credentials": server.credentials(box.path("keys")), "endpoint": server.endpoint}
        for pattern, expected in rows:
            for scheme in ("s3", "gs"):
                with table.row((scheme, pattern)):
                    if "none" in pattern:
                        refused(f"{scheme}://shards/{pattern}", says=["ENOENT", "none*", "nothing matches"], **options)
                        continue
                    found = plan(f"{scheme}://shards/{pattern}", **options).files
                    equal(list(found), expected, "files")
                    equal({entry["urls"][0].partition(":")[0] for entry in found.values()}, {scheme}, "schemes")
        with table.row("a key that is not there"):
            refused("s3://shards/wds/train-{011..012}.tar", says=["ENOENT", '"wds/train-012.tar"'], **options)
        n_before = server.n_requests()
        plan("s3://shards/wds/train-00{1,2}.tar", **options)
        equal(server.n_requests() - n_before, 2, "requests for ten keys that begin so")
        for name in names:
            write(box, name, name.encode())
        web = stack.enter_context(faulty_server.start(box.path("origin")))
        with table.row("a web server"):
            found = plan(web.base + "/wds/train-{000..011}.tar?x={1}").files
            equal({name: entry["size"] for name, entry in found.items()}, {name[4:]: len(name) for name in shards}, "sizes")
            equal(found["train-003.tar"]["urls"], [web.base + "/wds/train-003.tar?x={1}"], "URL")
            refused(web.base + "/wds/train-{011..012}.tar", says=["ENOENT", "train-012.tar"])
    table.done()


@case("a user's own settings of AWS are used as his tools use them, and what cannot be used is told where a store is asked")
def _(box):
    table = Table()
    with contextlib.ExitStack() as stack:
        server = store(box, 5)
        stack.callback(server.stop)
        server.put("photos", "a.jpg", b"123")
        keys = f"aws_access_key_id = {server.access_key}\naws_secret_access_key = {server.secret_key}\n"
        wrong = "aws_access_key_id = AKIAX\naws_secret_access_key = hush\n"
        here = f"region = {server.region}\nendpoint_url = {server.endpoint}\n"
        environment = {"AWS_ACCESS_KEY_ID": server.access_key, "AWS_SECRET_ACCESS_KEY": server.secret_key,
                       "AWS_ENDPOINT_URL_S3": server.endpoint, "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_REGION": server.region}
        for number, (what, credentials, config, user, says) in enumerate((
                ("environment", None, None, environment, None),
                ("files", f"[default]\n{keys}", f"[default]\n{here}", {}, None),
                ("a profile", f"[default]\n{wrong}[mine]\n{keys}", f"[profile mine]\n{here}", {"AWS_PROFILE": "mine"}, None),
                ("environment before files", f"[default]\n{wrong}", "[default]\nregion = nowhere\n", environment, None),
                ("no such profile", f"[default]\n{keys}", None, {"AWS_PROFILE": "none"}, ["EINVAL", 'AWS_PROFILE is "none"']),
                ("single sign-on", None, f"[default]\nsso_session = x\n{here}", {},
                 ["EOPNOTSUPP", "sso_session, which is not supported", "aws configure export-credentials"]),
                ("wrong keys", f"[default]\n{wrong}", f"[default]\n{here}", {}, ["EACCES", "SignatureDoesNotMatch"]))):
            home = box.path(f"home{number}")
            for name, text in (("credentials", credentials), ("config", config)):
                os.makedirs(home + "/.aws", exist_ok=True)
                if text:
                    with open(os.open(f"{home}/.aws/{name}", os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
                        file.write(text)
            with table.row(what):
                if says:
                    if "hush" in refused("s3://photos", user={"HOME": home, **user}, says=says).words:
                        raise AssertionError("the key is told")
                    write(box, "w", b"web")
                    equal(len(plan("file://" + box.path("origin", "w"), user={"HOME": home, **user}).files), 1, "other origins")
                else:
                    equal(list(plan("s3://photos", user={"HOME": home, **user}).files), ["a.jpg"], "files")
        with table.row("files that others may read"):
            os.chmod(box.path("home1", ".aws", "credentials"), 0o644)
            refused("s3://photos", user={"HOME": box.path("home1")}, says=["EACCES", "home1/.aws/credentials", "chmod 600"])
        with table.row("the configuration's file before the user's"):
            os.chmod(box.path("home1", ".aws", "credentials"), 0o644)
            equal(len(plan("s3://photos", credentials=server.credentials(box.path("keys")), endpoint=server.endpoint,
                           user={"HOME": box.path("home1")}).files), 1, "files")
    table.done()


@contextlib.contextmanager
def regional_store(region, status, headers, body):
    """A store whose one bucket is in this region: who signs for another is told so. Yields endpoint and what was asked."""
    class Pages(http.server.BaseHTTPRequestHandler):
        asked = []

        def do_GET(self):
            Pages.asked.append(self.headers.get("Authorization", "").partition("/s3/")[0].rpartition("/")[2])
            if Pages.asked[-1] != region:
                self.answer(status, body.encode(), headers)
            else:
                self.answer(200, LISTING.encode(), {})

        def answer(self, status, body, headers):
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", Pages.asked
    finally:
        server.shutdown()
        server.server_close()


@case("a bucket of another region is asked there at once; a wrong clock is told with both times; Google gets its own keys alone")
def _(box):
    user = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "hush"}
    table = Table()
    malformed = "<Error><Code>AuthorizationHeaderMalformed</Code><Message>m</Message><Region>eu-west-1</Region></Error>"
    for status, headers, body in ((301, {"x-amz-bucket-region": "eu-west-1"}, ""), (400, {}, malformed),
                                  (307, {"x-amz-bucket-region": "eu-west-1", "Location": "http://127.0.0.1:9/"}, "")):
        with table.row(status), regional_store("eu-west-1", status, headers, body) as (endpoint, asked):
            equal(list(plan("s3://bucket", endpoint=endpoint, user=user).files), ["a"], "files")
            equal(asked, ["us-east-1", "eu-west-1"], "regions")
    with table.row("a region that is none either"), \
            regional_store("nowhere", 301, {"x-amz-bucket-region": "eu-west-1"}, "") as (endpoint, asked):
        refused("s3://bucket", endpoint=endpoint, user=user, n_tries=8, says=["301", "in region eu-west-1 and was asked for in eu-west-1"])
        equal(asked, ["us-east-1", "eu-west-1"], "regions")
    with table.row("no region's name"), regional_store("x", 301, {"x-amz-bucket-region": "../evil host"}, "") as (endpoint, asked):
        refused("s3://bucket", endpoint=endpoint, user=user, says=["301"])
        equal(asked, ["us-east-1"], "regions")
    with table.row("elsewhere"), regional_store("x", 307, {"Location": "http://127.0.0.1:9/"}, "") as (endpoint, asked):
        refused("s3://bucket", endpoint=endpoint, user=user, says=["307", "redirects elsewhere", "set its endpoint"])
    skewed = ("<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large.</Message>"
              "<RequestTime>20261129T192232Z</RequestTime><ServerTime>2026-11-29T18:00:00Z</ServerTime></Error>")
    with table.row("clocks"), regional_store("none", 403, {}, skewed) as (endpoint, asked):
        refused("s3://bucket", endpoint=endpoint, user=user,
                says=["EACCES", "clock says 2026-11-29T19:22:32Z", "store's 2026-11-29T18:00:00Z", "set this machine's clock"])
    with table.row("without keys"), regional_store("none", 403, {}, "<Error><Code>AccessDenied</Code></Error>") as (endpoint, asked):
        refused("s3://bucket", endpoint=endpoint, says=["EACCES", "asked without keys", "AWS_ACCESS_KEY_ID", "~/.aws/credentials"])
        refused("gs://bucket", endpoint=endpoint, says=["EACCES", "asked without keys", "HMAC keys"])
    for key, scope in (("AKIAX", ""), ("GOOG1EX", "auto")):
        with table.row(("at Google", key)), regional_store(scope, 403, {}, "") as (endpoint, asked):
            google = endpoint.replace("127.0.0.1", "storage.googleapis.com.localhost")
            equal(list(plan("gs://bucket", endpoint=google, user={**user, "AWS_ACCESS_KEY_ID": key}).files), ["a"], "files")
            equal(asked, [scope], "scopes of signatures")
    table.done()


main()
