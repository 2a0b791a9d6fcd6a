"""The real app in a real browser: a served process, a headless Chromium, no sleep where there is something to see."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from PIL import Image

from idviz import explore
from idviz.explore.controls import Slider
from tests.helpers.servers import served_app

pytestmark = pytest.mark.slow
expect = pytest.importorskip("playwright.sync_api").expect
PAGES = ("", *explore.slugs(), "about")
WAIT = 60_000  # milliseconds: the first picture of a trained model loads PyTorch, perhaps beside other tests


@pytest.fixture(scope="module")
def app(browser, tmp_path_factory):
    """The address of a running app; afterwards its log must be clean."""
    log = tmp_path_factory.mktemp("app") / "log.txt"
    with served_app(log) as address:
        yield address
    text = LEFT_EARLY.sub("", log.read_text())
    for word in ("Traceback", "Error", "Warning", "WARNING", "deprecat"):
        assert word not in text, text


# Streamlit's own complaint about a browser that leaves before its connection is accepted; nobody is there to see it.
LEFT_EARLY = re.compile(
    r"Exception in ASGI application\nTraceback \(most recent call last\):\n(?:.*\n)*?"
    r"starlette\.websockets\.WebSocketDisconnected: Cannot call .*\n"
)


def open_page(page, address: str):
    """Open the address, and wait for the picture or, on a page without one, for the title."""
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_be_visible(timeout=WAIT)
    if urlsplit(address).path.strip("/") in explore.slugs():
        picture_is_drawn(page)
    return page


def picture(page):
    return page.locator(".player img")


def picture_is_drawn(page) -> None:
    page.wait_for_function(
        """() => {
            const host = document.querySelector('[data-testid=stBidiComponentIsolated]');
            const image = host && host.shadowRoot && host.shadowRoot.querySelector('.player img');
            return image && image.complete && image.naturalWidth > 300;
        }""",
        timeout=WAIT,
    )


def idle(page) -> None:
    """Wait until no run of the page's script goes on."""
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning", timeout=WAIT)


def parameters(page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def test_a_slider_moved_by_keys_changes_picture_caption_and_url(page, app, quiet):
    open_page(page, f"{app}/memory")
    before, said = picture(page).get_attribute("src"), picture(page).get_attribute("alt")
    slider = page.get_by_role("slider", name=re.compile("Order"))
    value = int(slider.get_attribute("aria-valuenow") or slider.input_value())
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(picture(page)).not_to_have_attribute("alt", said, timeout=WAIT)
    assert picture(page).get_attribute("src") != before
    page.wait_for_url(re.compile(rf"order={value + 1}\b"), timeout=WAIT)
    expect(page.locator(".caption")).to_have_text(picture(page).get_attribute("alt"))
    quiet(page)


def test_a_link_restores_the_view_in_a_new_tab(new_page, app, quiet):
    first = open_page(new_page(), f"{app}/memory?order=16&signal=steps&instant=200")
    expect(picture(first)).to_have_attribute("alt", re.compile("16 numbers"), timeout=WAIT)
    first.get_by_role("button", name="Link to this view").click()
    link = first.get_by_test_id("stPopoverBody").locator("code").inner_text()
    assert link.startswith(app) and parameters(first) == {"order": "16", "signal": "steps", "instant": "200"}
    second = open_page(new_page(), link)
    expect(picture(second)).to_have_attribute("alt", picture(first).get_attribute("alt"), timeout=WAIT)
    assert parameters(second) == parameters(first)
    expect(second.locator(".player input")).to_have_value("200")
    second.reload()
    picture_is_drawn(second)
    expect(picture(second)).to_have_attribute("alt", picture(first).get_attribute("alt"), timeout=WAIT)
    quiet(first)
    quiet(second)


def test_pages_keep_their_parameters_apart(page, app, quiet):
    open_page(page, f"{app}/memory?order=16")
    page.get_by_test_id("stSidebarNavLink").filter(has_text="Basis").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Basis", timeout=WAIT)
    picture_is_drawn(page)
    assert "order" not in parameters(page)
    page.get_by_test_id("stSidebarNavLink").filter(has_text="Memory").click()
    page.wait_for_url(re.compile("order=16"), timeout=WAIT)  # what was set there is still set
    quiet(page)


def test_the_back_button_goes_back(page, app, quiet):
    open_page(page, f"{app}/basis")
    slider = page.get_by_role("slider", name=re.compile("Order"))
    start = int(slider.input_value())
    for step in (1, 2):  # one after the other: each becomes an entry in the browser's history once its run is over
        idle(page)
        slider.focus()
        page.keyboard.press("ArrowRight")
        expect(slider.first).to_have_value(str(start + step), timeout=WAIT)
        page.wait_for_url(re.compile(rf"order={start + step}\b"), timeout=WAIT)
    for value in (start + 1, start):
        page.go_back()
        expect(slider.first).to_have_value(str(value), timeout=WAIT)
        expect(slider).to_have_count(1)
    assert parameters(page) == {}
    quiet(page)


def film_has(page, frames: int) -> None:
    """Wait until the browser holds that many frames of the film in sight."""
    page.wait_for_function(
        "least => Math.max(0, ...[...window.idviz.status.values()].map(status => status.have)) >= least",
        arg=frames,
        timeout=60_000,
    )


def test_dragging_swaps_frames_without_the_server(page, app, quiet):
    sent = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(len(frame))))
    open_page(page, f"{app}/memory?order=12")
    film_has(page, 10)
    page.get_by_role("button", name="Stop", exact=True).click()  # the rest of the film would be traffic of its own
    expect(page.locator(".count")).to_contain_text("stopped", timeout=WAIT)
    scrubber = page.locator(".player input")
    box = scrubber.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] - 8, y)
    page.mouse.down()
    idle(page)
    count, seen, captions = len(sent), set(), set()
    for step in range(1, 13):
        page.mouse.move(box["x"] + box["width"] * (1 - step / 14), y)
        seen.add(picture(page).get_attribute("src"))
        captions.add(page.locator(".caption").inner_text())
    assert len(sent) == count, "dragging asked the server"
    assert len(seen) >= 6 and len(captions) >= 6
    page.mouse.up()
    page.wait_for_url(re.compile(r"instant=\d+"), timeout=WAIT)
    assert len(sent) > count
    expect(scrubber).to_have_value(parameters(page)["instant"])
    assert picture(page).get_attribute("data-instant") == parameters(page)["instant"]
    quiet(page)


