#!/usr/bin/env python3
"""Pictures of the status page: a daemon that serves trainers, and a browser without a window that looks at them.

    status_pictures.py FOLDER [SCENE]...

makes FOLDER/SCENE.png of the scenes below, of all of them if none is named. Those of the documentation are `status-page`
and `status-page-dark`; look at the others after a change of the page.
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import chromium  # noqa: E402
import pyclient  # noqa: E402
from harness import Box, end, photos, png, write  # noqa: E402
from web import Web  # noqa: E402

LIGHT = "random_resized_crop(224) hflip(0.5)"
HEAVY = "random_resized_crop(224) hflip(0.5) color_jitter(0.4,0.4,0.4,0.1) to(float32)"
N_PHOTOS, N_CLASSES = 800, 8
HOSTILE = "<b>bold\u202e<img src=x onerror=alert(1)>"

# A job: each rank is a thread, which holds a batch for `hold` seconds, more or less.
TRAINER = """
import random
def train(rank, dataset, job, world, batch, hold, pipeline, on_error):
    loader = dlclient.Loader(dataset, batch_size=batch, pipeline=pipeline, job=job, world_size=world, rank=rank, seed=0, on_error=on_error)
    for epoch in range(1 << 30):
        loader.set_epoch(epoch)
        for batch in loader:
            time.sleep(hold * random.uniform(0.7, 1.3))
            del batch
threads = [threading.Thread(target=train, args=(rank, *{0!r}), daemon=True) for rank in {1!r}]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


class Scene:
    """A daemon, its jobs, its page, and what looks at it."""

    def __init__(self, box, picture, datasets=None, **settings):
        self.box, self.path = box, picture
        settings.setdefault("memory_limit", "2GiB")
        self.daemon = box.daemon({"photos": photos(N_PHOTOS, N_CLASSES)} if datasets is None else datasets, **settings)
        self.web = Web(box, self.daemon.socket)

    def job(self, job, ranks=1, world=None, dataset="photos", batch=32, hold=0.3, pipeline=LIGHT, on_error="fail"):
        terms = (dataset, job, world or ranks, batch, hold, pipeline, on_error)
        return self.box.start([sys.executable, "-c", pyclient.PRELUDE + TRAINER.format(terms, range(ranks))],
                              env=pyclient.environment_of(self.daemon))

    def look(self, width=1200, height=900, scheme="light", script="", full=False):
        browser = chromium.Browser(self.box.path(f"profile{len(self.box.cleanups)}"), width, height, scheme)
        try:
            browser.open(self.web.url)
            time.sleep(2.5)
            if script:
                browser.value(script)
                time.sleep(0.5)
            browser.picture(self.path, full=full)
            shrink(self.path)
            for said in browser.complaints():
                print(f"{self.path}: {said}")
        finally:
            browser.close()


def shrink(path):
    """256 colours are enough, and half of the bytes; the rare ones are kept, which small areas have."""
    try:
        from PIL import Image
    except ImportError:
        return
    image = Image.open(path).convert("RGB")
    image.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)


def key(name):
    return f"document.dispatchEvent(new KeyboardEvent('keydown', {{key: {name!r}}})), 0"


def two_jobs(box, picture):
    """One that waits for data and one that does not, in the last two minutes."""
    scene = Scene(box, picture)
    scene.job("resnet50", 4, hold=0.45)
    time.sleep(40)
    scene.job("finetune", hold=0.01, pipeline=HEAVY)
    time.sleep(70)
    scene.look(height=1010, script=key("r"))


def sixteen_dark(box, picture):
    scene = Scene(box, picture)
    scene.job("resnet50", 16, batch=16, hold=0.6)
    time.sleep(45)
    scene.job("finetune", hold=0.001, pipeline=HEAVY)
    time.sleep(60)
    scene.look(height=800, scheme="dark", script="document.getElementById('search').value = 'resnet', " + key("r"))


def ranks(n, scheme="light", width=1200, **terms):
    def draw(box, picture):
        scene = Scene(box, picture)
        scene.job("train", n, batch=8, hold=0.2 * n / 2, **terms)
        time.sleep(25)
        scene.look(width, 1000, scheme, script=key("r"), full=True)
    return draw


def empty(box, picture):
    Scene(box, picture, {}).look(height=620)


def away(box, picture):
    scene = Scene(box, picture)
    process = scene.job("train", 2, hold=0.2)
    time.sleep(10)
    process.kill()
    scene.daemon.stop()
    time.sleep(6)
    scene.look(height=800, script=key("r"))


def back(box, picture):
    """It was away for ten seconds: the timelines have a gap."""
    scene = Scene(box, picture)
    for _ in range(2):
        process = scene.job("train", 2, hold=0.2)
        time.sleep(20)
        process.kill()
        scene.daemon.stop()
        time.sleep(10)
        scene.daemon.start()
        scene.daemon.wait_ready()
    scene.job("train", 2, hold=0.2)
    time.sleep(10)
    scene.look(height=800, script=key("r"))


def names(width, scheme="light"):
    """Long and hostile names, damaged samples, a dataset that failed, details unfolded."""
    def draw(box, picture):
        long = "a" * 90 + "_ä_日本語_🙂"
        folder = box.path("data-" + "long-" * 30, HOSTILE)
        for number in range(60):
            data = png(200, 150, os.urandom(200 * 150 * 3)) if number % 2 else b"\x89PNG\r\n\x1a\nbroken"
            write(os.path.join(folder, ["cat", "a class with spaces\n and a line"][number % 4 // 2],
                               f"{number:03d}{HOSTILE}{'x' * 120 if number == 2 else ''}.png"), data)
        scene = Scene(box, picture, {HOSTILE: folder, long: folder, "gone": box.path("nothing"), "photos": photos(N_PHOTOS, N_CLASSES)})
        scene.job(HOSTILE, 2, world=4, dataset=HOSTILE, batch=4, on_error="substitute", pipeline="decode() random_resized_crop(64)")
        scene.job(long, 1, dataset=long, batch=4, on_error="skip", pipeline="random_resized_crop(64)")
        time.sleep(12)
        scene.look(width, 1000, scheme, script=key("r") + ", [...document.querySelectorAll('details')].forEach((e) => e.open = true), 0",
                   full=True)
    return draw


SCENES = {
    "status-page": two_jobs, "status-page-dark": sixteen_dark, "one": ranks(1, "dark"), "eight": ranks(8), "sixty-four": ranks(64, "dark"),
    "narrow": ranks(16, "light", 400), "narrow-dark": ranks(1, "dark", 400), "empty": empty, "away": away, "back": back,
    "names": names(1200), "names-narrow": names(400, "dark"),
}


def main():
    folder, wanted = sys.argv[1], sys.argv[2:] or list(SCENES)
    os.makedirs(folder, exist_ok=True)
    for name in wanted:
        box = Box()
        try:
            SCENES[name](box, os.path.join(os.path.abspath(folder), f"{name}.png"))
            print(name, flush=True)
        finally:
            for process in box.processes:
                end(process)
            for remark in box.close():
                print(f"{name}: {remark}")


if __name__ == "__main__":
    main()
