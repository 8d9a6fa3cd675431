#!/usr/bin/env python3
"""What Prometheus reads of the daemon: its text, who sees what, and that no counter goes backwards."""
import json
import os
import re
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import DLCTL, VARIANT, HandClient, Skip, Table, case, contains, equal, field, fields_of, main, patience, request, samples_of, within, write
from pages import block
from prometheus import Metrics, Prometheus, promtool
from web import Web

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DOCS = os.path.join(ROOT, "docs")
JOB = ('dataset="d"', 'job="train"')
RANK = JOB + ('rank="0"',)


def look(daemon):
    done = daemon.dlctl("metrics")
    equal((done.returncode, done.stderr), (0, ""), "dlctl metrics")
    return Metrics(done.stdout)


def attached(box, daemon, name, **terms):
    client = HandClient(daemon.socket)
    box.cleanups.append(client.close)
    client.attach(name, batch=2, **terms)
    return client


@case("a job, its stages and its rank have their lines, counters only grow, and all goes when the job ends")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 24, width=60, height=40)})
    reader = daemon.reader("d", job="train", batch=4, epochs=100000, delay_ms=5, pipeline="resize(64) color_jitter(0.4)")
    reader.wait_lines(40)
    first = look(daemon)
    equal(first.one("dataloaderd_dataset_samples", 'dataset="d"'), 24, "samples of the dataset")
    equal(first.one("dataloaderd_dataset_ready", 'dataset="d"'), 1, "ready")
    equal((first.one("dataloaderd_job_ranks", *JOB), first.one("dataloaderd_job_world_size", *JOB)), (1, 1), "ranks")
    for stage in ("decode", "color_jitter", "resize"):
        assert first.one("dataloaderd_stage_cpu_seconds_total", f'stage="{stage}"', *JOB) > 0, stage
    for name in ("samples_total", "client_batches_total", "client_busy_seconds_total", "ring_slots", "ring_bytes"):
        assert first.one("dataloaderd_" + name, *RANK) > 0, name
    for name in ("decoded_samples_total", "read_bytes_total", "reads_total", "worker_seconds_total"):
        assert first.one("dataloaderd_" + name, *JOB) > 0, name
    equal(first.one("dataloaderd_jobs"), 1, "jobs")
    assert first.one("process_resident_memory_bytes") > 1 << 20 and first.one("process_open_fds") > 5
    reader.wait_lines(120)
    later = look(daemon)
    for key, value in first.counters().items():
        assert later.values[key] >= value, (key, value, later.values[key])
    assert later.one("dataloaderd_samples_total", *RANK) > first.one("dataloaderd_samples_total", *RANK)
    batches = later.one("dataloaderd_client_batches_total", *RANK)
    equal(later.one("dataloaderd_client_next_seconds_count", *RANK), batches - 1, "batches in the histogram")
    equal(later.one("dataloaderd_client_next_seconds_bucket", 'le="+Inf"', *RANK), batches - 1, "the last bucket")
    reader.process.kill()
    within(10, lambda: look(daemon).one("dataloaderd_jobs") == 0, "the job has ended")
    end = look(daemon)
    equal([key for key in end.values if "job=" in key[1]], [], "lines of a job that has ended")
    for key, value in later.counters().items():
        assert "job=" in key[1] or end.values[key] >= value, (key, value)


@case("what is counted for the node never decreases, while workers and readers come and go and the configuration is read again")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 24, width=60, height=40)}, workers=4)
    before = look(daemon)
    for number in range(6):
        reader = daemon.reader("d", job=f"train{number}", batch=4, epochs=100000, pipeline="resize(64)")
        reader.wait_lines(80)
        daemon.dlctl("workers", 1 + number % 4)
        if number % 2:
            daemon.signal(signal.SIGHUP)
        if number % 3:
            reader.process.kill()
        now = look(daemon)
        for key, value in before.counters().items():
            assert now.values.get(key, value) >= value and ("job=" in key[1] or key in now.values), (key, value, now.values.get(key))
        before = now
    assert before.one("dataloaderd_node_worker_cpu_seconds_total") > 0 and before.one("dataloaderd_node_samples_total") >= 480