def test_playing_runs_to_the_end_and_the_gif_is_there(page, app, quiet):
    open_page(page, f"{app}/basis?order=12")
    film_has(page, 12)
    expect(page.locator(".transport")).to_have_attribute("data-film", "complete", timeout=WAIT)
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible(timeout=WAIT)
    expect(page.locator(".player input")).to_have_value("11")
    page.wait_for_url(re.compile(r"degree=11"), timeout=WAIT)
    with page.expect_download(timeout=WAIT) as caught:
        page.get_by_role("button", name="GIF").click()
    image = Image.open(caught.value.path())
    assert image.format == "GIF" and image.n_frames >= 10
    quiet(page)


def test_the_scrubber_by_keyboard(page, app, quiet):
    open_page(page, f"{app}/memory?signal=steps&order=8&instant=100")
    scrubber = page.get_by_role("slider", name="Instant (samples)")
    expect(scrubber).to_have_value("100")
    scrubber.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile(r"instant=101\b"), timeout=WAIT)
    expect(picture(page)).to_have_attribute("data-instant", "101", timeout=WAIT)
    quiet(page)


def test_downloads_are_what_they_say(page, app, quiet):
    open_page(page, f"{app}/memory?signal=steps&order=8")

    def save(kind: str) -> bytes:
        with page.expect_download(timeout=WAIT) as caught:
            page.get_by_role("button", name=kind, exact=True).click()
        assert caught.value.suggested_filename == f"idviz-memory.{kind.lower()}"
        return Path(caught.value.path()).read_bytes()

    image = Image.open(io.BytesIO(save("PNG")))
    image.load()
    assert image.format == "PNG" and image.width > 600
    rows = list(csv.reader(io.StringIO(save("CSV").decode("utf-8"))))
    assert len(rows) > 8 and len(rows[0]) >= 2
    assert any(re.fullmatch(r"-?[\d.]+(e-?\d+)?", cell) for cell in rows[1])
    assert save("SVG").lstrip().startswith(b"<?xml")
    assert b'"explorable": "memory"' in save("JSON")
    quiet(page)


def test_try_this_says_what_to_look_for(page, app, quiet):
    open_page(page, f"{app}/memory")
    said = picture(page).get_attribute("alt")
    item = explore.explorable("memory").try_this[1]
    page.get_by_role("button", name=item.label).click()
    expect(page.get_by_test_id("stAlert")).to_contain_text(item.look_for[:30], timeout=WAIT)
    expect(picture(page)).not_to_have_attribute("alt", said, timeout=WAIT)
    quiet(page)


