"""Prometheus' text as a strict reader takes it, and Debian's own promtool and prometheus.

They are used if they are installed; else their package (packages.list, tag metrics) is fetched and unpacked below build/."""
import glob
import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from harness import Skip, patience, within

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
STORE = os.path.join(ROOT, "build", "prometheus")

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
LINE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9.e+-]+|\+Inf|NaN)")
HEAD = re.compile(rf"# (HELP|TYPE) ({NAME}) (.*)")


def program(name):
    """The path of "promtool" or "prometheus"."""
    found = shutil.which(name)
    unpacked = os.path.join(STORE, "usr", "bin", name)
    if found or os.access(unpacked, os.X_OK):
        return found or unpacked
    beside = STORE + f".{os.getpid()}"
    shutil.rmtree(beside, ignore_errors=True)
    os.makedirs(beside)
    try:
        for command in (["download", "prometheus"], ["update"], ["download", "prometheus"]):
            apt = subprocess.run(["apt-get", "-q"] + command, cwd=beside, check=False, timeout=patience(120),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if apt.returncode == 0 and command[0] == "download":
                break
        subprocess.run(["dpkg", "-x", glob.glob(os.path.join(beside, "*.deb"))[0], beside], check=True, timeout=patience(60))
        os.rename(beside, STORE)
    except (OSError, subprocess.SubprocessError, IndexError):
        if not os.access(unpacked, os.X_OK):  # unless another test was faster
            raise Skip("Debian's package prometheus is not available") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return unpacked


class Prometheus:
    """Debian's, which scrapes one page of the loopback every fifth of a second, and keeps what it saw below the box."""

    def __init__(self, box, target, honor_labels=True, rules=()):
        self.folder = box.path("prometheus")
        os.makedirs(self.folder)
        config = os.path.join(self.folder, "prometheus.yml")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "200ms"},
                       "rule_files": list(rules),
                       "scrape_configs": [{"job_name": "dataloaderd", "honor_labels": honor_labels,
                                           "static_configs": [{"targets": [target]}]}]}, file)  # JSON is YAML, too
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = box.start([program("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={self.folder}/data",
                                      "--web.listen-address=127.0.0.1:0"], stdout=log, stderr=log)
        self.address = within(60, self._address, "Prometheus listens")
        within(60, self._is_ready, "Prometheus is ready")

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    def _address(self):
        found = re.search(r'msg="?[Ll]istening on"? .*address=(127\.0\.0\.1:[1-9]\d*)', self.log())
        if self.process.poll() is not None:
            raise AssertionError(self.log())
        return found and found[1]

    def _is_ready(self):
        try:
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=patience(30)) as reply:
                return reply.status == 200
        except urllib.error.HTTPError:
            return False

    def ask(self, path, **query):
        url = f"http://{self.address}/api/v1/{path}?" + urllib.parse.urlencode(query)
        try:
            with urllib.request.urlopen(url, timeout=patience(30)) as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {query}: {error.read().decode()}") from None

    def query(self, expression):
        """The vector that it makes: {labels: value}."""
        return {tuple(sorted(one["metric"].items())): float(one["value"][1])
                for one in self.ask("query", query=expression)["result"]}


def promtool(*arguments, text=None):
    """Runs it; returns its output. It must be content."""
    done = subprocess.run([program("promtool")] + list(arguments), input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, timeout=patience(60), check=False)
    if done.returncode != 0:
        raise AssertionError(f"promtool {' '.join(arguments)} ended with {done.returncode}: {done.stdout}")
    return done.stdout


class Metrics:
    """A text, read line by line: anything that the format does not have is an error."""

    def __init__(self, text):
        self.help, self.kind, self.values = {}, {}, {}
        family = None
        if not text.endswith("\n"):
            raise AssertionError(f"the last line has no end: {text[-200:]!r}")
        for line in text[:-1].split("\n"):
            head = HEAD.fullmatch(line)
            if head and head[1] == "HELP":
                family = head[2]
                if family in self.help:
                    raise AssertionError(f"{family} comes twice")
                self.help[family] = head[3]
            elif head:
                if head[2] != family or head[3] not in ("counter", "gauge", "histogram"):
                    raise AssertionError(line)
                self.kind[family] = head[3]
            else:
                self._take(line, family)

    def _take(self, line, family):
        match = LINE.fullmatch(line)
        if not match:
            raise AssertionError(f"not a line of the format: {line!r}")
        name = re.sub("_(bucket|sum|count)$", "", match[1]) if self.kind[family] == "histogram" else match[1]
        key = (match[1], match[2] or "")
        if name != family or key in self.values:
            raise AssertionError(f"{line!r} after the head of {family}, or twice")
        self.values[key] = float(match[3])

    def one(self, name, *labels):
        """The value of the one line with this name and all of these parts of labels."""
        found = [value for (found, text), value in self.values.items() if found == name and all(part in text for part in labels)]
        if len(found) != 1:
            raise AssertionError(f"{len(found)} lines of {name} with {labels}: {sorted(self.values)}")
        return found[0]

    def counters(self):
        """All that must never decrease."""
        return {key: value for key, value in self.values.items()
                if self.kind.get(key[0]) == "counter" or key[0].endswith(("_bucket", "_sum", "_count"))}
