#!/usr/bin/env python3
"""Pictures of `dlctl top`: a daemon that serves trainers, and tmux, whose screen is drawn as SVG.

    top_pictures.py FOLDER

makes FOLDER/top.svg, the table, and FOLDER/top-job.svg, all of a job; both are in the documentation (docs/pictures).
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import pyclient  # noqa: E402
from harness import DLCTL, Box, end, photos  # noqa: E402
from status_pictures import HEAVY, LIGHT, N_CLASSES, N_PHOTOS, TRAINER  # noqa: E402
from terminal import Screen, svg  # noqa: E402
from tmux import Tmux  # noqa: E402

SIZE = (116, 22)


def job(box, daemon, name, n_ranks, hold, pipeline):
    terms = ("photos", name, n_ranks, 32, hold, pipeline, "fail")
    box.start([sys.executable, "-c", pyclient.PRELUDE + TRAINER.format(terms, range(n_ranks))], env=pyclient.environment_of(daemon))


def draw(terminal, path, title):
    screen = Screen(*SIZE)
    screen.feed("\r\n".join(terminal.screen(styles=True).splitlines()).encode())
    with open(path, "w", encoding="utf-8") as file:
        file.write(svg(screen, title))
    print(terminal.screen())


def main():
    box = Box()
    try:
        daemon = box.daemon({"photos": photos(N_PHOTOS, N_CLASSES)}, memory_limit="2GiB")
        job(box, daemon, "resnet50", 4, 0.45, LIGHT)
        job(box, daemon, "finetune", 1, 0.05, HEAVY)
        terminal = Tmux(box, [DLCTL, "--socket", daemon.socket, "top", "--ranks"], SIZE)
        terminal.until("finetune", "the jobs")
        time.sleep(12)
        draw(terminal, os.path.join(sys.argv[1], "top.svg"), "dlctl top")
        terminal.keys("Home", "Enter")
        time.sleep(2)
        draw(terminal, os.path.join(sys.argv[1], "top-job.svg"), "dlctl top: all of a job")
    finally:
        for process in box.processes:
            end(process)
        for remark in box.close():
            print(remark)


if __name__ == "__main__":
    sys.exit(main())