@case("damaged samples are counted: for the node each time, for the job and in the ledger once")
def _(box):
    source = box.folder_of_pictures("d", 24)
    for number in (3, 20):
        write(samples_of(source)[number][0], b"no picture")
    daemon = box.daemon({"d": source})
    daemon.read("d", on_error="skip", epochs=2, pipeline="resize(8)", job="train")
    reader = daemon.reader("d", on_error="skip", epochs=100000, delay_ms=2, pipeline="resize(8)", job="later")
    reader.wait_lines(100)
    seen = look(daemon)
    assert seen.one("dataloaderd_node_damaged_samples_total") >= 2 + 4 and seen.one("dataloaderd_node_skipped_samples_total") >= 4
    equal(seen.one("dataloaderd_dataset_damaged_samples", 'dataset="d"'), 2, "entries of the ledger")
    equal(seen.one("dataloaderd_damaged_samples_total", 'job="later"'), 2, "of the job")
    assert seen.one("dataloaderd_skipped_samples_total", 'job="later"') >= 2


@case("promtool is content, also with names that are hard to write")
def _(box):
    names = ['quo"te', "back\\slash", "ümläut", "} 1 #"]
    daemon = box.daemon({"ümläut": box.folder_of_files("d", 8)})
    for name in names:
        attached(box, daemon, "ümläut", job=name)
    text = daemon.dlctl("metrics").stdout
    contains(text, 'dataset="ümläut",job="quo\\"te"', 'job="back\\\\slash"', 'job="} 1 #"')
    equal(len({key for key in Metrics(text).values if key[0] == "dataloaderd_ring_slots"}), len(names), "ranks")
    equal(promtool("check", "metrics", text=text), "", "what promtool says")


@case("docs/metrics.md has a row for each metric, with its kind, its labels and what it is")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 8)})
    reader = daemon.reader("d", job="train", batch=2, epochs=100000, delay_ms=5, pipeline="resize(8)")
    reader.wait_lines(8)
    metrics = look(daemon)
    with open(os.path.join(DOCS, "metrics.md"), encoding="utf-8") as file:
        rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \| (.*) \|$", file.read(), re.M)
    equal({name: (kind, text) for name, kind, _, text in rows},
          {name: (metrics.kind[name], metrics.help[name]) for name in metrics.help}, "rows of docs/metrics.md")
    labels = {name: set(re.findall(r"`(\w+)`", text)) for name, _, text, _ in rows}
    for (name, text) in metrics.values:
        name = re.sub("_(bucket|sum|count)$", "", name) if name not in labels else name
        equal(set(re.findall(r'(\w+)="', text)) - {"le"}, labels[name], f"labels of {name}")


@case("a stranger sees the node and what he may use, and no job or process of others; root sees all")
def _(box):
    if os.geteuid() != 0:
        raise Skip("needs root, to be another user")
    os.chmod(box.folder, 0o755)
    daemon = box.daemon({"d": box.folder_of_files("d", 4)}, socket_mode="0666")
    os.chmod(daemon.folder, 0o755)
    attached(box, daemon, "d", job="train")
    stranger = subprocess.run(["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", DLCTL, "--socket", daemon.socket,
                               "metrics"], stdout=subprocess.PIPE, universal_newlines=True, timeout=patience(30), check=True)
    seen = Metrics(stranger.stdout)
    equal([key for key in seen.values if "job=" in key[1]], [], "jobs that a stranger sees")
    equal((seen.one("dataloaderd_jobs"), seen.one("dataloaderd_dataset_ready", 'dataset="d"')), (1, 1), "what he sees")
    equal(look(daemon).one("dataloaderd_ring_slots", 'job="train"', 'user="root"') > 0, True, "root")