def test_a_binary_file_as_csv_is_a_message(page, app, quiet, tmp_path):
    open_page(page, f"{app}/memory")
    before = picture(page).get_attribute("alt")
    bad = tmp_path / "binary.csv"
    bad.write_bytes(bytes(range(256)) * 8)
    page.get_by_text("More", exact=True).click()
    page.locator("input[type=file]").set_input_files(bad)
    expect(page.get_by_test_id("stAlert").first).to_be_visible(timeout=WAIT)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    assert "Traceback" not in page.inner_text("body")
    assert picture(page).get_attribute("alt") == before  # the old picture stays
    good = tmp_path / "good.csv"
    good.write_text("a\n" + "\n".join(str(n % 7) for n in range(60)))
    page.locator("input[type=file]").set_input_files(good)
    expect(picture(page)).not_to_have_attribute("alt", before, timeout=WAIT)
    quiet(page)


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_overflows(new_page, app, quiet, width):
    page = open_page(new_page(width=width, height=900 if width > 640 else 844), app)
    schemes = [("light", (255, 255, 255)), ("dark", (14, 17, 23))]
    for name in PAGES:
        if name and width == 390:  # its menu is folded away
            open_page(page, f"{app}/{name}")
        elif name:
            follow_link(page, name)
        for scheme, paper in schemes:
            page.emulate_media(color_scheme=scheme)
            if name != "about":
                picture_has_paper(page, paper, narrow=width == 390 and name != "")
            if name in explore.slugs():
                sliders_show_defaults(page, explore.explorable(name))
            wide = page.evaluate(OVERFLOW)
            assert wide == [], (name, width, scheme, wide)
        schemes.reverse()  # the next page begins in the theme that is there
    quiet(page)


def follow_link(page, name: str) -> None:
    """Go to another page by the menu, and wait until nothing is left of the old one."""
    idle(page)  # a click beside a run of the old page could be lost
    page.locator(f'[data-testid=stSidebarNavLink][href$="/{name}"]').click()
    title = explore.explorable(name).title if name in explore.slugs() else "About"
    expect(page.get_by_role("heading", level=1)).to_have_text(title, timeout=WAIT)
    idle(page)


def sliders_show_defaults(page, view) -> None:
    """After the runs that a new page goes through (layout, theme), the controls still match the picture."""
    values = view.resolve()
    for control in view.controls:
        if isinstance(control, Slider) and control.main:
            name = re.escape(control.label).replace("/", r"\/")  # Playwright writes it between slashes
            slider = page.get_by_role("slider", name=re.compile(rf"^{name}( |$)"))
            assert float(slider.input_value()) == values[control.name], control.label


OVERFLOW = """() => {
    const main = document.querySelector('[data-testid=stMain]');
    const edge = document.documentElement.clientWidth;
    const wide = [];
    if (document.documentElement.scrollWidth > edge) wide.push('page');
    if (main.scrollWidth > main.clientWidth) wide.push('main');
    for (const line of main.querySelectorAll('[class*=st-key-formula-] p')) {  // it scrolls only as a last resort
        if (line.scrollWidth > line.clientWidth + 1) wide.push('formula ' + line.scrollWidth);
    }
    const all = [...main.querySelectorAll('*')];
    const inside = all.filter(host => host.shadowRoot).flatMap(host => [...host.shadowRoot.querySelectorAll('*')]);
    for (const element of [...all, ...inside]) {
        const box = element.getBoundingClientRect();
        if (box.width && box.height && (box.right > edge + 1 || box.left < -1)) {
            // In a box that scrolls by itself, or hidden on purpose, it is not out of place.
            const holder = element.closest('.idviz-box, [class*=st-key-formula-] p, .katex-mathml, [inert]');
            if (!holder) wide.push(element.tagName + '.' + element.className + ' ' + Math.round(box.right));
        }
    }
    return wide.slice(0, 5);
}"""


def picture_has_paper(page, paper: tuple[int, int, int], narrow: bool) -> None:
    """Wait until the picture is drawn for this theme and this layout."""
    page.wait_for_function(
        """([paper, narrow]) => {
            const main = document.querySelector('[data-testid=stMain]');
            const hosts = [...main.querySelectorAll('[data-testid=stBidiComponentIsolated]')];
            const player = hosts.map(host => host.shadowRoot?.querySelector('.player img')).find(Boolean);
            const image = player ?? main.querySelector('[data-testid=stImage] img');
            if (!image || !image.complete || (player && (image.naturalWidth < 600) !== narrow)) return false;
            const canvas = new OffscreenCanvas(1, 1).getContext('2d');
            canvas.drawImage(image, 0, 0, 1, 1, 0, 0, 1, 1);
            const corner = canvas.getImageData(0, 0, 1, 1).data;
            return paper.every((value, index) => Math.abs(value - corner[index]) < 3);
        }""",
        arg=[list(paper), narrow],
        timeout=WAIT,
    )
