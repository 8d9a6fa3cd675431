"""A bar chart as SVG, without a library: readable on light and on dark ground, with the value written at each bar."""
from xml.sax.saxutils import escape

WIDTH, LABEL, VALUE, ROW, BAR, TOP = 760, 250, 110, 26, 16, 40

STYLE = """<style>
text { font: 13px sans-serif; fill: #24292f }
.title { font-weight: bold } .bar { fill: #8c959f } .ours { fill: #0969da } .spread { stroke: #24292f; stroke-width: 1 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .bar { fill: #6e7681 } .ours { fill: #4493f8 } .spread { stroke: #e6edf3 }
}
</style>"""


def number(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def bar(place, label, value, low, high, ours, longest):
    """One row: label, bar, a line from the lowest to the highest value, the median as a number."""
    def x(of):
        return LABEL + (WIDTH - LABEL - VALUE) * max(0.0, of) / longest

    top, middle = TOP + place * ROW, TOP + place * ROW + BAR / 2
    return (f'<text x="{LABEL - 8}" y="{middle + 4:.0f}" text-anchor="end">{escape(label)}</text>'
            f'<rect class="{"ours" if ours else "bar"}" x="{LABEL}" y="{top}" width="{x(value) - LABEL:.1f}" '
            f'height="{BAR}"/>'
            f'<line class="spread" x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{middle:.1f}" y2="{middle:.1f}"/>'
            f'<text x="{x(max(value, high)) + 6:.1f}" y="{middle + 4:.0f}">{number(value)}</text>')


def chart(title, rows):
    """rows: (label, median, lowest, highest, is it ours), drawn in this order."""
    longest = max((max(row[1], row[3]) for row in rows), default=0) or 1.0
    height = TOP + len(rows) * ROW
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
             f'role="img" aria-label="{escape(title, {chr(34): "&quot;"})}">', STYLE,
             f'<text class="title" x="8" y="20">{escape(title)}</text>']
    lines += [bar(place, *row, longest) for place, row in enumerate(rows)]
    return "\n".join(lines + ["</svg>"]) + "\n"
