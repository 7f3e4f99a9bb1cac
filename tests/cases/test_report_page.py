"""The page of `custream report --html` in a browser: it needs nothing else, shows why the GPU was idle, and its tables are sorted by keyboard."""
import html.parser
import math
import re

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.handmade import GOOD, custream, launches, render
from tests.perfetto import browser

HARD_NAME = '<script>alert("1")</script> & <b>\'k\'</b> \x1b[31m'
VOID = {"meta", "link", "rect"}


@pytest.fixture(scope="module")
def driver():
    """One browser for all pages."""
    started = browser.start()
    yield started
    started.quit()


@pytest.fixture
def page_of(driver, tmp_path):
    """The page of a trace, open in the browser: page_of(trace) is its text."""
    def opened(trace):
        path = tmp_path / "report.html"
        done = custream("report", f"--html={path}", trace)
        assert (done.returncode, done.stderr) == (0, "")
        driver.get(path.as_uri())
        return path.read_text()
    return opened


def rows_of(driver, table):
    """The rows that are seen of the table with that key, a list of cells each."""
    return driver.execute_script("return [...document.querySelectorAll('#' + arguments[0] + ' tbody tr')].filter(r => r.offsetHeight > 0)"
                                 ".map(r => [...r.cells].map(c => c.textContent));", table)


def trace_of(path, count, name="k"):
    path.write_text(launches(count, name))
    return path


