#!/usr/bin/env python3
"""A small terminal: runs a program on a pseudo-terminal, knows what its screen looks like, and draws that as SVG.

    terminal.py [--size 100x30] [--at SECONDS] [--svg FILE] COMMAND...

prints the screen as text, or writes a picture: as it is after a number of seconds, or at the program's end. As a module it
is what tests of progress bars look through. It knows what such programs use: colours, moving up and down, clearing.
"""
import argparse
import codecs
import fcntl
import html
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
import unicodedata

COLOURS = {30: "#6e7681", 31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#56d4dd",
           37: "#c9d1d9"}
BACKGROUND, FOREGROUND, FAINT = "#0d1117", "#c9d1d9", "#6e7681"
PLAIN = (None, False, False, None)
CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.4, 18, 14


class Screen:
    """Rows of cells, each (character, style); style is (colour, bold, dim, background)."""

    def __init__(self, n_columns=80, n_rows=24):
        self.n_columns, self.n_rows = n_columns, n_rows
        self.rows = [self.blank_row() for _ in range(n_rows)]
        self.scrolled = []  # rows that left at the top
        self.row = self.column = 0
        self.style = PLAIN
        self.cursor_shown = True
        self.n_wrapped = 0  # lines that did not fit
        self.unknown = []   # sequences that it does not know
        self.left = ""      # of a sequence that is not all there yet
        self.decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")  # a read may end within a character

    def blank_row(self):
        return [(" ", PLAIN)] * self.n_columns

    def feed(self, data):
        text = self.left + self.decoder.decode(data)
        self.left = ""
        place = 0
        while place < len(text):
            if text[place] != "\x1b":
                self.put(text[place])
                place += 1
                continue
            found = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])").match(text, place)
            if not found:
                if len(text) - place < 12:
                    self.left = text[place:]
                    return
                self.unknown.append(text[place:place + 12])
                place += 1
                continue
            self.control(found.group(1), found.group(2))
            place = found.end()

    def put(self, character):
        if character == "\n":
            self.row += 1
            if self.row == self.n_rows:
                self.scrolled.append(self.rows.pop(0))
                self.rows.append(self.blank_row())
                self.row -= 1
        elif character == "\r":
            self.column = 0
        elif character < " ":
            self.unknown.append(character)
        else:
            width = 2 if unicodedata.east_asian_width(character) in "WF" else 1
            if self.column + width > self.n_columns:
                self.n_wrapped += 1
                self.put("\r")
                self.put("\n")
            self.rows[self.row][self.column] = (character, self.style)
            for filler in range(self.column + 1, self.column + width):
                self.rows[self.row][filler] = ("", self.style)
            self.column += width

    def control(self, parameters, letter):
        number = int(parameters) if parameters.isdigit() else 1
        if letter == "A":
            self.row = max(self.row - number, 0)
        elif letter == "K":
            self.rows[self.row][self.column:] = self.blank_row()[self.column:]
        elif letter == "J":
            self.rows[self.row][self.column:] = self.blank_row()[self.column:]
            self.rows[self.row + 1:] = [self.blank_row() for _ in self.rows[self.row + 1:]]
        elif letter == "m":
            for part in (parameters or "0").split(";"):
                self.restyle(int(part or 0))
        elif letter in "hl" and parameters == "?25":
            self.cursor_shown = letter == "h"
        else:
            self.unknown.append(parameters + letter)

    def restyle(self, number):
        colour, bold, dim, ground = self.style
        if number == 0:
            self.style = PLAIN
        elif number == 1:
            self.style = (colour, True, dim, ground)
        elif number == 2:
            self.style = (colour, bold, True, ground)
        elif number in COLOURS or number == 39:
            self.style = (number if number != 39 else None, bold, dim, ground)
        elif number - 10 in COLOURS or number == 49:
            self.style = (colour, bold, dim, number - 10 if number != 49 else None)
        else:
            self.unknown.append(f"{number}m")

    def lines(self):
        """All that was ever on it and was not cleared, without empty lines at the end."""
        lines = ["".join(character for character, _ in row).rstrip() for row in self.scrolled + self.rows]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def is_coloured(self):
        return any(style != PLAIN for row in self.scrolled + self.rows for _, style in row)


