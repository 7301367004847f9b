"""The webhook and a worker over real HTTP: who is answered, what happens once, what outlasts faults."""

from __future__ import annotations

import json

import httpx
import pytest

from evals.fake_github.deliver import comment_event, headers_of, pull_event, push_event, rerequest_event
from evals.fake_github.state import Fault
from tests.agents.bot.conftest import SECRET, TRAIN, Bot, until


def post(bot: Bot, body: bytes, headers: dict[str, str]) -> httpx.Response:
    return httpx.post(f"{bot.url}/github/webhook", content=body, headers=headers, timeout=30)


def test_deliveries_that_are_not_taken(bot: Bot) -> None:
    number = bot.state.open_issue(bot.repository)
    event, payload = comment_event(bot.state, bot.repository, number, "ann", "/torchtpu help")
    body = json.dumps(payload).encode()
    good = headers_of(event, body, SECRET)
    assert post(bot, body, {**good, "x-hub-signature-256": "sha256=" + "0" * 64}).status_code == 401
    assert post(bot, body, {k: v for k, v in good.items() if k != "x-hub-signature-256"}).status_code == 401
    assert post(bot, body + b" ", good).status_code == 401
    assert post(bot, body, headers_of(event, body, "another secret of ours")).status_code == 401
    assert post(bot, body, {**good, "x-github-delivery": "../../x"}).status_code == 400
    assert post(bot, body, {**good, "content-type": "application/x-www-form-urlencoded"}).status_code == 400
    deep = b'{"a":' * 5000
    assert post(bot, deep, headers_of(event, deep, SECRET)).status_code == 400
    huge = b"x" * (25 * 2**20 + 1)
    assert post(bot, huge, headers_of(event, huge, SECRET)).status_code == 413
    wrong = json.dumps({**payload, "repository": {"name": "..", "owner": {"login": "team"}}}).encode()
    assert post(bot, wrong, headers_of(event, wrong, SECRET)).status_code == 400
    assert post(bot, body, good).json()["taken"]
    replayed = post(bot, body, headers_of(event, body, SECRET))
    assert replayed.status_code == 202 and not replayed.json()["taken"], "the same body under another id"
    assert post(bot, body, good).json()["taken"], "a redelivery is welcome"


@pytest.mark.usefixtures("worker")
def test_quick_commands(bot: Bot) -> None:
    number = bot.state.open_issue(bot.repository)
    for count, (body, said) in enumerate((
        ("/torchtpu help", "draft pull request"),
        ("/torchtpu explain TPU104", "moves to CUDA"),
        ("/torchtpu status", "no job in this thread"),
        ("/torchtpu stop", "Nothing is being worked on"),
        ("/torchtpu launch missiles @everybody", "There is no command `launch`"),
        ("/torchtpu explain", "no job in this thread"),
    ), 1):  # fmt: skip
        bot.comment(number, body)
        until(lambda count=count: len(bot.said(number)) == count)
        assert said in bot.said(number)[-1]
    assert not any("@everybody" in text for text in bot.said(number))
    assert len(bot.said(number)) == 6


@pytest.mark.usefixtures("worker")
def test_strangers_are_told_once(bot: Bot) -> None:
    number = bot.state.open_issue(bot.repository)
    for _ in range(3):
        bot.comment(number, "/torchtpu migrate", user="mallory")
    until(lambda: len(bot.effects("reaction")) == 3)
    until(lambda: bot.said(number))
    assert len(bot.said(number)) == 1 and "no write access" in bot.said(number)[0]
    assert {one["content"] for one in bot.repository.reactions} == {"-1"}
    assert not bot.effects("push") and not bot.repository.pulls


