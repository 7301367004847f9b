"""Runs in a browser and over HTTP: begun from the form, followed, stopped, gone on with, read in every part."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

import pytest

from agents import runs
from agents.record import lines_of
from agents.state import Request, TuneOptions
from agents.web import children
from tests.agents.conftest import TRAIN, commit, git
from tests.agents.web.serving import Served, ServedByCommand, keep

QUICK = TRAIN
SLOW = "import time\nprint('begun', flush=True)\ntime.sleep(300)\n"
PARTS = ("stages", "changed", "left", "runs", "layers", "profile", "trace", "next", "facts")


def until(holds, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def begin(tab, url: str, repo: Path, entry: str = "python train.py") -> str:
    """Fill in the form as a person without a mouse does; the id of the run."""
    tab.goto(f"{url}/runs/new")
    tab.keyboard.type(str(repo))
    tab.keyboard.press("Tab")
    tab.keyboard.type(entry)
    tab.keyboard.press("Tab")
    tab.keyboard.type("3")
    tab.select_option("#device", "cpu")
    tab.uncheck("[name=verify]")
    tab.focus("main button.primary")
    tab.keyboard.press("Enter")
    tab.wait_for_url(re.compile(r"/runs/[0-9a-f]{6}$"))
    return tab.url.rpartition("/")[2]


def test_a_run_is_begun_followed_and_read_in_a_browser(command: ServedByCommand, repo: Path, tab, tmp_path) -> None:
    run_id = begin(tab, command.url, repo)
    tab.wait_for_selector("#progress li.done >> text=assess")
    keep(tab, "run-progress")
    tab.reload()  # what was said before is there again
    tab.wait_for_selector("#progress li.done:has-text('assess'), #stages")
    tab.wait_for_selector("#stages", timeout=120_000)
    assert "Every stage up to clean passed" in tab.inner_text(".headline")
    assert "not run" in tab.inner_text("#stages li:nth-child(3)")  # on the CPU it says nothing about a TPU
    keep(tab, "run-report")
    for part in PARTS:
        tab.click(f".toc a[href='#{part}']")
        assert tab.locator(f"#{part}").is_visible()
    for summary in tab.locator("details > summary").all():
        if summary.is_visible():
            summary.click()
    assert "DEVICE_TYPE" in tab.inner_text("#changed")
    assert tab.locator("#changed tr.added .sign").first.inner_text() == "+"
    assert "not run" in tab.inner_text("#layers") and "not run" in tab.inner_text("#profile")
    assert "not run" in tab.inner_text("#trace")
    with tab.expect_download() as patch:
        tab.click("text=Patch >> nth=0")
    assert "+model = torch.nn.Linear(4, 2).to(DEVICE_TYPE)" in Path(patch.value.path()).read_text()
    assert f"torchtpu/migrate-{run_id}" in git(repo, "branch", "--list", "torchtpu/*")
    assert command.end() == 0


@pytest.mark.slow
def test_a_run_is_stopped_and_gone_on_with(served: Served, tmp_path: Path, tab) -> None:
    repo = commit(tmp_path / "repo", train_py=QUICK, slow_py=SLOW)
    run_id = begin(tab, served.url, repo, "python slow.py")
    tab.wait_for_selector("#output >> text=begun", timeout=60_000)
    assert tab.get_attribute("#now", "aria-live") == "polite"
    tab.click("button:has-text('Stop')")
    tab.wait_for_selector(".badge:has-text('interrupted')", timeout=60_000)
    assert runs.status(runs.find(run_id)) == "interrupted"
    tab.click("button:has-text('Go on')")
    tab.wait_for_selector("#output >> text=begun", timeout=60_000)
    assert served.visit().fill(f"/runs/{run_id}/resume").status_code == 400  # it is being worked on
    tab.click("button:has-text('Stop')")
    tab.wait_for_selector("button:has-text('Delete')", timeout=60_000)
    tab.on("dialog", lambda dialog: dialog.accept())
    tab.click("button:has-text('Delete')")
    tab.wait_for_selector("text=No runs yet")
    assert runs.every() == []


@pytest.mark.slow
def test_a_run_whose_input_is_no_use_says_why(served: Served, tmp_path: Path, tab) -> None:
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    begin(tab, served.url, tmp_path / "empty")
    tab.wait_for_selector("text=did not begin", timeout=60_000)
    assert "error" in tab.inner_text("pre.log")
    assert runs.every() == []


def test_progress_comes_as_events_and_again_from_where_the_page_was(served: Served, dry_run, repo: Path) -> None:
    folder = dry_run(repo)
    said = lines_of(folder.path)
    assert {"assess", "patch", "report"} <= {line.stage for line in said if line.kind == "done"}
    visitor = served.visit()

    def events(**headers: str) -> list[str]:
        with visitor.stream("GET", f"/runs/{folder.id}/events", headers=headers) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            return re.findall(r"^(id: \d+|event: \w+)$", answer.read().decode(), re.M)

    whole = events()
    assert whole.count("event: progress") == len(said) and whole[-1] == "event: end"
    late = events(**{"last-event-id": str(len(said) - 1)})
    assert late == [f"id: {len(said)}", "event: progress", "event: end"]
    assert events(**{"last-event-id": "99999"}) == ["event: end"]
    assert events(**{"last-event-id": "-1 or 1"}) == whole


def test_the_list_is_narrowed(served: Served, dry_run, tmp_path: Path) -> None:
    one = dry_run(commit(tmp_path / "alpha", train_py=QUICK))
    two = dry_run(commit(tmp_path / "beta", train_py=QUICK))
    two.update(status="interrupted")
    visitor = served.visit()

    def shown(**asked: str) -> set[str]:
        return set(re.findall(r'href="/runs/([0-9a-f]{6})"', visitor.get("/runs", params=asked).text))

    assert shown() == {one.id, two.id}
    assert shown(state="finished") == {one.id} and shown(state="interrupted") == {two.id}
    assert shown(repository=str(tmp_path / "beta")) == {two.id}
    assert shown(text="ALPHA train.py") == {one.id}
    assert shown(verdict="unfinished") == {two.id} and shown(text="gamma") == set()
    assert shown(at="99") == {one.id, two.id} and shown(at="-3") == {one.id, two.id}


def test_only_so_many_migrations_at_once(tmp_path: Path, home: Path) -> None:
    repo = commit(tmp_path / "repo", slow_py=SLOW, train_py=QUICK)
    with Served(most_runs=1) as server:
        visitor = server.visit()
        fields = {"source": str(repo), "entries": "python slow.py", "device": "cpu"}
        assert visitor.fill("/runs", **fields).status_code == 303
        assert [row["status"] for row in visitor.get("/api/runs").json()] == ["running"]  # before its child has it
        refused = visitor.fill("/runs", **fields)
        assert refused.status_code == 422 and "being worked on already" in refused.text
        assert len(runs.every()) == 1
        asked = visitor.tell("/api/runs", {"source": str(repo)})
        assert asked.status_code == 409 and asked.json()["remedy"]
    until(lambda: runs.status(runs.every()[0]) == "interrupted")  # the server ended, and put its run down


def test_a_damaged_report_is_said_and_not_a_fault(served: Served, dry_run, repo: Path) -> None:
    folder = dry_run(repo)
    folder.report_json.write_text("{")
    answer = served.visit().get(f"/runs/{folder.id}")
    assert answer.status_code == 400 and "cannot be read" in answer.text
    assert served.visit().get("/runs").status_code == 200


def test_a_report_without_its_tree_is_shown_without_patches(served: Served, dry_run, repo: Path) -> None:
    folder = dry_run(repo)
    runs.remove_tree(folder.tree)
    answer = served.visit().get(f"/runs/{folder.id}")
    assert answer.status_code == 200 and "its patch cannot be shown" in answer.text
    assert served.visit().get(f"/runs/{folder.id}/files/migration.patch").status_code == 400


def test_plots_and_tables_of_what_was_compared_and_traced(served: Served, dry_run, repo: Path) -> None:
    folder = dry_run(repo)
    report = json.loads(folder.report_json.read_bytes())
    names = {f"net.{number}": 0.5 for number in range(30)} | {"net.head": 40.0, "net.nan": "inf"}
    report["verdicts"][3]["figures"] = {
        "float32": {"compared": 32, "worst": "inf", "worst_at": "net.nan", "by_name": names}
    }
    report["runs"] = [
        {"entry": "python train.py", "attempt": 1, "outcome": "completed", "explanation": "", "losses": [3, 2, 1.5]}
    ]
    folder.report_json.write_text(json.dumps(report))
    text = served.visit().get(f"/runs/{folder.id}").text
    assert text.count('<rect class="mark over"') == 2 and text.count('<circle class="mark"') == 30 + 3
    assert "step 3: 1.5" in text and "net.head: 40" in text and "limit 10" in text


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_pages_fit_a_phone_and_say_what_they_are(browser, served: Served, dry_run, repo: Path, width, scheme) -> None:
    folder = dry_run(repo)
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    tab = context.new_page()
    for path in ("/runs", f"/runs/{folder.id}", "/runs/new", "/chats", "/nothing"):
        tab.goto(served.url + path)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, path
        assert tab.locator("h1").count() == 1 and tab.locator("main").count() == 1, path
        assert tab.evaluate("document.documentElement.lang") == "en"
        unnamed = tab.evaluate(
            """[...document.querySelectorAll('input:not([type=hidden]), select, textarea')]
            .filter(one => !one.labels.length).map(one => one.id || one.name)"""
        )
        assert unnamed == [], path
        keep(tab, f"page{path.replace(folder.id, 'ID').replace('/', '-')}-{scheme}-{width}")
    tab.goto(f"{served.url}/runs")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert tab.locator(".skip").bounding_box()["y"] >= 0
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    dark = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (dark == "rgb(20, 23, 26)") == (scheme == "dark")
    context.close()


def test_a_tuning_is_gone_on_with_as_a_tuning(served: Served, repo: Path, cli, monkeypatch) -> None:
    asked = Request(source=str(repo), created=runs.now(), target="v6e-1", tune=TuneOptions())
    folder = runs.create(asked, str(repo))
    folder.update(status="interrupted")
    begun: list[tuple[str, ...]] = []

    def start(*words: str, **_options: object) -> subprocess.Popen[bytes]:
        begun.append(words)
        return subprocess.Popen(["true"])

    monkeypatch.setattr(children, "start", start)
    assert served.visit().fill(f"/runs/{folder.id}/resume").status_code == 303
    assert begun == [("agents.cli", "tune", "--resume", folder.id)]
    refused = cli("migrate", "--resume", folder.id)
    assert refused.code == 2 and f"torchtpu-agent tune --resume {folder.id}" in refused.err
