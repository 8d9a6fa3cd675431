#!/usr/bin/env python3
"""Records a terminal: types lines into a shell on a pseudo-terminal, notes what the screen shows and when, and draws it as
one animated SVG, without a script and without anything from elsewhere.

    record.py --svg FILE [--title TEXT] [--size 100x30] SCRIPT

SCRIPT has a line for each command; it is typed as a person would, and the next one comes when the prompt is back. A line
`# wait N` leaves the screen as it is for N seconds. The clock in the corner is the run's own: where nothing happens for
longer than --idle seconds, the picture goes on, and the clock jumps. Programs that do not move pictures, and people who
asked theirs not to, show the last screen.
"""
import argparse
import html
import os
import sys
import time

from terminal import BACKGROUND, CELL_HEIGHT, CELL_WIDTH, FAINT, MARGIN, Terminal, run_of_cells

PROMPT = "$ "
KEY_SECONDS = 0.035
FRAME_SECONDS = 0.1      # changes that are nearer to each other are one frame
HOLD_SECONDS = 8         # how long the last screen stays before it begins again
BAR_HEIGHT = 22          # above the screen: what it is, and the clock


class Recording:
    """Frames, each (seconds of the run, rows of the screen)."""

    def __init__(self, command, environment, n_columns, n_rows):
        self.terminal = Terminal(command, n_columns, n_rows, environment)
        self.frames = []
        self.begin = time.monotonic()

    def look(self, seconds):
        """Takes frames for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.terminal.run(min(FRAME_SECONDS, max(until - time.monotonic(), 0)))
            self.note()

    def note(self):
        screen = self.terminal.screen
        rows = [tuple(row) for row in (screen.scrolled + screen.rows)[-screen.n_rows:]]
        if not self.frames or self.frames[-1][1] != rows:
            self.frames.append((time.monotonic() - self.begin, rows))

    def at_prompt(self):
        screen = self.terminal.screen
        text = "".join(character for character, _ in screen.rows[screen.row]).rstrip()
        return text.endswith(PROMPT.rstrip()) and screen.column == len(text) + 1

    def await_prompt(self, seconds):
        until = time.monotonic() + seconds
        while not self.at_prompt():
            if time.monotonic() > until or self.terminal.status is not None:
                raise SystemExit("record.py: the prompt does not come back:\n" + "\n".join(self.terminal.screen.lines()))
            self.look(FRAME_SECONDS)

    def type(self, line):
        for character in line:
            os.write(self.terminal.fd, character.encode())
            self.terminal.run(KEY_SECONDS)
            if character == " ":
                self.note()
        self.note()
        self.look(0.3)
        os.write(self.terminal.fd, b"\r")
        self.terminal.run(0.02)

    def play(self, lines, seconds=300):
        self.await_prompt(seconds)
        for line in lines:
            if line.startswith("# wait "):
                self.look(float(line.split()[2]))
                continue
            self.look(0.5)
            self.type(line)
            self.look(FRAME_SECONDS)
            self.await_prompt(seconds)
        self.look(0.5)


def shown_at(frames, idle):
    """When each frame is shown: as it was, with shorter pauses."""
    times, shown = [], 0.0
    for i, (when, _) in enumerate(frames):
        if i > 0:
            shown += min(when - frames[i - 1][0], idle)
        times.append(shown)
    return times


def stretches(frames):
    """{(row's number, row): [(first frame, frame after the last), ...]}, blank rows left out."""
    found = {}
    n_rows = len(frames[0][1])
    for number in range(n_rows):
        begin = 0
        for i in range(1, len(frames) + 1):
            if i == len(frames) or frames[i][1][number] != frames[begin][1][number]:
                row = frames[begin][1][number]
                if any(character.strip() for character, _ in row):
                    found.setdefault((number, row), []).append((begin, i))
                begin = i
    return found


def cells(number, row):
    """The text elements of a row."""
    out, column = [], 0
    while column < len(row):
        end = column
        while end < len(row) and row[end][1] == row[column][1]:
            end += 1
        text = "".join(character for character, _ in row[column:end])
        if text.strip():
            lead = len(text) - len(text.lstrip())
            out.append(run_of_cells(text[lead:], row[column][1], column + lead, number, end - column - lead))
        column = end
    return "".join(out)


class Drawing:
    """Elements that are seen in some stretches of time; equal stretches share their style."""

    def __init__(self, times, total):
        self.times, self.total = times, total
        self.names, self.styles, self.out = {}, [], []

    def percent(self, frame):
        return f"{100 * self.times[frame] / self.total:.3f}".rstrip("0").rstrip(".") + "%"

    def add(self, spans, content):
        n_frames = len(self.times)
        last = spans[-1][1] == n_frames
        if spans == [(0, n_frames)]:
            self.out.append(content)
            return
        key = tuple(spans)
        if key not in self.names:
            self.names[key] = f"k{len(self.names)}"
            steps = {} if spans[0][0] == 0 else {"0%": "hidden"}
            for begin, end in spans:
                steps[self.percent(begin)] = "visible"
                if end < n_frames:
                    steps[self.percent(end)] = "hidden"
            frames = "".join(f"{at}{{visibility:{what}}}" for at, what in steps.items())
            hidden = "" if last else "visibility:hidden;"
            name = self.names[key]
            self.styles.append(f".{name}{{{hidden}animation-name:{name}}}@keyframes {name}{{{frames}}}")
        self.out.append(f'<g class="a {self.names[key]}">{content}</g>')


def svg(recording, title, idle):
    frames = recording.frames
    screen = recording.terminal.screen
    times = shown_at(frames, idle)
    total = times[-1] + HOLD_SECONDS
    n_rows = max(n + 1 for n, _ in stretches(frames))
    width, height = screen.n_columns * CELL_WIDTH + 2 * MARGIN, n_rows * CELL_HEIGHT + 2 * MARGIN + BAR_HEIGHT
    drawing = Drawing(times, total)
    for second, span in clock(frames).items():
        drawing.add([span], f'<text x="{width - MARGIN:.0f}" y="{MARGIN + 8}" fill="{FAINT}" text-anchor="end">{second} s</text>')
    drawing.out.append(f'<text x="{MARGIN}" y="{MARGIN + 8}" fill="{FAINT}">{html.escape(title)}</text>')
    drawing.out.append(f'<g transform="translate(0 {BAR_HEIGHT})">')
    for (number, row), spans in stretches(frames).items():
        drawing.add(spans, cells(number, row))
    drawing.out.append("</g>")
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" font-size="14" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace">',
        f"<title>{html.escape(title)}</title>",
        f"<style>.a{{animation-duration:{total:.2f}s;animation-timing-function:step-end;animation-iteration-count:infinite}}",
        *drawing.styles, "@media (prefers-reduced-motion:reduce){.a{animation-name:none}}</style>",
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>', *drawing.out, "</svg>"]) + "\n"


def clock(frames):
    """{second of the run: (first frame, frame after the last)}"""
    found = {}
    for i, (when, _) in enumerate(frames):
        begin, _ = found.get(int(when), (i, i))
        found[int(when)] = (begin, i + 1)
    return found


SHELL = ["bash", "--noprofile", "--norc", "--noediting", "-i"]


def shell_environment(**more):
    """A shell that shows a short prompt and what is typed in bold, and else sends nothing but text."""
    return {"PATH": os.environ["PATH"], "TERM": "xterm", "LANG": "C.UTF-8", "INPUTRC": "/dev/null",
            "PS1": "\\e[32m" + PROMPT + "\\e[0m\\e[1m", "PS0": "\\e[0m",
            "VIRTUAL_ENV_DISABLE_PROMPT": "1", **more}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="100x30", help="columns x rows")
    parser.add_argument("--title", default="a terminal")
    parser.add_argument("--idle", type=float, default=1.5, help="seconds that a pause is shown at most")
    parser.add_argument("--svg", required=True)
    parser.add_argument("script")
    arguments = parser.parse_args()
    n_columns, n_rows = (int(number) for number in arguments.size.split("x"))
    with open(arguments.script, encoding="utf-8") as script:
        lines = script.read().splitlines()
    recording = Recording(SHELL, shell_environment(HOME=os.environ.get("HOME", "/")), n_columns, n_rows)
    recording.play(lines)
    recording.terminal.close()
    with open(arguments.svg, "w", encoding="utf-8") as file:
        file.write(svg(recording, arguments.title, arguments.idle))
    return 0


if __name__ == "__main__":
    sys.exit(main())
