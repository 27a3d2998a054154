"""The page on which people answer, in headless Chromium: by keyboard, over reloads, two people, and
1,000 texts."""

import json
from pathlib import Path
from typing import Any

import pytest

from mamushi.cli import main
from mamushi.io.files import read_json
from mamushi.io.provenance import fingerprint
from tests.support.audited import write_audited
from tests.support.browser import CHROMIUM, Browser

N = 1_000
EVIL = "</script><script>document.title='broken'</script><img src=x onerror=alert(1)><!-- &amp; $x"
ODD = "two\nlines with \u202e a bidi override, \u2028 a separator and \x00 a zero"
CODES = {"Backspace": 8, "ArrowLeft": 37, "ArrowRight": 39, "Enter": 13}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium or google-chrome is installed"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """An audit that reads all of 1,000 texts, and where three of them stand on the page."""
    folder = tmp_path_factory.mktemp("world")
    texts = {7: EVIL, 8: "Well, damn, that is a needle.", 9: ODD}
    made = write_audited(folder / "results", 200, N - 200, 50, texts=texts)
    words = ["--size", str(N), "--out", str(folder / "audit"), "--question", "Is it <b>so</b>?"]
    assert main(["audit", str(made), *words]) == 0
    audit = read_json(folder / "audit/audit.json")
    order = [each["id"] for each in audit["sample"]]
    return {"page": folder / "audit/audit.html", "order": order, "audit": fingerprint(audit)}


@pytest.fixture
def opened(browser: Browser, world: dict[str, Any]) -> Browser:
    """The page as somebody opens it for the first time."""
    browser.open(world["page"])
    browser.run("localStorage.clear()")
    browser.events.clear()
    browser.open(world["page"])
    return browser


def press(browser: Browser, *keys: str) -> None:
    for key in keys:
        browser.press(key, CODES.get(key, ord(key.upper()[0])))


def begin(browser: Browser, name: str) -> None:
    browser.run(f"document.getElementById('name').value = {json.dumps(name)}")
    browser.run("document.getElementById('name').focus()")
    press(browser, "Enter")


def said(browser: Browser, name: str = "status") -> str:
    return str(browser.run(f"document.getElementById('{name}').textContent"))


def pressed(browser: Browser) -> list[str]:
    of = "[...document.querySelectorAll('[id^=answer][aria-pressed=true]')].map((e) => e.id)"
    return list(browser.run(of))


def test_keys_answer_and_go_back_and_every_answer_is_kept(opened: Browser) -> None:
    begin(opened, " ")
    assert said(opened, "refused") and not opened.run("document.getElementById('start').hidden")
    # The texts, some of which are hostile, are on the page and run nothing.
    assert opened.run("document.title") == "Audit of comments"
    assert opened.run("document.querySelectorAll('img, b, script').length") == 2
    begin(opened, "ana")
    assert said(opened) == "ana: text 1 of 1,000, 0 answered"
    first = said(opened, "text")
    press(opened, "y", "n", "u")
    assert said(opened) == "ana: text 4 of 1,000, 3 answered"
    press(opened, "Backspace", "ArrowLeft", "ArrowLeft")
    assert said(opened, "text") == first and pressed(opened) == ["answer-y"]
    # Another answer in the place of the first, and on to the first text that has none.
    press(opened, "n", "f")
    assert said(opened) == "ana: text 4 of 1,000, 3 answered"
    # A key that is held answers once; with Control it is the browser's.
    for more in ({"autoRepeat": True}, {"modifiers": 2}):
        opened.send("Input.dispatchKeyEvent", type="keyDown", key="y", **more)
    assert said(opened) == "ana: text 4 of 1,000, 3 answered"
    opened.open(Path(opened.run("decodeURI(location.pathname)")))
    assert said(opened) == "ana: text 4 of 1,000, 3 answered"
    press(opened, "ArrowLeft")
    assert pressed(opened) == ["answer-u"]
    assert opened.problems() == []


def test_two_people_have_one_store_each_and_a_file_each(
    opened: Browser, world: dict[str, Any], tmp_path: Path
) -> None:
    begin(opened, "ana")
    press(opened, "y", "n", "u")
    opened.run("document.getElementById('other').click()")
    begin(opened, "Björn/2")
    assert said(opened) == "Björn/2: text 1 of 1,000, 0 answered"
    press(opened, "n")
    saved = opened.download("document.getElementById('save').click()", tmp_path)
    assert saved.name == "answers-Björn_2.json"
    told = json.loads(saved.read_text(encoding="utf-8"))
    assert told["annotator"] == "Björn/2" and told["answers"] == {world["order"][0]: "no"}
    opened.run("document.getElementById('other').click()")
    begin(opened, "ana")
    assert said(opened) == "ana: text 4 of 1,000, 3 answered"
    saved = opened.download("document.getElementById('save').click()", tmp_path)
    told = json.loads(saved.read_text(encoding="utf-8"))
    assert [*told["answers"].values()] == ["yes", "no", "unsure"]