@pytest.mark.usefixtures("worker")
def test_what_goes_wrong_at_github_is_outlasted_and_nothing_is_said_twice(bot: Bot) -> None:
    faults = bot.state.faults
    faults += [Fault("POST", "access_tokens", "status", status=503), Fault("GET", "/collaborators", "truncated")]
    faults += [Fault("POST", "/reactions", "secondary", seconds=1), Fault("POST", "/reactions", "reset", after=True)]
    faults += [Fault("GET", "/comments", "status"), Fault("GET", "/comments", "reset")]
    # The comment is written each time, and the answer never comes.
    faults += [Fault("POST", "/comments", kind, after=True, seconds=4) for kind in ("reset",)]
    number = bot.state.open_issue(bot.repository)
    bot.comment(number, "/torchtpu help")
    until(lambda: bot.said(number) and not any(fault.times for fault in faults))
    second = bot.state.open_issue(bot.repository)
    for kind in ("truncated", "timeout", "status"):
        faults.append(Fault("POST", f"/issues/{second}/comments", kind, after=kind != "timeout", seconds=4))
        bot.comment(second, f"/torchtpu explain TPU{104 if kind == 'status' else 101 if kind == 'timeout' else 103}")
    until(lambda: len(bot.said(second)) == 3 and not any(fault.times for fault in faults))
    assert len(bot.said(number)) == 1
    assert len(bot.effects("reaction")) == 4


@pytest.mark.usefixtures("worker")
def test_a_token_that_is_revoked_is_renewed(bot: Bot) -> None:
    number = bot.state.open_issue(bot.repository)
    bot.comment(number, "/torchtpu help")
    until(lambda: bot.said(number))
    bot.state.tokens.clear()
    bot.comment(number, "/torchtpu explain TPU104")
    until(lambda: len(bot.said(number)) == 2)


@pytest.mark.usefixtures("worker")
def test_pages_are_followed_before_anything_is_written(bot: Bot) -> None:
    number = bot.state.open_issue(bot.repository)
    delivery = bot.comment(number, "/torchtpu help")
    until(lambda: bot.said(number))
    for text in range(70):
        bot.state.add_comment(bot.repository, number, "ann", f"comment {text}")
    assert delivery
    for one in list(bot.repository.comments.values()):
        if one["performed_via_github_app"]:  # ours goes to the last page
            bot.repository.comments[one["id"]] = bot.repository.comments.pop(one["id"])
    from agents.bot.closing import Bell
    from agents.bot.github import App
    from agents.bot.writes import comment

    with App(bot.settings, Bell()).place(77, "team", "project") as place:
        from agents.bot.jobs import Job

        comment(place, number, f"job:{Job(id=delivery, kind='command', installation=77).run}", "edited")
    assert len(bot.said(number)) == 1 and bot.said(number)[0].startswith("edited")


@pytest.mark.usefixtures("worker")
def test_a_change_is_judged_by_what_it_adds(bot: Bot) -> None:
    state, repository = bot.state, bot.repository
    state.commit_files(repository, "worse", {"more.py": TRAIN * 60}, "worse", base="main")
    state.commit_files(repository, "fine", {"README.md": "# Words\n"}, "fine", base="main")
    worse, fine = state.open_pull(repository, "worse"), state.open_pull(repository, "fine")
    event = pull_event(repository, worse, "ann")
    bot.deliver(event)
    bot.deliver(pull_event(repository, fine, "ann"))
    done = until(
        lambda: [c for c in repository.checks.values() if c["conclusion"]][:2] if len(repository.sarifs) == 2 else None
    )
    by_sha = {check["head_sha"]: check for check in done}
    bad, good = by_sha[repository.head("worse")], by_sha[repository.head("fine")]
    assert bad["conclusion"] == "failure" and len(bad["annotations"]) > 50
    lines = [(one["path"], one["start_line"]) for one in bad["annotations"]]
    assert len(lines) == len(set(lines)) and {path for path, _ in lines} == {"more.py"}
    assert good["conclusion"] == "success" and "adds nothing" in good["output"]["title"]
    bot.deliver(rerequest_event(repository, bad["id"], worse, "ann"))
    until(lambda: len([c for c in repository.checks.values() if c["conclusion"]]) == 3)
    assert not bot.said(worse)


