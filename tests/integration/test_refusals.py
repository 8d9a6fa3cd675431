#!/usr/bin/env python3
"""What is asked for wrongly is refused with the field and what is allowed; nobody else notices."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (DAEMON, DLCTL, HandClient, Table, attach_body, case, check_sequence, contains, equal, field, main, read_arguments,
                     request)

# Options that reach the daemon (or are stopped on the way): (options, words that the message must have).
WRONG = [
    ({"dataset": "nothing"}, ("nothing", "d")),
    ({"dataset": ""}, ("dataset",)),
    ({"dataset": "x" * 500}, ("dataset",)),
    ({"world": 2, "rank": 2}, ("rank", "2")),
    ({"world": 2, "rank": 4000000000}, ("rank",)),
    ({"world": 0}, ("world",)),
    ({"world": 10**9}, ("world", "1048576")),
    ({"world": 2**40}, ("world",)),
    ({"world": -1}, ("world",)),
    ({"rank": -1}, ("rank",)),
    ({"batch": 0}, ("batch",)),
    ({"batch": -5}, ("batch",)),
    ({"batch": 65537}, ("batch", "65536")),
    ({"batch": 2**33}, ("batch",)),
    ({"batch": "many"}, ("batch",)),
    ({"seed": "x"}, ("seed",)),
    ({"seed": 2**64}, ("seed",)),
    ({"first_epoch": 2**33}, ("epoch",)),
    ({"partition": "half"}, ("partition", "pad", "drop", "exact")),
    ({"dealing": "cards"}, ("dealing", "strided", "chunk", "batch")),
    ({"order": "alphabetical"}, ("order", "torch", "tdperm")),
    ({"first_position": 21}, ("position", "21", "20")),
    ({"first_position": -1}, ("first-position",)),
    ({"on_error": "ignore"}, ("on_error", "fail", "substitute", "skip")),
    ({"slots": 1}, ("slots", "2")),
    ({"slots": 65}, ("slots", "64")),
    ({"job": "j" * 500}, ("job",)),
    ({"batch": 4096, "slots": 64, "pipeline": "resize(1000) center_crop(1000)"}, ("memory_limit", "256.0 MiB")),
    ({"batch": 65536, "slots": 64, "pipeline": "resize(4000) center_crop(4000)"}, ("batch_size", "slots")),
]

# (pipeline, words of the message)
WRONG_PIPELINES = [
    ("no_such_step", ("no_such_step",)),
    ("decode no_such_step(3)", ("no_such_step",)),
    ("random_resized_crop", ("random_resized_crop",)),
    ("random_resized_crop()", ("random_resized_crop",)),
    ("random_resized_crop(0)", ("size",)),
    ("random_resized_crop(-4)", ("-4",)),
    ("random_resized_crop(wide)", ("wide",)),
    ("random_resized_crop(99999999999999999999)", ("size",)),
    ("random_resized_crop(224, scale=2:1)", ("scale",)),
    ("random_resized_crop(224, scale=0:0)", ("scale",)),
    ("random_resized_crop(224, ratio=-1:1)", ("ratio",)),
    ("random_resized_crop(224, colour=blue)", ("colour",)),
    ("random_resized_crop(224", (")",)),
    ("resize(256) center_crop(224) )", (")",)),
    ("hflip(1.5)", ("column 7", "p:", "1.5", "0 to 1")),
    ("hflip(nan)", ("nan",)),
    ("hflip(0.5, 0.5)", ("column 12", "no more arguments")),
    ("resize(256, 257, 258, 259)", ("column 13", "257")),
    ("center_crop(1000000)", ("column 13", "1000000")),
    ("color_jitter(hue=0.7)", ("column 18", "hue", "0.7", "0 to 0.5")),
    ("posterize(9)", ("column 11", "bits", "9", "0 to 8")),
    ("to(float32) hflip", ("column 13", "hflip", "normalize", "layout")),
    ("raw hflip(0.5)", ("raw",)),
    ("raw decode", ("raw",)),
    ("resize(10) " * 40, ("32",)),
    ("x" * 5000, ("pipeline",)),
    ("hflip(0.5)\x01", ("pipeline",)),
]


def refuse(daemon, options, words):
    """dlctl read with these options: status 1 or 2, a message with the words, no line. Returns the message."""
    options = dict(options)
    dataset = options.pop("dataset", "d")
    done = daemon.dlctl("--format", "json", "read", dataset, *read_arguments(options))
    equal((done.returncode in (1, 2), done.stdout), (True, ""), f"exit status {done.returncode}, output; {done.stderr}")
    contains(done.stderr, *words)
    return done.stderr


@case("every wrong option is refused, naming it and what is allowed")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 20)}, memory_limit="256MiB")
    steady = daemon.reader("d", job="steady", epochs=500, delay_ms=10)
    steady.wait_lines(1)
    rows = Table()
    for options, words in WRONG:
        with rows.row(options):
            refuse(daemon, options, words)
    rows.done()
    steady.process.terminate()
    steady.finish()
    check_sequence(daemon.read("d"), 20)


@case("every wrong pipeline is refused with the position in the text and what was expected")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 20)}, memory_limit="256MiB")
    rows = Table()
    for pipeline, words in WRONG_PIPELINES:
        with rows.row(pipeline):
            message = refuse(daemon, {"pipeline": pipeline}, words)
            equal(len(message) < 1200, True, f"a message that can be read, not {len(message)} bytes")
    rows.done()
    check_sequence(daemon.read("d", pipeline="decode"), 20)


@case("a wrong pipeline's message points at the place")
def _(box):
    daemon = box.daemon({"d": box.folder_of_pictures("d", 4)})
    message = refuse(daemon, {"pipeline": "decode hflip(0.5) wobble(3)"}, ("wobble",))
    contains(message, "column 19", "hflip", "random_resized_crop")


@case("the daemon checks by itself, without the library in between")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 20)}, memory_limit="256MiB")
    daemon.read("d")
    rows = Table()
    for terms, words in (({"rank": 5, "world": 5}, ("rank",)), ({"world": 0}, ("world",)),
                         ({"world": 10**9}, ("world",)), ({"batch": 0}, ("batch",)),
                         ({"batch": 2**32 - 1}, ("batch",)), ({"partition": "q"}, ("partition",)),
                         ({"order": ""}, ("order",)), ({"first_position": 21}, ("position", "20")),
                         ({"first_position": 2**64 - 1}, ("position",)), ({"first_step": 21}, ("step", "20")),
                         ({"first_position": 20, "first_step": 1}, ("step", "0 batches")),
                         ({"on_error": "q"}, ("on_error",)),
                         ({"max_errors": 3}, ("max_errors", "fail")),
                         ({"max_errors": -1, "on_error": "skip"}, ("max_errors", "-1")),
                         ({"max_errors": 1.5, "on_error": "skip"}, ("max_errors", "1.5", "share")),
                         ({"max_errors": float("nan"), "on_error": "skip"}, ("max_errors", "nan")),
                         ({"max_errors": float("inf"), "on_error": "substitute"}, ("max_errors", "inf")),
                         ({"pipeline": ""}, ("pipeline",)), ({"job": ""}, ("job",)),
                         ({"job": "two\nlines"}, ("job",)), ({"dataset": "\x1b[31m"}, ("dataset",))):
        client = HandClient(daemon.socket)
        with rows.row(terms):
            client.send(request("attach", attach_body(**dict({"dataset": "d"}, **terms))))
            reply = client.receive().decode("utf-8", "replace")
            equal(client.descriptors, [], "descriptors")
            contains(reply, *words)
        client.close()
    rows.done()
    for slots, epoch in ((1, 0), (1000, 0), (0, 2**40)):
        client = HandClient(daemon.socket)
        client.send(request("attach", attach_body("d") + field(13, epoch) + field(15, slots)))
        contains(client.receive().decode("utf-8", "replace"), "epoch" if epoch else "slots")
        client.close()
    check_sequence(daemon.read("d"), 20)


@case("dlctl's own usage: unknown commands and options end with 2, no daemon with 3, help with 0")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 2)})
    rows = Table()
    for arguments in (["nonsense"], ["status", "--nonsense"], ["read"], ["read", "d", "--nonsense"], [],
                      ["--format", "xml", "status"], ["order", "--nonsense"], ["jobs", "too", "many"], ["workers", "two"],
                      ["workers", "-1"], ["workers", "99999999999"], ["workers", "1", "2"], ["read", "d", "--max-errors", "few"],
                      ["plan"], ["plan", "d", "--cache", "much"]):
        with rows.row(arguments):
            done = daemon.dlctl(*arguments)
            equal((done.returncode, done.stdout), (2, ""), done.stderr)
            equal(done.stderr != "", True, "it says what is wrong")
    rows.done()
    for command in ("status", "datasets", "jobs", "diagnose", "errors", "workers", "stop", "order", "plan", "read"):
        done = daemon.dlctl(command, "--help")
        equal(done.returncode, 0, f"dlctl {command} --help")
        contains(done.stdout, command)
    equal(daemon.dlctl("--help").returncode, 0, "dlctl --help")
    for command in ([], ["status"], ["datasets"], ["errors"], ["metrics"], ["workers"], ["stop"], ["stage"], ["order"], ["plan"], ["read"], ["once"]):
        for line in daemon.dlctl(*command, "--help").stdout.splitlines():
            equal((len(line) <= 80, line), (True, line.rstrip()), f"{command}: lines fit into a terminal")
    contains(daemon.dlctl("--version").stdout, "0.")
    for command in (["status"], ["datasets"], ["jobs"], ["diagnose"], ["errors"], ["errors", "d"], ["metrics"], ["workers"], ["workers", "2"], ["plan", "d"], ["read", "d"]):
        done = subprocess.run([DLCTL, "--socket", box.path("nobody")] + command, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True, timeout=300)
        equal(done.returncode, 3, f"dlctl {command} without a daemon: {done.stderr}")
        contains(done.stderr, box.path("nobody"))


@case("a name that is nearly right is answered with the right one: datasets, formats, options, commands, keys")
def _(box):
    folder = box.folder_of_files("photos", 3)
    daemon = box.daemon({"photos": folder, "texts": box.folder_of_files("texts", 2)})
    rows = Table()
    for arguments, hint in ((["read", "photo"], 'there is no "photo" (did you mean "photos"?); the configuration has: photos, texts'),
                            (["datasets", "potos"], "photos"), (["look", "phtoos"], "photos"), (["errors", "Texts"], "texts"),
                            (["read", "photos + text"], "texts"), (["raed", "photos"], "read"), (["stats"], "status"),
                            (["--fromat", "json", "jobs"], "format"), (["read", "photos", "--bathc", "3"], "batch"),
                            (["read", "photos", "--pipeline", "resiez(3)"], "resize"),
                            (["read", "photos", "--pipeline", "imgae: hflip"], "image"),
                            (["read", "photos", "--order", "trch"], "torch"), (["read", "photos", "--on-error", "skp"], "skip"),
                            (["read", "photos", "--dealing", "stride"], "strided"), (["read", "photos", "--partition", "dorp"], "drop"),
                            (["read", "photos", "--sampler", "weigthed(label)"], "weighted"),
                            (["order", "--samples", "3", "--dealing", "stride"], "strided"),
                            (["order", "--samples", "3", "--order", "tdprm"], "tdperm")):
        with rows.row(arguments):
            done = daemon.dlctl(*arguments)
            equal(done.returncode != 0, True, done.stderr)
            contains(done.stderr, hint if "did you mean" in hint else f'(did you mean "{hint}"?)')
    for text, hint in ((f'slot = "3"\ndataset "d" {{ path = "{folder}" }}', "slots"),
                       (f'dataset "d" {{ path = "{folder}"\nformt = "auto" }}', "format"),
                       (f'dateset "d" {{ path = "{folder}" }}', "dataset"),
                       (f'log_level = "warn"\ndataset "d" {{ path = "{folder}" }}', "warning"),
                       (f'dataset "d" {{ path = "{folder}"\nformat = "webdatset" }}', "webdataset")):
        with rows.row(text):
            with open(box.path("wrong.conf"), "w") as file:
                file.write(text + "\n")
            done = subprocess.run([DAEMON, "--check-config", "-c", box.path("wrong.conf")], check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=300)
            equal(done.returncode != 0, True, done.stderr)
            contains(done.stderr, f'(did you mean "{hint}"?)')
    rows.done()


main()
