"""Attacks on the pages, each tried: strangers, forged forms, foreign names, fixed cookies, paths, scripts in texts."""

from __future__ import annotations

import html.parser
import json
import os
import re
import socket
from pathlib import Path

import pytest
from pydantic import SecretStr

from agents import runs, sessions
from agents.web.app import create_app
from agents.web.guard import MOST_BYTES
from agents.web.settings import ServeSettings
from agents.web.visitors import COOKIE, Visitors, secret_of
from tests.agents.conftest import commit
from tools.errors import UserError

EVIL = "\"'><script src=//evil.example/x.js></script><img src=x onerror=window.pwned=1>"


class Markup(html.parser.HTMLParser):
    """Notes what a browser would run or load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.bad: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            outside = name in ("src", "href", "action") and re.match(r"\s*(//|https?:|javascript:|data:)", value or "")
            if name.startswith("on") or name == "style" or outside:
                self.bad.append(f"{tag} {name}={value}")
        if tag in ("iframe", "object", "embed", "style"):
            self.bad.append(tag)


def raw(url: str, head: str, body: bytes = b"") -> str:
    """The first line of the answer to a request that no client would send."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 20) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
        return connection.recv(4096).decode("latin-1").splitlines()[0]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com"])
def test_nothing_is_served_to_other_machines_without_a_token(host: str, cli) -> None:
    ended = cli("serve", "--host", host)
    assert ended.code == 2 and "can be reached from other machines" in ended.err and "TORCHTPU_TOKEN" in ended.err


