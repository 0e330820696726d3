"""The report in a real browser, from disk: sort, filter, follow a link, switch the theme, ask for nothing."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpcmoe import report

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM or not DRIVER, reason="chromium and chromium-driver are not installed"),
]
RUN = "flash/t6/tp16ep2/ring_direct/roce_dcqcn"


@pytest.fixture(scope="module")
def folder(small_study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report")
    report.write_report(small_study, out, runs=[RUN])
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1400,1000"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    service = webdriver.ChromeService(executable_path=DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    driver.execute_cdp_cmd("Network.enable", {})
    yield driver
    driver.quit()


@pytest.fixture
def page(browser: Any, folder: Path) -> Any:
    browser.get((folder / "index.html").as_uri())
    browser.execute_script("localStorage.clear()")
    browser.get((folder / "index.html").as_uri())
    return browser


def requests(browser: Any) -> list[str]:
    """URLs asked for since the last call."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


def column(page: Any, slug: str, place: int) -> list[str]:
    script = """const rows = document.getElementById(arguments[0]).parentElement
        .querySelector(`[aria-labelledby="${arguments[0]}"] tbody`).rows;
        return [...rows].filter(row => !row.hidden).map(row => row.cells[arguments[1]].textContent);"""
    return list(page.execute_script(script, slug, place))


def press(page: Any, slug: str, head: str) -> None:
    heads = page.find_elements(By.CSS_SELECTOR, f'[aria-labelledby="{slug}"] th button')
    button = next(b for b in heads if b.get_attribute("textContent") == head)
    page.execute_script("arguments[0].click()", button)


def test_a_table_sorts_by_number_both_ways(page: Any) -> None:
    for _ in range(2):
        press(page, "runs", "wall (s)")
        shown = [float(text) for text in column(page, "runs", 2) if text]
        assert len(shown) > 10
        ascending = sorted(shown)
        assert shown in (ascending, ascending[::-1])
        pressed = page.find_element(By.CSS_SELECTOR, '[aria-labelledby="runs"] th[aria-sort]')
        assert (pressed.get_attribute("aria-sort") == "ascending") == (shown == ascending)
    assert shown == ascending[::-1]


def test_a_table_with_two_rows_of_heads_sorts_by_its_own_columns(page: Any) -> None:
    press(page, "points", "published")
    values = [float(text) for text in column(page, "points", 3)]
    assert values == sorted(values)
    assert len(values) == 42


def test_the_filter_hides_rows(page: Any) -> None:
    page.find_element(By.ID, "runs-filter").send_keys("/t6/tp16")
    assert len(column(page, "runs", 0)) == 2


def test_a_run_links_to_its_page_and_back(page: Any, folder: Path) -> None:
    link = page.find_element(By.CSS_SELECTOR, '[aria-labelledby="runs"] a')
    page.execute_script("arguments[0].click()", link)
    assert page.current_url == (folder / "runs" / (RUN.replace("/", "__") + ".html")).as_uri()
    assert page.find_element(By.TAG_NAME, "h1").text.replace("\n", "") == RUN
    assert "inter-switch link" in page.find_element(By.TAG_NAME, "main").text
    page.find_element(By.LINK_TEXT, "The whole report").click()
    assert page.current_url == (folder / "index.html").as_uri()


def background(page: Any) -> str:
    return str(page.execute_script("return getComputedStyle(document.body).backgroundColor"))


def test_the_theme_switches_and_stays(page: Any) -> None:
    button = page.find_element(By.ID, "theme")
    found = {}
    for _ in range(3):
        button.click()
        found[button.text] = background(page)
    assert set(found) == {"Theme: auto", "Theme: light", "Theme: dark"}
    assert found["Theme: light"] == "rgb(255, 255, 255)"
    assert found["Theme: dark"] == "rgb(20, 23, 27)"
    while button.text != "Theme: dark":
        button.click()
    page.refresh()
    assert background(page) == "rgb(20, 23, 27)"
    text = page.find_element(By.CSS_SELECTOR, "#figure-4-1 svg text")
    assert page.execute_script("return getComputedStyle(arguments[0]).fill", text) == "rgb(228, 231, 235)"


def test_no_request_leaves_the_pages_and_no_script_fails(page: Any, folder: Path) -> None:
    requests(page)
    page.get_log("browser")
    for path in (folder / "index.html", next((folder / "runs").iterdir())):
        page.get(path.as_uri())
        page.execute_script("window.scrollTo(0, document.body.scrollHeight)")
        asked = requests(page)
        assert path.as_uri() in asked
        assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
        assert {url for url in asked if url.startswith("file:")} == {path.as_uri()}
    assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_is_wider_than_the_screen(page: Any, folder: Path, width: int) -> None:
    """Wide tables and figures scroll within themselves; the page does not."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    for path in (folder / "index.html", next((folder / "runs").iterdir())):
        page.get(path.as_uri())
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_labels_of_the_figures_do_not_overlap(page: Any, folder: Path) -> None:
    """Boxes of the texts of every inline figure, shrunk by a pixel, are apart from each other."""
    script = """
      const clashes = [];
      for (const svg of document.querySelectorAll("figure svg")) {
        const boxes = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
        boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
          if (p.left + 1 < q.right - 1 && q.left + 1 < p.right - 1 && p.top + 2 < q.bottom - 2 &&
              q.top + 2 < p.bottom - 2) clashes.push([svg.closest("figure").id, a, b]);
        }));
      }
      return clashes;"""
    assert page.execute_script(script) == []
    page.get(next((folder / "runs").iterdir()).as_uri())
    assert page.execute_script(script) == []