@case("a text of many packets is whole, also while ten ask at once and ranks come and go")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 40)}, memory_limit="2GiB")
    for rank in range(24):
        attached(box, daemon, "d", job="wide-" + "x" * 100, world=24, rank=rank)
    assert len(daemon.dlctl("metrics").stdout) > 100000
    failures = []

    def ask():
        for _ in range(5):
            try:
                equal(len([key for key in look(daemon).values if key[0] == "dataloaderd_ring_slots" and "wide" in key[1]]), 24, "ranks")
            except AssertionError as error:
                failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    for number in range(5):
        attached(box, daemon, "d", job=f"other{number}").close()
    for thread in threads:
        thread.join(patience(120))
    equal(failures, [], "texts")


@case("a part of a text that is not this client's, or has no such byte, is refused, and nobody else notices")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 40)})
    for rank in range(16):
        attached(box, daemon, "d", job="wide", world=16, rank=rank)
    asks, other = HandClient(daemon.socket), HandClient(daemon.socket)
    box.cleanups += [asks.close, other.close]

    def ask(client, text, first):
        client.send(request("metrics", field(1, text) + field(2, first)))
        reply = fields_of(client.receive())
        body = fields_of(reply[44][0] if 44 in reply else reply[3][0])
        return {number: values[0] for number, values in body.items()}

    start = ask(asks, 0, 0)
    number, after = start[1], start[3]
    contains(start[2].decode(), "# HELP dataloaderd_build_info")
    rows = [(other, number, after, b"begin again"), (asks, number + 1, after, b"begin again"), (asks, number, 1 << 62, b"no such byte"),
            (asks, (1 << 64) - 1, 0, b"begin again")]
    for client, text, first, sentence in rows:
        contains(ask(client, text, first)[2].decode(), sentence.decode())
    part = ask(asks, number, after)
    while part.get(3):
        part = ask(asks, number, part[3])
    contains(part[2].decode(), "dataloaderd_client_next_seconds_count")
    contains(ask(asks, number, after)[2].decode(), "begin again")
    for _ in range(50):  # texts that nobody reads to their end
        ask(asks, 0, 0)
    contains(look(daemon).help["dataloaderd_jobs"], "Jobs")


@case("dlctl web serves the same text to scrapers; a daemon that is away or stands still is a 503, and the page goes on")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 8)})
    attached(box, daemon, "d", job="train")
    web = Web(box, daemon.socket)
    status, text, headers = web.get("/metrics")
    equal((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"), "the text")
    equal(Metrics(text).one("dataloaderd_job_ranks", 'job="train"'), 1, "ranks")
    equal(web.get("/metrics", "HEAD")[:2], (200, ""), "HEAD")
    daemon.signal(signal.SIGSTOP)
    for _ in range(100):
        equal(web.get("/metrics")[0], 503, "status of a daemon that stands still")
    equal(web.get("/")[0], 200, "the page")
    daemon.signal(signal.SIGCONT)
    within(20, lambda: web.get("/metrics")[0] == 200, "it is scraped again")
    daemon.kill()
    status, text, _ = web.get("/metrics")
    equal(status, 503, "status without a daemon")
    contains(text, daemon.socket)
    daemon.start()
    equal(web.get("/metrics")[0], 200, "status of the next daemon")


@case("10,000 scrapes leave dlctl web and the daemon as they were")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 8)})
    web = Web(box, daemon.socket)
    connection = web.connect()
    n_requests = 10000 if VARIANT == "release" else 1000

    def scrape(n):
        for _ in range(n):
            connection.request("GET", "/metrics")
            equal(len(connection.getresponse().read()) > 10000, True, "a text")

    scrape(n_requests // 2)
    before = web.n_descriptors(), web.resident_kib(), daemon.n_descriptors(), daemon.rss_kib()
    scrape(n_requests // 2)
    after = web.n_descriptors(), web.resident_kib(), daemon.n_descriptors(), daemon.rss_kib()
    connection.close()
    equal((after[0] - before[0], after[2] - before[2]), (0, 0), "descriptors")
    if VARIANT == "release":
        assert after[1] - before[1] < 1024 and after[3] - before[3] < 1024, (before, after)


@case("the real Prometheus scrapes it: the job's samples, their rate, and the histogram of next()")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 24, width=60, height=40)})
    daemon.reader("d", job="train", batch=4, epochs=1000000, delay_ms=5, pipeline="resize(64)").wait_lines(8)
    web = Web(box, daemon.socket)
    prometheus = Prometheus(box, f"127.0.0.1:{web.port}")
    samples = 'dataloaderd_samples_total{job="train",dataset="d",rank="0"}'
    within(60, lambda: prometheus.query(f"rate({samples}[5s]) > 0"), "a rate of the job's samples")
    equal(list(prometheus.query('up{job="dataloaderd"}').values()), [1], "up")
    (labels, n), = prometheus.query(samples).items()
    equal((n > 8, dict(labels)["__name__"]), (True, "dataloaderd_samples_total"), "the job's samples")
    within(60, lambda: prometheus.query('histogram_quantile(0.99, rate(dataloaderd_client_next_seconds_bucket[5s])) > 0'), "a quantile")
    equal(prometheus.ask("metadata", metric="dataloaderd_samples_total")["dataloaderd_samples_total"][0]["type"], "counter", "type")
    equal(re.findall("level=(?:warn|error).*", prometheus.log()), [], "what Prometheus complains about")