def test_a_token_is_long_and_allows_any_address(cli, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("short\n")
    assert "can be guessed" in cli("serve", "--host", "0.0.0.0", "--token-file", tmp_path / "token").err
    (tmp_path / "token").write_text("\n")
    assert "is empty" in cli("serve", "--token-file", tmp_path / "token").err
    assert "cannot be read" in cli("serve", "--token-file", tmp_path / "none").err
    create_app(ServeSettings(host="0.0.0.0", token=SecretStr("a-token-that-nobody-knows")))


def test_a_name_that_resolves_to_this_machine_is_not_answered(served, locked) -> None:
    for name in ("evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:80"):
        answer = served.visit().get("/runs", headers={"host": name})
        assert answer.status_code in (400, 421), name
    for name in ("localhost", "localhost:99", "127.0.0.1", "[::1]:8700"):
        assert served.visit().get("/runs", headers={"host": name}).status_code == 200, name
    assert locked.signed_in().get("/runs", headers={"host": "runs.example"}).status_code == 200


def test_without_the_token_nothing_is_told(locked) -> None:
    stranger = locked.visit()
    for path in ("/runs", "/chats", "/runs/new", "/"):
        answer = stranger.get(path)
        assert answer.status_code == 303 and answer.headers["location"].startswith("/sign-in"), path
    for path in ("/api/runs", "/api/openapi.json", "/metrics", "/api/nothing"):
        assert stranger.get(path).status_code == 401, path
    assert stranger.post("/runs", data={"csrf": stranger.csrf("/sign-in")}).status_code == 401
    assert stranger.get("/healthz").status_code == 200
    wrong = stranger.fill("/sign-in", token="not-the-token-at-all")
    assert wrong.status_code == 401 and "not the token" in wrong.text
    assert stranger.get("/runs").status_code == 303
    bearer = {"authorization": f"Bearer {locked.token}"}
    assert stranger.get("/api/runs", headers=bearer).json() == []
    assert stranger.get("/api/runs", headers={"authorization": "Bearer no"}).status_code == 401


def test_tokens_cannot_be_tried_one_after_the_other(locked) -> None:
    stranger = locked.visit()
    seen = [stranger.fill("/sign-in", token=f"guess-{number}").status_code for number in range(12)]
    assert seen == [401] * 10 + [429] * 2
    assert stranger.fill("/sign-in", token=locked.token).status_code == 429


def test_signing_in_makes_a_cookie_that_nobody_knew_before(locked) -> None:
    """An attacker who planted a cookie, also one that we had signed for them, is not signed in with their victim."""
    attacker = locked.visit()
    attacker.get("/sign-in")
    planted = attacker.cookies[COOKIE]
    victim = locked.visit(cookies={COOKIE: planted})
    answer = victim.fill("/sign-in", token=locked.token)
    assert answer.status_code == 303
    mine = re.search(rf"{COOKIE}=([^;]+); (.*)", answer.headers["set-cookie"])
    assert mine and mine[1] != planted and mine[1].split(".")[0] != planted.split(".")[0]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(mine[2].split("; "))
    assert attacker.get("/runs").status_code == 303
    assert locked.visit(cookies={COOKIE: mine[1]}).get("/runs").status_code == 200


def test_a_cookie_cannot_be_made_or_changed(locked) -> None:
    mine = locked.signed_in()
    name, expires, signed, mark = mine.cookies[COOKIE].split(".")
    outsider = locked.visit()
    outsider.get("/sign-in")
    other = outsider.cookies[COOKIE].split(".")
    for forged in (
        f"{name}.{expires}.{signed}.{'0' * 64}", f"{name}.{int(expires) + 1}.{signed}.{mark}", "a.9999999999.1.", "",
        f"{other[0]}.{other[1]}.1.{other[3]}", "é.1.1.é", "." * 50,
    ):  # fmt: skip
        assert locked.visit(headers={"cookie": f"{COOKIE}={forged}".encode()}).get("/runs").status_code == 303, forged
    another = Visitors(secret_of(runs.home() / "web"), SecretStr("another-token-than-before"))
    assert another.read(mine.cookies[COOKIE]) is None


def test_signing_out_ends_copies_of_the_cookie_too(locked) -> None:
    mine = locked.signed_in()
    copy = locked.visit(cookies={COOKIE: mine.cookies[COOKIE]})
    assert copy.get("/runs").status_code == 200
    assert mine.fill("/sign-out").headers["location"] == "/sign-in"
    assert copy.get("/runs").status_code == 303


def test_signing_in_does_not_lead_elsewhere(locked) -> None:
    for where in ("//evil.example", "https://evil.example", "/\\evil.example", "/runs/../..//evil", "javascript:x"):
        answer = locked.visit().fill("/sign-in", token=locked.token, next=where)
        assert answer.headers["location"] == "/", where
    assert locked.visit().fill("/sign-in", token=locked.token, next="/runs/abc").headers["location"] == "/runs/abc"


def every_route(app):
    """All routes; what was included is one route of the application, with a router of its own."""
    for route in app.routes:
        router = getattr(route, "original_router", None)
        yield from router.routes if router is not None else [route]


def changes(app) -> list[tuple[str, str]]:
    """Every path that changes something, with its method, as it would be asked for."""
    found = []
    for route in every_route(app):
        for method in getattr(route, "methods", None) or ():
            if method not in ("GET", "HEAD", "OPTIONS"):
                path = route.path.replace("{action}", "stop" if "run_id" in route.path else "close")
                found.append((method, re.sub(r"{\w+}", "abc", path)))
    return found


def test_every_change_wants_the_word_of_a_page_of_ours(served, locked) -> None:
    """Each POST is tried without the word, with another visitor's, and from another site with the right one."""
    every = [pair for pair in changes(served._app) if not pair[1].startswith("/github/")]
    assert len(every) >= 10
    mine, other = served.visit(), served.visit()
    word, foreign = mine.csrf(), other.csrf()
    for method, path in every:
        for data, headers in (
            ({}, {}),
            ({"csrf": "0" * 64}, {}),
            ({"csrf": foreign}, {}),
            ({}, {"x-csrf-token": foreign}),
            ({"csrf": word}, {"origin": "https://evil.example"}),
            ({"csrf": word}, {"origin": "null"}),
            ({"csrf": word}, {"origin": served.url.replace("127.0.0.1", "localhost")}),
            ({"csrf": word}, {"sec-fetch-site": "cross-site"}),
            ({"csrf": word}, {"sec-fetch-site": "same-site"}),
        ):
            answer = mine.request(method, path, data=data, headers=headers)
            assert answer.status_code == 403, (method, path, data, headers, answer.text)
        friend = served.visit()  # a new one: signing out ends what its cookie was good for
        passed = friend.request(method, path, data={"csrf": friend.csrf()}, headers={"origin": served.url})
        assert passed.status_code != 403, (method, path, passed.text)


def test_no_page_changes_anything_by_being_looked_at(served) -> None:
    for route in every_route(served._app):
        methods = set(getattr(route, "methods", None) or ())
        assert not (methods & {"GET", "HEAD"} and methods - {"GET", "HEAD"}), route.path


PATHS = [
    "/runs/../../etc/passwd", "/runs/..%2f..%2fetc%2fpasswd", "/runs/%2e%2e/web/secret", "/runs/a/files/..%2frun.json",
    "/runs/{id}/files/..%2f..%2fweb%2fsecret", "/runs/{id}/files/request.json", "/runs/{id}/files/state.sqlite",
    "/runs/{id}/files/run-1-1.log%00", "/runs/{id}/files/evil.log", "/runs/{id}/profile/..%2f1", "/chats/..",
    "/chats/..%2fruns", "/chats/%2e%2e/export", "/chats/../runs/{id}", "/static/../app.py", "/static/..%2fapp.py",
    "/static/%2e%2e/guard.py", "/runs/%00", "/chats/a%00b", "/static//etc/passwd", "/runs/{id}/files/run-9-9.log",
]  # fmt: skip


def test_no_path_leads_out_of_what_is_served(served, dry_run, repo: Path) -> None:
    folder = dry_run(repo)
    (folder.path / "run-9-9.log").symlink_to("/etc/passwd")
    (folder.path / "evil.log").write_text("root:secret")
    for path in PATHS:
        where = path.replace("{id}", folder.id)
        status = raw(served.url, f"GET {where} HTTP/1.1\nHost: localhost\nConnection: close")
        assert re.search(r" (303|307|400|404|405|422) ", status), (path, status)


SOURCES = [
    "", ".", "repo", "/no/such/folder", "file:///etc", "ext::sh -c touch% /tmp/pwned", "-u/evil", "--upload-pack=x",
    "ssh://-oProxyCommand=touch/x", "git@-evil:x", "http://", "https://exa mple.com/x", "javascript:alert(1)",
    "/etc/passwd", "\x00", "/tmp/\x00", "http://a/\nb", "fd::17/foo", "data:,x", "a" * 5000,
]  # fmt: skip


def test_only_folders_and_git_addresses_are_taken(served) -> None:
    mine = served.visit()
    for source in SOURCES:
        answer = mine.fill("/runs", source=source)
        assert answer.status_code == 422 and 'role="alert"' in answer.text, source
        chat = mine.fill("/chats", source=source)
        assert chat.status_code == 422 and 'role="alert"' in chat.text, source
    assert runs.every() == [] and sessions.every() == []


def test_long_and_broken_bodies_are_refused(served) -> None:
    mine = served.visit()
    assert mine.post("/runs", content=b"x" * (MOST_BYTES + 1)).status_code == 413
    head = "POST /runs HTTP/1.1\nHost: localhost\nConnection: close\n"
    assert " 413 " in raw(served.url, f"{head}Content-Length: 99999999999")
    pieces = b"".join(b"10000\r\n" + b"y" * 0x10000 + b"\r\n" for _ in range(17)) + b"0\r\n\r\n"
    assert " 413 " in raw(served.url, f"{head}Transfer-Encoding: chunked", pieces)
    deep = b"[" * 200_000
    sent = {"content-type": "application/json", "x-csrf-token": mine.csrf()}
    assert mine.post("/api/runs", content=deep, headers=sent).status_code in (400, 422)
    assert mine.get("/runs").status_code == 200


def test_every_answer_has_the_headers_that_keep_scripts_out(served) -> None:
    mine = served.visit()
    for path in ("/runs", "/nothing", "/api/runs", "/static/chat.js", "/runs/zz", "/healthz", "/metrics"):
        headers = mine.get(path).headers
        policy = headers["content-security-policy"]
        assert "script-src 'self'" in policy and "unsafe" not in policy and "default-src 'none'" in policy, path
        assert headers["x-content-type-options"] == "nosniff" and "referrer-policy" in headers
        assert "frame-ancestors 'none'" in policy


def hostile(folder: runs.RunFolder) -> None:
    """Put markup into every text of a report that comes from a repository, a program or a model."""
    texts = (
        "reason", "message", "explanation", "cause", "remedy", "note", "title", "source", "why", "command", "review",
        "merge", "discard", "branch", "path", "entry", "name", "place", "said", "model", "stop", "where", "kind",
    )  # fmt: skip

    def spoil(value: object, key: str = "") -> object:
        if isinstance(value, dict):
            return {
                name: one if (name, key) in (("kind", "delivery"), ("kind", "checkout")) else spoil(one, name)
                for name, one in value.items()
            }
        if isinstance(value, list):
            return [spoil(one, key) for one in value]
        return f"{value}{EVIL}" if isinstance(value, str) and (key in texts or key in ("notes", "evidence")) else value

    report = json.loads(folder.report_json.read_bytes())
    report["notes"] = ["a note"]
    report["diagnoses"] = [{"kind": "x", "owner": "code", "cause": "c", "remedy": "r", "where": "a.py:1"}]
    report["runs"] = [
        {
            "entry": "python train.py", "attempt": 1, "outcome": "completed", "explanation": "it ended",
            "losses": [1.0, 0.5], "warnings": [{"message": "w", "file": "f"}], "command": "c", "log": "run-1-1.log",
        }
    ]  # fmt: skip
    figures = {"compared": 2, "worst": 99.0, "worst_at": "m", "by_name": {f"layer{EVIL}": 99.0, "b": "inf"}}
    report["verdicts"][3] |= {"figures": {"float32": figures}, "problems": [
        {"stage": "forward", "kind": "error", "message": "off", "name": "m", "place": "a.py:1"}]}  # fmt: skip
    report["assistance"] = {"model": "m", "stop": "answered", "said": "done", "reason": "r"}
    folder.report_json.write_text(json.dumps(spoil(report)))
    (folder.path / "trace.json").write_text(json.dumps({
        "outcome": "completed", "explanation": "x", "processes": [{
            "pid": 1, "device": f"cpu{EVIL}", "seconds": 1, "steps": 1,
            "syncs": [{"kind": EVIL, "place": EVIL, "phase": "program", "count": 1, "steps": [1]}]}],
    }))  # fmt: skip


def evil_repository(folder: Path) -> Path:
    repo = commit(folder, train_py="import torch\n")
    name = "<img src=x onerror=window.pwned=2>.py"
    (repo / name).write_text(f"import torch\nx = torch.ones(2).cuda()  # {EVIL}\n")
    return commit(repo)


def test_markup_in_names_code_and_messages_stays_text(served, dry_run, tmp_path: Path) -> None:
    folder = dry_run(evil_repository(tmp_path / "a<b>\"'&"))
    hostile(folder)
    folder.update(source=f"/x/{EVIL}", headline=EVIL)
    mine = served.visit()
    for path in (f"/runs/{folder.id}", "/runs", f"/runs?text={EVIL}", "/runs/new?source=" + EVIL, f"/{EVIL}"):
        text = mine.get(path).text
        assert Markup(text).bad == [], path
        assert "window.pwned=1>" not in text, path
    answer = mine.fill("/runs", source=EVIL, entries=EVIL, target=EVIL, model=EVIL)
    assert answer.status_code == 422 and Markup(answer.text).bad == []
    told = mine.get(f"/runs/{folder.id}/files/report.json")
    assert told.headers["content-type"].startswith("application/json")


def test_no_script_of_a_repository_runs_in_a_browser(served, dry_run, tmp_path: Path, tab) -> None:
    folder = dry_run(evil_repository(tmp_path / "repo"))
    hostile(folder)
    tab.goto(f"{served.url}/runs/{folder.id}")
    tab.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    assert "onerror=window.pwned=2" in tab.inner_text("#changed")
    assert tab.evaluate("window.pwned") is None


def test_the_secret_is_for_its_owner_only(served) -> None:
    served.visit().get("/runs")
    path = runs.home() / "web" / "secret"
    assert path.stat().st_mode & 0o077 == 0 and path.stat().st_size == 32
    assert path.parent.stat().st_mode & 0o077 == 0 or os.name == "nt"


def test_settings_are_checked_by_the_application_too() -> None:
    with pytest.raises(UserError):
        create_app(ServeSettings(host="0.0.0.0"))