@pytest.mark.usefixtures("worker")
def test_forks_and_strangers_get_no_scan_unless_the_repository_says_so(bot: Bot) -> None:
    state, repository = bot.state, bot.repository
    state.commit_files(repository, "theirs", {"more.py": TRAIN}, "theirs", base="main")
    first = state.open_pull(repository, "theirs", fork="mallory")
    bot.deliver(pull_event(repository, first, "mallory"))
    check = until(lambda: list(repository.checks.values()))[0]
    until(lambda: check["conclusion"])
    assert check["conclusion"] == "neutral" and "no write access" in check["output"]["title"]
    bot.comment(first, "/torchtpu migrate")
    until(lambda: any("comes from a fork" in text for text in bot.said(first)))
    assert not bot.effects("push")
    state.commit_files(repository, "main", {".github/torchtpu.yml": "pull-requests:\n  anyone: true\n"}, "open")
    second = state.open_pull(repository, "theirs", fork="mallory")
    bot.deliver(pull_event(repository, second, "mallory"))
    until(lambda: any(c["conclusion"] == "failure" for c in repository.checks.values()))
    assert not repository.sarifs, "nothing of a fork goes to code scanning"


@pytest.mark.usefixtures("worker")
def test_wrong_settings_and_spent_budgets_are_told(bot: Bot) -> None:
    state, repository = bot.state, bot.repository
    number = state.open_issue(repository)
    state.commit_files(repository, "main", {".github/torchtpu.yml": "sarif: maybe\n"}, "wrong")
    bot.comment(number, "/torchtpu scan")
    until(lambda: any("`sarif`" in text for text in bot.said(number)))
    state.commit_files(repository, "main", {".github/torchtpu.yml": "budget:\n  jobs: 0\n"}, "none")
    bot.comment(number, "/torchtpu scan")
    until(lambda: any("has used its 0 jobs" in text for text in bot.said(number)))
    assert not bot.effects("check")


@pytest.mark.usefixtures("worker")
def test_scan_explain_fix_in_one_thread(bot: Bot) -> None:
    state, repository = bot.state, bot.repository
    number = state.open_issue(repository)
    repository.code_scanning = False
    bot.comment(number, "/torchtpu scan")
    text = until(lambda: [said for said in bot.said(number) if "SARIF" in said])[0]
    assert "places to change" in text and "not uploaded: Code scanning is not enabled" in text
    assert next(iter(repository.checks.values()))["annotations"]
    bot.comment(number, "/torchtpu explain 1")
    until(lambda: any("TPU104" in said and "Before:" in said for said in bot.said(number)))
    bot.comment(number, "/torchtpu fix 1")
    pull = until(lambda: list(repository.pulls.values()))[0]
    fixed = repository.file("hello.py", pull["head"]["ref"]), repository.file("train.py", pull["head"]["ref"])
    assert sum(b".cuda()" not in (one or b".cuda()") for one in fixed) == 1, "one finding, and no other"
    bot.comment(number, "/torchtpu fix 99")
    until(lambda: any("no finding 99" in said for said in bot.said(number)))
    bot.comment(number, "/torchtpu verify")
    until(lambda: any("ask for it in a pull request" in said for said in bot.said(number)))
    bot.comment(number, "/torchtpu status")
    until(lambda: any("| fix 1 |" in said for said in bot.said(number)))


@pytest.mark.usefixtures("worker")
def test_a_push_is_scanned_where_the_repository_wants_it(bot: Bot) -> None:
    state, repository = bot.state, bot.repository
    before = repository.head("main") or ""
    first = state.commit_files(repository, "main", {"a.txt": "x"}, "more")
    bot.deliver(push_event(repository, before, first, "ann"))
    # Settings are those of the default branch when a job begins: the first push has to have looked for them.
    until(lambda: any("torchtpu.yml" in path and status == 404 for _, path, status in list(state.requests)))
    second = state.commit_files(repository, "main", {".github/torchtpu.yml": "push:\n  scan: true\n"}, "scan")
    bot.deliver(push_event(repository, first, second, "ann"))
    check = until(lambda: [c for c in repository.checks.values() if c["conclusion"]])[0]
    assert check["head_sha"] == second and check["conclusion"] == "neutral"