def svg(screen, title):
    """The screen as a picture: one text element a run of cells of the same style, placed to the column."""
    n_rows = max(len(screen.lines()), 1)
    rows = (screen.scrolled + screen.rows)[:n_rows]
    width, height = screen.n_columns * CELL_WIDTH + 2 * MARGIN, n_rows * CELL_HEIGHT + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
           f'height="{height:.0f}" role="img" font-size="14" '
           'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace">',
           f"<title>{html.escape(title)}</title>",
           f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>']
    for number, row in enumerate(rows):
        column = 0
        while column < len(row):
            end = column
            while end < len(row) and row[end][1] == row[column][1]:
                end += 1
            text = "".join(character for character, _ in row[column:end])
            ground = row[column][1][3]
            if ground:
                out.append(f'<rect x="{MARGIN + column * CELL_WIDTH:.1f}" y="{MARGIN + number * CELL_HEIGHT - 1}" '
                           f'width="{(end - column) * CELL_WIDTH:.1f}" height="{CELL_HEIGHT}" fill="{COLOURS[ground]}"/>')
            if text.strip():
                out.append(run_of_cells(text, row[column][1], column, number, end - column))
            column = end
    return "\n".join(out + ["</svg>"]) + "\n"


def run_of_cells(text, style, column, row, n_cells):
    colour, bold, dim, ground = style
    n_cells -= len(text) - len(text.rstrip())
    text = text.rstrip()
    fill = BACKGROUND if ground else COLOURS[colour] if colour else FAINT if dim else FOREGROUND
    weight = ' font-weight="bold"' if bold else ""
    return (f'<text x="{MARGIN + column * CELL_WIDTH:.1f}" y="{MARGIN + row * CELL_HEIGHT + 13}" fill="{fill}"{weight} '
            f'xml:space="preserve" textLength="{n_cells * CELL_WIDTH:.1f}" lengthAdjust="spacingAndGlyphs">'
            f"{html.escape(text)}</text>")


class Terminal:
    """A program on a pseudo-terminal of its own, and its screen."""

    def __init__(self, command, n_columns=80, n_rows=24, environment=None):
        self.screen = Screen(n_columns, n_rows)
        self.data = b""
        self.n_writes = 0
        self.status = None
        env = {"PATH": os.environ.get("PATH", ""), "TERM": "xterm", "LANG": "C.UTF-8"} if environment is None \
            else environment
        size = struct.pack("HHHH", n_rows, n_columns, 0, 0)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, size)  # before the program looks
            os.execvpe(command[0], command, env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, size)

    def run(self, seconds):
        """Takes in what it writes for so long, or until it ends. True once it has ended."""
        end = time.monotonic() + seconds
        while self.status is None and time.monotonic() < end:
            ready, _, _ = select.select([self.fd], [], [], max(end - time.monotonic(), 0))
            if not ready:
                break
            try:
                data = os.read(self.fd, 65536)
            except OSError:  # the other side is closed
                data = b""
            if not data:
                self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
                return True
            self.data += data
            self.n_writes += 1
            self.screen.feed(data)
        return self.status is not None

    def signal(self, number):
        os.kill(self.pid, number)

    def close(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="100x30", help="columns x rows")
    parser.add_argument("--at", type=float, default=600, help="seconds after which to look; default: its end, 10 min")
    parser.add_argument("--svg", help="a picture, into this file; default: text on stdout")
    parser.add_argument("--title", default="progress of a staging")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    n_columns, n_rows = (int(number) for number in arguments.size.split("x"))
    if arguments.command[:1] == ["--"]:
        del arguments.command[0]
    environment = dict(os.environ, TERM="xterm-256color")
    terminal = Terminal(arguments.command, n_columns, n_rows, environment)
    terminal.run(arguments.at)
    if arguments.svg:
        with open(arguments.svg, "w", encoding="utf-8") as file:
            file.write(svg(terminal.screen, arguments.title))
    else:
        print("\n".join(terminal.screen.lines()))
    terminal.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
