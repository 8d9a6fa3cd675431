#!/usr/bin/env python3
"""The page of dlctl web in a real browser: what it shows, that nothing complains, and that names never become code."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import chromium
from failing_fs import FailingFs
from harness import DLCTL, HandClient, Skip, case, contains, equal, identity_pixels, main, patience, png, within, write
from private import Home
from tars import archive, web as web_tars
from web import Web

CODE = "<img src=x onerror=alert(1)>"


def browse(box, web, **options):
    if not chromium.PROGRAM:
        raise Skip("needs chromium (Debian: chromium)")
    browser = chromium.Browser(box.path(f"profile{len(box.cleanups)}"), **options)
    box.cleanups.append(browser.close)
    browser.open(web.url)
    return browser


def text_of(browser, selector):
    return browser.value(f"[...document.querySelectorAll({selector!r})].filter((e) => e.checkVisibility())"
                         ".map((e) => e.innerText).join('\\n')")


def shows(browser, selector, *parts):
    """Waits until what the page shows there has all parts; returns it."""
    def look():
        text = text_of(browser, selector)
        return text if all(part in text for part in parts) else None
    try:
        return within(20, look, f"{selector} shows {parts}")
    except AssertionError as error:
        raise AssertionError(f"{error}; it shows {text_of(browser, selector)!r}") from None


def attach(box, daemon, name, **terms):
    client = HandClient(daemon.socket)
    box.cleanups.append(client.close)
    client.attach(name, batch=4, **terms)
    return client


def document_user(web):
    return web.status()["user"]


def damaged_folder(box, n, end=f"{CODE}.png"):
    """n files, each second one damaged, whose names are code."""
    for number in range(n):
        data = png(6, 5, identity_pixels(number, 6, 5)) if number % 2 else b"\x89PNG\r\n\x1a\nbroken"
        write(box.path("damaged", "<b>a", f"{number:03d}{end}"), data)
    return box.path("damaged")


@case("jobs, ranks, datasets and damaged samples are shown; nothing complains, and nothing is asked of anybody else")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 60), CODE: damaged_folder(box, 60), "gone": box.path("nothing")})
    daemon.read(CODE, pipeline="decode()", batch=1, on_error="skip")
    for rank in range(6):
        attach(box, daemon, "d", job="train", world=8, rank=rank)
    attach(box, daemon, "d", job=CODE)
    web = Web(box, daemon.socket)
    browser = browse(box, web)
    card = shows(browser, '.job[aria-label="job train"]', "train", "d ·", "6 ranks of 8", "batch 4")
    equal(browser.value("document.querySelectorAll('.job[aria-label=\"job train\"] .ranks canvas').length"), 6, "timelines")
    contains(browser.value("document.querySelector('canvas').getAttribute('aria-label')"), "batches ready")
    contains(card, "rank 0", "rank 5", "4/4")
    shows(browser, "#verdicts", "train", CODE)
    shows(browser, "#dataset_table", CODE, box.path("damaged"), "failed", "No such file", "imagefolder")
    shows(browser, "#error_table", f"{CODE}.png", "image:")
    shows(browser, "#errors", "30")
    shows(browser, "#page_number", "1 to 20 of 30")
    shows(browser, "#state", "serving")
    shows(browser, "#facts", "Memory", "Ranks", "7")
    equal(browser.value("document.querySelectorAll('img, b:not(a b):not(.name b), iframe, object, embed').length"), 0, "elements made of names")
    equal(browser.value("document.scripts.length"), 1, "scripts")
    equal(browser.complaints(), [], "complaints")
    elsewhere = [url for url in browser.requested() if not url.startswith((web.url, "data:", "about:"))]
    equal(elsewhere, [], "requests to others")


@case("how long trainers wait, where the workers' time goes, and the past of a page that is opened late")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 60, width=64, height=48)})
    web = Web(box, daemon.socket)
    reader = daemon.reader("p", job="steady", batch=16, epochs=100000, delay_ms=100, pipeline="random_resized_crop(224) color_jitter(0.4,0.4,0.4)")
    reader.wait_lines(40)
    web.until(lambda it: len([second for second in it["seconds"] if second["jobs"]]) > 4, "seconds with the job")
    second = web.status()["seconds"][-1]
    job = second["jobs"][0]
    equal((job["name"], job["user"], len(job["ranks"][0])), ("steady", document_user(web), 7), "the job in a second")
    if job["stages"].get("color_jitter", 0) <= 0 or job["n_samples"] < 40 or second["worker_ns"] < job["worker_ns"] / 2:
        raise AssertionError(second)
    browser = browse(box, web)
    shows(browser, ".stages", "Where the workers", "decode", "color_jitter", "%")
    shows(browser, ".legend", "trainer waits", "trainer computes")
    shows(browser, ".job .verdict", "input-bound: the trainer waits for")
    shows(browser, ".job .advice", ".")  # it depends on what else runs on this machine
    browser.value("document.querySelectorAll('details').forEach((one) => one.open = true)")
    shows(browser, ".job details", "samples/s are taken; the trainer could take", "the workers could make", "bytes read", "MiB")
    shows(browser, "#counted", "samples", "Samples decoded or copied.", "worker cpu", "CPU time of workers")
    shows(browser, ".job .numbers", "Trainer waits", "%", "/s", "busy")
    equal(browser.complaints(), [], "complaints")
    browser.press("r")  # two minutes: a second is some pixels wide
    for what in (".ranks canvas", ".stages canvas"):
        drawn = (f"(() => {{ const c = document.querySelector('{what}'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                 "const colours = new Set(); for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255) colours.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);"
                 "return colours.size; })()")
        within(20, lambda: browser.value(drawn) > 1, f"areas of {what} beside its marks")


@case("a job that is served batches again is shown as confirming, and then as before")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 60)})
    daemon.reader("d", job="run", batch=2, epochs=100000, delay_ms=60).wait_lines(6)
    web = Web(box, daemon.socket)
    browser = browse(box, web)
    shows(browser, ".job", "run")
    with open(box.path("said"), "wb") as said:
        process = box.start([DLCTL, "--socket", daemon.socket, "diagnose", "run", "--seconds", "1", "--confirm"], stdout=said, stderr=said)
    shows(browser, ".job", "Confirming: ", "batches were served again", "its trainer goes on after that")
    equal(process.wait(patience(60)), 0, "exit status")
    within(20, lambda: "Confirming" not in text_of(browser, ".job"), "the verdict is shown again")


@case("a dataset that is being indexed shows how far it is")
def _(box):
    for i in range(8):
        archive(box.path("tars", f"{i}.tar"), [(f"{i}-{k}.txt", b"x" * 5000) for k in range(20)])
    disk = FailingFs(box, box.path("tars"))
    disk.hang("7.tar", ops="read")
    daemon = box.daemon({"t": web_tars(disk.path)}, wait=False)
    daemon.wait_ready()
    browser = browse(box, Web(box, daemon.socket))
    shows(browser, "#dataset_table", "indexing", "KiB of", "%")
    equal(browser.value("document.querySelector('#dataset_table [role=progressbar]').getAttribute('aria-valuenow') > 0"), True, "progress")
    disk.clear()
    shows(browser, "#dataset_table", "ready", "160")
    equal(text_of(browser, "#dataset_table .progress"), "", "progress afterwards")
    equal(browser.complaints(), [], "complaints")


@case("a dataset that is being staged shows how far it is, how fast, and for how long")
def _(box):
    folder = box.path("data", ".s.staged")
    now = {"dataset": "s", "phase": "transferring", "n_bytes_total": 40 << 30, "n_bytes_done": 10 << 30, "n_bytes_origin": 10 << 30,
           "n_files_total": 1000, "n_files_done": 250, "bytes_per_second": 100 << 20, "seconds_left": 307, "n_nodes": 4, "nodes": []}
    write(os.path.join(folder, "progress"), json.dumps(now).encode() + b"\n")
    daemon = box.daemon({"s": {"path": box.path("data", "s"), "origin": "https://example.invalid/d.jsonl"}})
    browser = browse(box, Web(box, daemon.socket))
    shows(browser, "#dataset_table", "staging", "transferring, 10.0 GiB of 40.0 GiB, 100 MiB/s, 5 min 07 s left")
    equal(browser.value("document.querySelector('#dataset_table [role=progressbar]').getAttribute('aria-valuenow')"), "25", "progress")
    equal(browser.complaints(), [], "complaints")


@case("characters that are not seen or turn the text around are written out, in names, files and messages")
def _(box):
    name = "a\u202eb\u200b\u3164\U000e0041"
    daemon = box.daemon({name: box.folder_of_files("d", 4), "e": damaged_folder(box, 2, "x\n\u2066.png")})
    daemon.read("e", pipeline="decode()", batch=1, on_error="skip")
    attach(box, daemon, name, job="j\u2028\u00e4\u05d0\u2764\ufe0f")
    browser = browse(box, Web(box, daemon.socket))
    shows(browser, "#job_list", "j\\u2028\u00e4\u05d0\u2764\ufe0f", "a\\u202eb\\u200b\\u3164\\u{e0041}")
    shows(browser, "#dataset_table", "a\\u202eb\\u200b\\u3164\\u{e0041}")
    shows(browser, "#error_table", "x\\n\\u2066.png")
    equal(browser.value("/[\\u200b\\u2028\\u202e\\u2066\\u3164]/.test(document.documentElement.outerHTML.replace(/<script>[^]*<.script>/, ''))"), False,
          "characters that are not seen")


@case("the private daemon is found as other commands find it, and the page says how it is used")
def _(box):
    home = Home(box)
    environment = dict(home.env)
    web = Web(box, None, environment=environment)
    browser = browse(box, web)
    shows(browser, "#away", "no daemon runs for this user", "loader with a path starts")
    folder = box.folder_of_files("d", 6)
    home.read(folder)
    shows(browser, "#state", "serving")
    shows(browser, "#foot", "private daemon", "private-")
    shows(browser, "#dataset_table", folder, "ready")
    text = shows(browser, "#no_job", f'Loader("{folder}"')
    equal("DATALOADERD_SOCKET" in text, False, "a socket that nobody must set")
    equal(web.status()["daemon"], "private", "the daemon")
    contains(web.get("/metrics")[1], "dataloaderd_build_info")


@case("keys: the next job, details, a filter, pages, light and dark, the range, the list of keys")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 60), "e": damaged_folder(box, 60)})
    daemon.read("e", pipeline="decode()", batch=1, on_error="skip")
    for job in ("one", "two"):
        attach(box, daemon, "d", job=job)
    browser = browse(box, Web(box, daemon.socket), scheme="dark")
    shows(browser, "#job_list", "one", "two")
    shows(browser, "#page_number", "1 to 20")
    focus = "(document.activeElement.getAttribute('aria-label') || document.activeElement.id || document.activeElement.tagName)"
    first, second = [name for name in browser.value("[...document.querySelectorAll('.job')].map((e) => e.getAttribute('aria-label'))")]
    for key, expected in (("j", first), ("j", second), ("k", first)):
        browser.press(key)
        equal(browser.value(focus), expected, f"focus after {key}")
    browser.press("o")
    shows(browser, ".job details", "Pipeline", "raw", "Processes", str(os.getpid()))
    browser.press("n")
    shows(browser, "#page_number", "21 to 30 of 30")
    browser.press("n")
    shows(browser, "#page_number", "21 to 30 of 30")
    browser.press("p")
    shows(browser, "#page_number", "1 to 20 of 30")
    equal(browser.value("document.documentElement.dataset.theme"), "dark", "theme of the system")
    for expected in ("light", "dark"):
        browser.press("t")
        equal(browser.value("document.documentElement.dataset.theme"), expected, "theme")
    browser.press("r")
    shows(browser, "#range", "2 minutes")
    browser.press("/")
    equal(browser.value(focus), "search", "focus after /")
    for key in "two":
        browser.press(key)
    within(20, lambda: "one" not in text_of(browser, "#job_list"), "the filter takes effect")
    shows(browser, "#job_list", "two")
    shows(browser, "#no_dataset", "No dataset contains this text")
    browser.press("Escape")
    shows(browser, "#job_list", "one", "two")
    browser.press("?")
    shows(browser, "#help", "next, previous job")
    browser.press("j")  # the list is in front: nothing moves behind it
    equal(browser.value("document.getElementById('help').open"), True, "the list of keys is open")
    equal(browser.complaints(), [], "complaints")


@case("without a job the page says how to begin; without the daemon it says that it is away, and comes back by itself")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 60)})
    web = Web(box, daemon.socket)
    browser = browse(box, web, width=390, height=800)
    shows(browser, "#no_job", "No job is attached", f"DATALOADERD_SOCKET={daemon.socket}", 'Loader("d"')
    shows(browser, "#no_error", "None has been met")
    equal(browser.value("document.documentElement.scrollWidth <= innerWidth"), True, "nothing is wider than a narrow window")
    daemon.stop()
    shows(browser, "#away", "The daemon has been away", "no daemon at", "continues by itself")
    shows(browser, "#state", "away")
    daemon.start()
    daemon.wait_ready()
    attach(box, daemon, "d", job="again")
    shows(browser, "#job_list", "again")
    within(20, lambda: browser.value("document.getElementById('away').hidden"), "the page sees that the daemon is back")
    shows(browser, "#state", "serving")
    equal(browser.complaints(), [], "complaints")
    port = web.port
    web.interrupt()
    shows(browser, "#away", "dlctl web has not answered")
    web = Web(box, daemon.socket, port=port)
    within(20, lambda: browser.value("document.getElementById('away').hidden"), "the page sees that its server is back")
    shows(browser, "#job_list", "again")


@case("the policy holds: a script or a style that got into the page would not run, and no other site may be asked")
def _(box):
    daemon = box.daemon({"d": box.folder_of_files("d", 4)})
    browser = browse(box, Web(box, daemon.socket))
    shows(browser, "#state", "serving")
    browser.value("document.body.insertAdjacentHTML('beforeend', '<img src=\"data:,\" onerror=\"window.ran = 1\">'),"
                  "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 2'})), 0")
    failed = browser.value("fetch('http://127.0.0.1:1/').then(() => 'asked', (error) => String(error))")
    contains(failed, "TypeError")
    said = within(20, lambda: [text for text in browser.complaints() if "Content Security Policy" in text][2:] and browser.complaints(),
                  "the policy refuses all three")
    contains("\n".join(said), "event handler", "script-src", "connect-src")
    equal(browser.value("window.ran"), None, "what ran")


main()
