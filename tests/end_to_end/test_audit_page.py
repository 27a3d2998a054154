"""The page on which people answer, in headless Chromium: by keyboard, over reloads, two people, and
1,000 texts."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mamushi.cli import main
from mamushi.io.digests import fingerprint
from mamushi.io.files import read_json
from tests.support.audited import write_audited

N = 1_000
EVIL = "</script><script>document.title='broken'</script><img src=x onerror=alert(1)><!-- &amp; $x"
ODD = "two\nlines with \u202e a bidi override, \u2028 a separator and \x00 a zero"
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--dump-dom"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium or google-chrome is installed"),
]

HEAD = """<script>
const problems = [], saved = [];
addEventListener("error", (event) => problems.push(String(event.message)), true);
window.Blob = class { constructor(texts) { this.texts = texts; saved.push(texts[0]); } };
URL.createObjectURL = () => "#";
HTMLAnchorElement.prototype.click = function () { saved.push(this.download); };
const at = (id) => document.getElementById(id);
const said = (id = "status") => at(id).textContent;
const press = (...keys) => keys.forEach((key) => hold(key, {}));
const hold = (key, more) => document.body.dispatchEvent(
  new KeyboardEvent("keydown", { key, bubbles: true, ...more }));
const begin = (name) => {
  at("name").value = name;
  at("name").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
};
const pressed = () => [...document.querySelectorAll("[id^=answer][aria-pressed=true]")]
  .map((element) => element.id);
</script>"""
"""What a person does on the page, and what it has saved."""
END = """<script>
const told = []; {script}
const pre = document.createElement("pre");
pre.textContent = JSON.stringify({{ told, problems, saved }});
document.body.replaceChildren(pre);
</script>"""


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


def play(page: Path, profile: Path, script: str) -> dict[str, Any]:
    """What a script tells of the page that acts as a person would, in the browser of a profile."""
    text = re.sub(r"<meta[^>]*Content-Security-Policy[^>]*>", HEAD, page.read_text("utf-8"))
    acted = page.with_name("acted.html")
    acted.write_text(text.replace("</body>", END.format(script=script) + "</body>"), "utf-8")
    (told,) = re.findall(r"<pre>(.*)</pre>", opened(acted, profile), re.DOTALL)
    return dict(json.loads(html.unescape(told)))


def opened(page: Path, profile: Path) -> str:
    """The document of a page once it is there."""
    line = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", page.as_uri()]
    return subprocess.run(line, capture_output=True, text=True, check=True, timeout=120).stdout


def test_keys_answer_and_go_back_and_every_answer_is_kept(
    world: dict[str, Any], tmp_path: Path
) -> None:
    found = play(world["page"], tmp_path, """
        begin(" "); told.push(said("refused") !== "" && !at("start").hidden);
        told.push(document.title, document.querySelectorAll("img, b").length);
        begin("ana"); told.push(said()); const first = said("text");
        press("y", "n", "u"); told.push(said());
        press("Backspace", "ArrowLeft", "ArrowLeft"); told.push(said("text") === first, pressed());
        press("n", "f"); told.push(said());
        hold("y", { repeat: true }); hold("y", { ctrlKey: true }); told.push(said());
    """)  # fmt: skip
    # The texts, some of which are hostile, are on the page and run nothing. An answer takes the
    # place of another one; a key that is held answers once, and with Control it is the browser's.
    after = "ana: text 4 of 1,000, 3 answered"
    before = "ana: text 1 of 1,000, 0 answered"
    assert found["told"] == [
        *(True, "Audit of comments", 0, before, after, True, ["answer-y"], after, after)
    ]
    again = play(world["page"], tmp_path, """
        told.push(said()); press("ArrowLeft"); told.push(pressed());
        at("other").click(); begin("Björn/2"); told.push(said()); press("n"); at("save").click();
    """)  # fmt: skip
    assert again["told"] == [after, ["answer-u"], "Björn/2: text 1 of 1,000, 0 answered"]
    saved, name = again["saved"]
    assert name == "answers-Björn_2.json"
    answers = {world["order"][0]: "no"}
    about = {"audit": world["audit"], "annotator": "Björn/2", "answers": answers}
    assert json.loads(saved) == about
    # The page as it is, whose one script runs by its digest.
    assert "Björn/2: text 2 of 1,000, 1 answered" in opened(world["page"], tmp_path)
    assert found["problems"] == again["problems"] == []
