"""Line charts as SVG, without a library: both axes logarithmic, so that what is flat is level, and what grows in proportion
rises by the same slope in all of them. Readable on light and on dark ground."""
import math
from xml.sax.saxutils import escape

WIDTH, PANEL_HEIGHT, TOP = 760, 230, 30
LEFT, RIGHT, ABOVE, BELOW = 58, 14, 34, 38  # of a panel, around its plot

STYLE = """<style>
text { font: 12px sans-serif; fill: #24292f }
.title { font-weight: bold } .grid { stroke: #d0d7de; stroke-width: 1 } polyline { fill: none; stroke-width: 2 }
.s0 { stroke: #0969da; fill: #0969da } .s1 { stroke: #bc4c00; fill: #bc4c00 } .s2 { stroke: #1a7f37; fill: #1a7f37 }
polyline.s0, polyline.s1, polyline.s2 { fill: none } text.s0, text.s1, text.s2 { stroke: none }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .grid { stroke: #30363d }
.s0 { stroke: #4493f8; fill: #4493f8 } .s1 { stroke: #f0883e; fill: #f0883e } .s2 { stroke: #3fb950; fill: #3fb950 }
}
</style>"""


def number(value):
    """Short enough for an axis: 0.5, 20, 5,000, 1e6."""
    if value >= 1e5:
        return f"{value:.0e}".replace("e+0", "e").replace("e+", "e")
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def scale(values):
    """The decades, or of few decades the halves of them, that hold the values: lowest, highest, where lines are drawn."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    steps = (1, 2, 5) if high - low < 3 else (1,)
    marks = [step * 10.0 ** decade for decade in range(low, high) for step in steps] + [10.0 ** high]
    return 10.0 ** low, 10.0 ** high, marks


def place(value, low, high, begin, end):
    return begin + (end - begin) * (math.log10(value) - math.log10(low)) / (math.log10(high) - math.log10(low))


def series_lines(idx, name, points, x_of, y_of, below):
    """One line of a panel, a dot at each value, its name above or below where it ends."""
    spots = [(x_of(x), y_of(y)) for x, y in points]
    lines = [f'<polyline class="s{idx}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in spots)}"/>']
    lines += [f'<circle class="s{idx}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in spots]
    x, y = spots[-1]
    y += 16 if below else -7
    return lines + [f'<text class="s{idx}" x="{x:.1f}" y="{y:.1f}" text-anchor="end">{escape(name)}</text>']


def panel(title, series, left, top, width):
    """series: name -> [(x, y)], all of them positive."""
    xs = sorted({x for points in series.values() for x, _ in points})
    low, high, marks = scale([y for points in series.values() for _, y in points])
    begin, end, floor, roof = left + LEFT, left + width - RIGHT, top + PANEL_HEIGHT - BELOW, top + ABOVE

    def x_of(value):
        return place(value, xs[0], xs[-1], begin, end) if xs[-1] > xs[0] else begin

    def y_of(value):
        return place(value, low, high, floor, roof)

    lines = [f'<text class="title" x="{left + 8}" y="{top + 18}">{escape(title)}</text>']
    for mark in marks:
        lines.append(f'<line class="grid" x1="{begin}" x2="{end}" y1="{y_of(mark):.1f}" y2="{y_of(mark):.1f}"/>'
                     f'<text x="{begin - 6}" y="{y_of(mark) + 4:.1f}" text-anchor="end">{number(mark)}</text>')
    lines += [f'<text x="{x_of(x):.1f}" y="{floor + 30}" text-anchor="middle">{number(x)}</text>' for x in xs]
    last = {name: points[-1][1] for name, points in series.items()}
    for idx, (name, points) in enumerate(series.items()):
        lines += series_lines(idx, name, points, x_of, y_of, len(last) > 1 and last[name] == min(last.values()))
    return lines


def chart(title, panels):
    """panels: (title, series), two in a row."""
    height = TOP + (len(panels) + 1) // 2 * PANEL_HEIGHT
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
             f'role="img" aria-label="{escape(title, {chr(34): "&quot;"})}">', STYLE,
             f'<text class="title" x="8" y="18">{escape(title)}</text>']
    for idx, (name, series) in enumerate(panels):
        lines += panel(name, series, idx % 2 * (WIDTH // 2), TOP + idx // 2 * PANEL_HEIGHT, WIDTH // 2)
    return "\n".join(lines + ["</svg>"]) + "\n"
