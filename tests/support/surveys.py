"""Surveys of origins in tests: what dataloaderd-stage would fetch, told by tests/tools/survey_origin.c.

    plan(url, credentials=path, user={"AWS_PROFILE": "mine"}).files["a/b.jpg"]["size"]     # options and environment
    refused(url, says=["ENOENT", "no such bucket"])
"""
import json
import os
import subprocess

import s3_server
from harness import BUILD, SANITIZER, Skip, contains, die_with_parent, equal, patience

TOOL = os.path.join(BUILD, "tools", "survey_origin")
# What is of whoever runs the test.
ENVIRONMENT = ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_FILE",
               "SSL_CERT_DIR", "CURL_CA_BUNDLE", "HOME", "XDG_CACHE_HOME")


def environment_of(user):
    """That of a user with these settings and no others."""
    kept = {name: value for name, value in os.environ.items()
            if name not in ENVIRONMENT and not name.startswith(("AWS_", "HF_", "HUGGING_FACE_"))}
    return {**kept, **(user or {})}


def write(box, path, data):
    path = box.path("origin", path) if isinstance(path, str) else os.path.join(os.fsencode(box.path("origin")), path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return data


class Plan:
    """What the tool printed: files by path in order, the digest, the progress told; or status, errno's name and reason."""

    def __init__(self, process):
        self.status = process.returncode
        self.words = process.stderr.decode()
        self.text = process.stdout.decode()
        self.files = {entry["path"]: entry for entry in map(json.loads, self.text.splitlines())}
        self.digest = self.words.rpartition("digest ")[2].strip()
        self.progress = [int(word.split()[1]) for word in self.words.splitlines() if word.startswith("progress")]


def survey(*words, seconds=60, user=None, **options):
    """`user`: what his environment has."""
    options = {"stall_s": 5, "n_tries": 2, **options}
    command = [TOOL, *(f"{name}={value}" for name, value in options.items()), *words]
    process = subprocess.run(command, env=environment_of(user), stdin=subprocess.DEVNULL, capture_output=True, check=False,
                             timeout=patience(seconds), preexec_fn=die_with_parent)
    if SANITIZER.search(process.stderr.decode(errors="replace")) or process.returncode not in (0, 1):
        raise AssertionError(f"status {process.returncode}: {process.stderr.decode(errors='replace')}")
    return Plan(process)


def plan(*words, **options):
    result = survey(*words, **options)
    if result.status != 0:
        raise AssertionError(f"no plan: {result.words}")
    return result


def refused(*words, says=(), **options):
    result = survey(*words, **options)
    equal((result.status, result.text), (1, ""), "a refusal")
    contains(result.words, *says)
    return result


def store(box, page):
    try:
        return s3_server.start(box.path("store"), page=page)
    except s3_server.Absent as reason:
        raise Skip(str(reason)) from None