@case("the configuration of Prometheus in docs/metrics.md is well-formed")
def _(box):
    write(box.path("prometheus.yml"), block("docs/metrics.md", "scrape_configs:").encode())
    contains(promtool("check", "config", box.path("prometheus.yml")), "SUCCESS")


@case("the alert rules are well-formed, fire for made series that call for it, and stay silent for others")
def _(box):
    contains(promtool("check", "rules", os.path.join(DOCS, "metrics", "alerts.yml")), "SUCCESS")
    contains(promtool("test", "rules", os.path.join(ROOT, "tests", "vectors", "alerts.yml")), "SUCCESS")
    with open(os.path.join(DOCS, "metrics", "alerts.yml"), encoding="utf-8") as rules, \
            open(os.path.join(ROOT, "tests", "vectors", "alerts.yml"), encoding="utf-8") as tests:
        named, tried = (set(re.findall(r"alert(?:name)?: (\w+)", file.read())) for file in (rules, tests))
    equal(tried, named, "alerts that are tried")


def expressions():
    """(where, expression) of the dashboard, the rules and the page."""
    with open(os.path.join(DOCS, "metrics", "grafana.json"), encoding="utf-8") as file:
        board = json.load(file)
    equal(len({panel["id"] for panel in board["panels"]}), len(board["panels"]), "panels")
    for panel in board["panels"]:
        for target in panel["targets"]:
            text = target["expr"].replace("$__rate_interval", "1m").replace("$__range", "1h")
            yield panel["title"], re.sub(r"\$(instance|dataset|job)\b", ".*", text)
    for variable in board["templating"]["list"][1:]:
        yield variable["name"], re.fullmatch(r"label_values\((.*), \w+\)", variable["query"])[1].replace("$", "")
    with open(os.path.join(DOCS, "metrics", "alerts.yml"), encoding="utf-8") as file:
        for rule in re.findall(r"expr: (?:\|\n((?: {10}.*\n)+)|(.*)\n)", file.read()):
            yield "alerts", rule[0] or rule[1]
    with open(os.path.join(DOCS, "metrics.md"), encoding="utf-8") as file:
        for question, text in re.findall(r"^\| (.*\?) \| `(.*)` \|$", file.read(), re.M):
            yield question, text


@case("each expression of the dashboard, the alert rules and docs/metrics.md can be asked, and names metrics that there are")
def _(box):
    daemon = box.daemon({})
    known = look(daemon).help
    web = Web(box, daemon.socket)
    prometheus = Prometheus(box, f"127.0.0.1:{web.port}")
    found = list(expressions())
    assert len(found) > 40, found
    rows = Table()
    for where, text in found:
        with rows.row((where, text)):
            prometheus.query(text)
            names = set(re.findall(r"\b(?:dataloaderd|process)_\w+", text))
            equal({name for name in names if re.sub("_bucket$", "", name) not in known}, set(), "metrics that there are not")
    rows.done()


if __name__ == "__main__":
    main()