class Balance(html.parser.HTMLParser):
    """Fails where a tag does not close the one that was opened last."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        if tag not in VOID or (tag == "rect" and not self.get_starttag_text().endswith("/>")):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        """Closed as it was opened."""

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data):
        self.text += data


def test_page_stands_alone(page_of, driver, tmp_path):
    """No request, no complaint of the browser, no tag that a name has opened."""
    page = page_of(trace_of(tmp_path / "t.json", 6, HARD_NAME))
    assert driver.get_log("browser") == []
    assert driver.execute_script("return performance.getEntriesByType('resource').map(e => e.name);") == []
    assert "http:" not in page and "https:" not in page and "\x1b" not in page
    balance = Balance()
    balance.feed(page)
    assert balance.open == []
    assert '<script>alert("1")</script> & <b>\'k\'</b>' in balance.text
    assert len(driver.find_elements(By.TAG_NAME, "script")) == 1


def test_lanes(page_of, driver, tmp_path):
    """Few pieces: one rectangle each, with a title; the idle time in the colour of its cause."""
    page_of(trace_of(tmp_path / "t.json", 6))
    lanes = {lane.find_element(By.TAG_NAME, "span").text: lane for lane in driver.find_elements(By.CSS_SELECTOR, ".lane:not(.axis)")}
    assert list(lanes) == ["idle, by cause", "stream 13 p-5 nb", "stream 14 <non-blocking>"]
    idle, works, _ = lanes.values()
    idle_pieces = idle.find_elements(By.TAG_NAME, "rect")
    assert {piece.get_attribute("class") for piece in idle_pieces} == {"c0", "c1"}  # the host had not enqueued it; its way to the GPU
    assert sum(float(piece.get_attribute("width")) for piece in idle_pieces) == pytest.approx(2000 * 10 / 16, rel=0.01)
    assert len(works.find_elements(By.CSS_SELECTOR, "rect.k0")) == 3
    titles = [title.get_attribute("textContent") for title in works.find_elements(By.TAG_NAME, "title")]
    assert titles == ["k: 1.000 us, from 0 ns on", "k: 1.000 us, from 6.000 us on", "k: 1.000 us, from 12.00 us on"]
    colors = driver.execute_script("return [...document.querySelectorAll('.legend rect')].map(r => { const s = getComputedStyle(r);"
                                   "return s.fill + s.stroke + s.strokeDasharray + s.opacity; });")
    assert len(colors) == len(set(colors)) == 17


def test_page_without_gpu_work(page_of, driver, tmp_path):
    path = tmp_path / "t.json"
    path.write_text(render({name: GOOD[name] for name in ("process", "thread", "launch")}))
    assert "cuLaunchKernel" in page_of(path) and driver.find_elements(By.ID, "lanes") == [] and driver.get_log("browser") == []


def test_many_pieces_are_merged(page_of, driver, tmp_path):
    """At most 2,000 rectangles a lane, however much is on it, which cover what they stand for."""
    page_of(trace_of(tmp_path / "t.json", 6000))
    for rectangles in driver.execute_script("return [...document.querySelectorAll('.lane svg')].map(s => [...s.querySelectorAll('rect')]"
                                            ".map(r => ['x', 'width', 'y', 'height'].map(a => Number(r.getAttribute(a)))));"):
        assert 1 <= len(rectangles) <= 2000
        assert all(0 <= x and x + width <= 2000 and y + height == 8 and 1 <= height <= 8 for x, width, y, height in rectangles)
        ends = [(x, x + width) for x, width, _, _ in rectangles]
        assert ends == sorted(ends) and sum(end - begin for begin, end in ends) > 1900


def number(driver, table, column):
    """The numbers of a column, in the order of its rows."""
    values = driver.execute_script("return [...document.querySelectorAll('#' + arguments[0] + ' tbody tr')].map(r => r.cells[arguments[1]].dataset.v);", table, column)
    return [float(value) if value else math.nan for value in values]


def test_tables_are_sorted_by_keyboard(page_of, driver, root):
    page_of(root / "traces/known-h200.json.gz")
    heads = driver.find_elements(By.CSS_SELECTOR, "#metrics th")
    key, _, value = heads
    before = number(driver, "metrics", 2)
    known = sorted((n for n in before if not math.isnan(n)), reverse=True)
    driver.execute_script("arguments[0].focus();", key.find_element(By.TAG_NAME, "button"))
    for _ in range(2):
        driver.switch_to.active_element.send_keys(Keys.TAB)
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert value.get_attribute("aria-sort") == "descending"
    assert number(driver, "metrics", 2)[:len(known)] == known
    driver.switch_to.active_element.send_keys(Keys.SPACE)
    assert value.get_attribute("aria-sort") == "ascending" and key.get_attribute("aria-sort") is None
    after = number(driver, "metrics", 2)
    assert after[:len(known)] == known[::-1] and all(map(math.isnan, after[len(known):]))  # what is not known stays last
    key.find_element(By.TAG_NAME, "button").click()
    names = [row[0] for row in rows_of(driver, "metrics")]
    assert key.get_attribute("aria-sort") == "ascending" and value.get_attribute("aria-sort") is None and names == sorted(names)


def test_the_page_leads_with_what_the_text_leads_with(page_of, driver, root):
    trace = root / "traces/cupy-filter-h200.json.gz"
    page_of(trace)
    text = custream("report", "--brief", trace, env={"COLUMNS": "5000"}).stdout
    first, findings = text.split("\n\nWhat to change\n")
    shown = driver.execute_script("return [...document.body.children].map(e => e.id || e.innerText);")
    assert shown[1:].index("findings") == len(first.splitlines()) and shown[1:shown.index("findings")] == first.splitlines()
    assert [shown[shown.index("findings") + n] for n in (1, 2, 3)] == ["next", "facts", "lanes"]
    assert re.findall(r"^(CS\d+)  ", findings, re.M) == [e.text for e in driver.find_elements(By.CSS_SELECTOR, "#findings .id")]
    commands = [line.split("  # ")[0].strip() for line in text.split("Where to look next\n")[1].splitlines()]
    assert commands == [e.text for e in driver.find_elements(By.CSS_SELECTOR, "#next code")] and len(commands) == 4


def facts_of(driver):
    pairs = driver.execute_script("return [...document.querySelectorAll('#facts dt')].map(e => [e.textContent, e.nextSibling.textContent]);")
    assert len(pairs) == len(dict(pairs))
    return dict(pairs)


def test_facts_of_the_run(page_of, driver, root, tmp_path):
    """What the header has, and of a trace without such a header that it was not recorded."""
    page_of(root / "traces/torch-streams-h200.json.gz")
    assert facts_of(driver) == {"Date": "2026-11-23 13:21:57 UTC", "Host": "not recorded", "Command line": "not recorded", "GPU 0": "NVIDIA H200",
                                "Settings": "CUSTREAM_TRACE=/tmp/R/torch-streams-h200.json", "Recorded by": "custream 0.1.0"}
    path = tmp_path / "foreign.json"
    path.write_text('{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,"args":{"stream":7,"device":0}}]}')
    page_of(path)
    assert facts_of(driver) == {"Date": "not recorded", "Host": "not recorded", "Command line": "not recorded", "GPU 0": "name not recorded",
                                "Settings": "not recorded", "Recorded by": "not recorded"}


CUT = """
const wide = [...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.parentNode.id);
return [document.documentElement.scrollWidth, wide];
"""


@pytest.mark.parametrize("width, media, fits", [(1600, "screen", True), (1030, "print", True), (400, "screen", False)], ids=["wide", "paper", "narrow"])
def test_nothing_is_cut_off(page_of, driver, root, width, media, fits):
    """Long names wrap. On a phone a table scrolls in its own frame; the page does not."""
    try:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media})
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
        page_of(root / "traces/torch-streams-h200.json.gz")
        page, cut = driver.execute_script(CUT)
        assert page == width and (cut == [] or not fits)
        tables = driver.execute_script("return [...document.querySelectorAll('table')].map(e => e.getBoundingClientRect().right);")
        assert len(tables) > 8 and (max(tables) <= width or not fits)
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_of_the_scheme(page_of, driver, root, scheme):
    """Text has enough contrast with what is behind it."""
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    page_of(root / "traces/known-h200.json.gz")
    text, back = (driver.execute_script(f"return getComputedStyle(document.body).{which};") for which in ("color", "backgroundColor"))
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    light, dark = sorted((luminance(text), luminance(back)), reverse=True)
    assert (luminance(back) > luminance(text)) == (scheme == "light") and (light + 0.05) / (dark + 0.05) > 7


def luminance(color):
    """https://www.w3.org/TR/WCAG21/#dfn-relative-luminance, of "rgb(1, 2, 3)"."""
    parts = [int(part) / 255 for part in color[color.index("(") + 1:-1].split(",")]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
