"""Reads a user's repository and builds a migration branch in a private one, never in theirs.

Git runs as a plain subprocess with an environment made here: a wrapper that inherits the caller's
`GIT_DIR`, `GIT_INDEX_FILE` or hooks would let a command started from a git hook write to the user's
repository. Two kinds of calls exist. *Reading* calls look at the user's repository with the user's own
settings, but without hooks, filters, file-system monitors or index refreshes. *Private* calls work in a
repository of ours and see no configuration of the user at all.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from tools.errors import Exit, UserError

AUTHOR = "torchtpu-agent"
EMAIL = "torchtpu-agent@localhost"

# What a user sets so that git reaches their server; everything else named GIT_* is left behind.
_KEPT = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_PROXY_COMMAND", "GIT_CONFIG_GLOBAL")
_KEPT_PREFIXES = ("GIT_SSL_", "GIT_HTTP_")

_QUIET = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
)
_PRIVATE = (
    *_QUIET,
    "commit.gpgsign=false",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.longpaths=true",
    "core.quotePath=false",
    f"user.name={AUTHOR}",
    f"user.email={EMAIL}",
)
# Outranks every .gitattributes, so that a checkout gives the bytes of the commit and an add takes
# the bytes of the file: no line-ending conversion, no LFS, no keyword expansion.
_RAW_ATTRIBUTES = "* -text !eol -filter -ident -working-tree-encoding\n"


class GitError(Exception):
    """A git command ended with an error; `stderr` says why."""

    def __init__(self, args: Sequence[str], code: int, stderr: str) -> None:
        super().__init__(f"git {' '.join(args)} ended with {code}: {stderr.strip()}")
        self.stderr = stderr.strip()
        self.code = code


class Checkout(BaseModel):
    """What is known about a user's repository, read without changing a byte of it."""

    root: str = Field(description="top of the work tree, or the git directory of a bare repository")
    objects: str = Field(description="its object store")
    prefix: str = Field(default="", description="the subdirectory that was named, '' for the whole")
    head: str | None = Field(default=None, description="commit of HEAD, None when there is no commit yet")
    branch: str | None = Field(default=None, description="current branch, None when HEAD is detached")
    bare: bool = False
    linked: bool = Field(default=False, description="it is one of several work trees of a repository")
    shallow: str | None = Field(default=None, description="its shallow file, if it is a shallow clone")
    object_format: str = "sha1"
    modified: list[str] = Field(default=[], description="tracked files with uncommitted changes")
    untracked: list[str] = Field(default=[], description="untracked, not ignored; folders end with /")
    submodules: list[str] = []
    writable: bool = True


class Commit(BaseModel):
    """One commit of the migration branch."""

    sha: str
    rule: str
    title: str
    files: list[str]
    findings: int


_ADDRESS = re.compile(r"(?:https?|ssh|git|file)://|[\w.-]+@[\w.-]+:(?!//)")
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


def die_with_parent(by: signal.Signals = signal.SIGKILL) -> None:
    """Runs in the child: a git command of a killed run must not go on beside the resumed one."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, by)


def _environment(private: bool, extra: Mapping[str, str]) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    if private:
        env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1"}
    else:
        env |= {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}
    env |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_PAGER": "cat"}
    return env | dict(extra)


def run_git(
    cwd: Path,
    *args: str,
    private: bool = False,
    config: Iterable[str] = (),
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    timeout: float | None = None,
) -> bytes:
    """Run one git command and return its standard output.

    Args:
        cwd: Where it runs.
        args: The command and its arguments.
        private: Whether `cwd` is a repository of ours, to be handled without any user configuration.
        config: Further `name=value` settings for this command.
        env: Further environment variables.
        stdin: Its standard input; none by default.
        timeout: Seconds after which it is ended.

    Raises:
        GitError: It ended with an error.
        UserError: Git is not installed.
    """
    settings = [*(_PRIVATE if private else _QUIET), *config]
    command = ["git", *(part for setting in settings for part in ("-c", setting)), *args]
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=_environment(private, env or {}),
            input=stdin if stdin is not None else b"",
            capture_output=True,
            timeout=timeout,
            preexec_fn=die_with_parent if private and _LIBC else None,
            check=False,
        )
    except FileNotFoundError as error:
        if not cwd.is_dir():
            raise
        raise UserError("git is not installed.", "Install git and try again.", Exit.ENVIRONMENT) from error
    if done.returncode != 0:
        raise GitError(args, done.returncode, done.stderr.decode(errors="replace"))
    return done.stdout


def _read(cwd: Path, *args: str, config: Iterable[str] = ()) -> str:
    return os.fsdecode(run_git(cwd, *args, config=config)).rstrip("\n")


def _ask(cwd: Path, *args: str) -> str | None:
    try:
        return _read(cwd, *args)
    except GitError:
        return None


def inspect(path: Path) -> Checkout | None:
    """Describe the repository that `path` lies in, or return None when it lies in none.

    A folder of which the repository around it tracks nothing counts as lying in none.

    Raises:
        UserError: Git refuses to read it, or `path` is inside a `.git` folder.
    """
    try:
        facts = _read(path, "rev-parse", "--is-bare-repository", "--is-inside-git-dir", "--absolute-git-dir")
    except GitError as error:
        if "not a git repository" in error.stderr:
            return None
        raise _unreadable(path, error) from error
    bare, inside, git_dir = facts.split("\n", 2)
    if bare != "true" and inside == "true":
        raise UserError(f"{path} is inside a .git folder.", "Name the folder of the checkout instead.")
    try:
        checkout = _describe(path, bare == "true", Path(git_dir))
    except GitError as error:
        raise _unreadable(path, error) from error
    if checkout.head and checkout.prefix and not _tracks(Path(checkout.root), checkout.prefix):
        return None
    return checkout


def refused(path: Path) -> Path | None:
    """The `.git` nearest to `path` where git does not take it for a repository; None where all is well or none is."""
    if _ask(path, "rev-parse", "--git-dir") is not None:
        return None
    return next((place for folder in (path, *path.parents) if os.path.lexists(place := folder / ".git")), None)


def _unreadable(path: Path, error: GitError) -> UserError:
    if "dubious ownership" in error.stderr:
        return UserError(
            f"Git does not trust {path}: it belongs to another user.",
            f"If you trust it: git config --global --add safe.directory '{path}'",
        )
    return UserError(f"Git cannot read {path}: {error.stderr}", "Repair the repository first; see: git fsck")


def _describe(path: Path, bare: bool, git_dir: Path) -> Checkout:
    root = git_dir if bare else Path(_read(path, "rev-parse", "--show-toplevel"))
    common = (path / _read(path, "rev-parse", "--git-common-dir")).resolve()
    shallow = common / "shallow"
    head = _ask(path, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    checkout = Checkout(
        root=str(root),
        objects=str((path / _read(path, "rev-parse", "--git-path", "objects")).resolve()),
        prefix="" if bare else _read(path, "rev-parse", "--show-prefix").rstrip("/"),
        head=head,
        branch=_ask(path, "symbolic-ref", "--quiet", "--short", "HEAD"),
        bare=bare,
        linked=common != git_dir.resolve(),
        shallow=str(shallow) if shallow.is_file() else None,
        object_format=_ask(path, "rev-parse", "--show-object-format") or "sha1",
        writable=all(os.access(common / part, os.W_OK) for part in ("objects", "refs")),
    )
    if head is None:
        return checkout
    if not bare:
        checkout.modified, checkout.untracked = _status(root)
    checkout.submodules = _submodules(root, head)
    return checkout


def _tracks(root: Path, prefix: str) -> bool:
    return bool(_read(root, "ls-tree", "HEAD", "--", f"{prefix}/"))


def _status(root: Path) -> tuple[list[str], list[str]]:
    listing = os.fsdecode(
        run_git(root, "status", "--porcelain=v1", "-z", "--ignore-submodules=all", config=_no_filters(root))
    )
    modified: list[str] = []
    untracked: list[str] = []
    entries = iter(listing.split("\0"))
    for entry in entries:
        if not entry:
            continue
        state, name = entry[:2], entry[3:]
        if "R" in state or "C" in state:
            next(entries, None)
        (untracked if state == "??" else modified).append(name)
    return modified, untracked


def _no_filters(root: Path) -> list[str]:
    """Settings that keep `git status` from running the clean filters the user has configured."""
    names = _ask(root, "config", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process)$") or ""
    filters = {name.rsplit(".", 1)[0] for name in names.splitlines()}
    return [f"{name}.{key}" for name in sorted(filters) for key in ("clean=", "smudge=", "process=", "required=false")]


def _submodules(root: Path, head: str) -> list[str]:
    listing = os.fsdecode(run_git(root, "ls-tree", "-r", "-z", "--full-tree", head))
    return [line.split("\t", 1)[1] for line in listing.split("\0") if line.startswith("160000 ")]


def make_private(checkout: Checkout, tree: Path) -> None:
    """Make a repository of ours at `tree` that borrows the user's objects, with their HEAD checked out.

    Nothing runs in the user's repository: its objects are read where they lie, so that bare
    repositories, linked work trees and shallow clones need no case of their own.

    Raises:
        UserError: Objects of the commit are missing, as in a partial clone that is offline.
    """
    assert checkout.head is not None
    tree.mkdir(parents=True)
    own = ("init", "--quiet", "--template=", f"--object-format={checkout.object_format}")
    run_git(tree, *own, "--initial-branch=unborn", private=True)
    git_dir = tree / ".git"
    (git_dir / "objects/info").mkdir(exist_ok=True)
    (git_dir / "objects/info/alternates").write_bytes(_one_line(checkout.objects) + b"\n")
    if checkout.shallow:
        (git_dir / "shallow").write_bytes(Path(checkout.shallow).read_bytes())
    _take_bytes_as_they_are(tree)
    try:
        run_git(tree, "checkout", "--quiet", "--force", "--detach", checkout.head, private=True)
    except GitError as error:
        raise UserError(
            f"HEAD of {checkout.root} cannot be checked out: {error.stderr.splitlines()[0]}",
            "The clone may be partial (git fetch --refetch --no-filter) or damaged (git fsck).",
        ) from error


def _one_line(path: str) -> bytes:
    """A path as git's line-wise files hold it: quoted like a C string where it has a line end."""
    raw = os.fsencode(path)
    if b"\n" not in raw:
        return raw
    return b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'


def write_files(tree: Path, commit: str, into: Path) -> None:
    """Write the files of a commit of the private tree to the new folder `into`; the tree and its index stay."""
    into.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
        run_git(tree, "read-tree", commit, private=True, env=index)
        run_git(tree, "checkout-index", "--all", "--force", f"--prefix={into}/", private=True, env=index)


def make_from_folder(tree: Path, date: str) -> str:
    """Turn the files at `tree` into a repository with one commit, and return that commit."""
    run_git(tree, "init", "--quiet", "--template=", "--initial-branch=unborn", private=True)
    _take_bytes_as_they_are(tree)
    run_git(tree, "add", "--all", "--force", ".", private=True)
    return _commit(tree, "The folder as it was found\n", date)


def _take_bytes_as_they_are(tree: Path) -> None:
    (tree / ".git/info").mkdir(exist_ok=True)
    (tree / ".git/info/attributes").write_text(_RAW_ATTRIBUTES)


def clone(url: str, into: Path) -> None:
    """Clone the newest commit of `url`, with the user's own credentials and proxies.

    Raises:
        UserError: The address cannot be cloned.
    """
    allowed = {"GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file"}
    options = ("--quiet", "--depth=1", "--template=", "--no-checkout", "--no-tags")
    try:
        run_git(into.parent, "clone", *options, "--", url, str(into), env=allowed)
    except GitError as error:
        reason = error.stderr.splitlines()[-1] if error.stderr else "no reason given"
        raise UserError(
            f"{without_password(url)} cannot be cloned: {reason.replace(url, without_password(url))}",
            "Check the address, the network and your access rights with: git ls-remote <address>",
        ) from error


def is_address(text: str) -> bool:
    """Whether the text is a git URL and not a path that exists."""
    return bool(_ADDRESS.match(text)) and not Path(text).exists()


def without_password(url: str) -> str:
    """The address with user name and password left out."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}" if separator else url


def start_branch(tree: Path, branch: str, base: str) -> None:
    """Put the private tree on `branch` at `base`, whatever was there before.

    Raises:
        UserError: The commit is gone, since the repository it was borrowed from was moved or cleaned up.
    """
    for lock in (tree / ".git").rglob("*.lock"):
        lock.unlink()
    if not _has_commit(tree, base):
        raise UserError(
            f"The commit {base[:12]} that the migration started from is gone.",
            "The repository was moved, deleted or cleaned up since: start a new migration.",
        )
    run_git(tree, "checkout", "--quiet", "--force", "-B", branch, base, private=True)
    run_git(tree, "clean", "--quiet", "-ffdx", private=True)


def _has_commit(tree: Path, commit: str) -> bool:
    try:
        run_git(tree, "cat-file", "-e", f"{commit}^{{commit}}", private=True)
    except GitError:
        return False
    return True


def commit_files(tree: Path, files: Iterable[str], message: str, date: str) -> str:
    """Commit `files` (relative to `tree`) and return the commit; `date` makes it repeatable."""
    names = b"\0".join(os.fsencode(name) for name in files)
    run_git(
        tree,
        "--literal-pathspecs",
        "add",
        "--force",
        "--pathspec-from-file=-",
        "--pathspec-file-nul",
        private=True,
        stdin=names,
    )
    return _commit(tree, message, date)


def _commit(tree: Path, message: str, date: str) -> str:
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    arguments = ("commit", "--quiet", "--allow-empty", "--no-verify", "--cleanup=verbatim", "--file=-")
    run_git(tree, *arguments, private=True, env=dates, stdin=message.encode())
    return os.fsdecode(run_git(tree, "rev-parse", "HEAD", private=True)).strip()


def make_patch(tree: Path, base: str, tip: str) -> bytes:
    """All changes from `base` to `tip` as a patch that `git apply` takes at the top of the repository."""
    plain = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--binary", "--full-index")
    return run_git(tree, "diff", *plain, base, tip, private=True)


def check_branch_name(checkout: Checkout | None, branch: str) -> None:
    """Refuse a branch name that git does not take or that is in use.

    Raises:
        UserError: The name is malformed, exists, or collides with an existing branch's folder.
    """
    remedy = "Choose another with --branch."
    if _ask(Path("/"), "check-ref-format", f"refs/heads/{branch}") is None or branch.startswith("-"):
        raise UserError(f"'{branch}' is no valid branch name.", remedy)
    if checkout is None:
        return
    root = Path(checkout.root)
    parts = branch.split("/")
    for name in ("/".join(parts[: count + 1]) for count in range(len(parts))):
        if branch_commit(root, name):
            raise UserError(f"A branch named '{name}' exists in {root}.", remedy)
    if _ask(root, "for-each-ref", "--count=1", f"refs/heads/{branch}/"):
        raise UserError(f"Branches named '{branch}/...' exist in {root}.", remedy)


def branch_commit(root: Path, branch: str) -> str | None:
    """The commit that `branch` of the repository at `root` points to, or None."""
    return _ask(root, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")


def hand_over(tree: Path, root: Path, branch: str) -> str | None:
    """Give the private branch to the user's repository: its objects and one ref, nothing else.

    Doing it twice is the same as doing it once. An existing branch of that name with another
    commit is left as it is.

    Returns:
        None when the branch is there, else why it could not be given.
    """
    wanted = branch_commit(tree, branch)
    present = branch_commit(root, branch)
    if present is not None:
        return None if present == wanted else f"a branch named {branch} appeared in the meantime"
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    settings = (
        "protocol.file.allow=always",
        "fetch.writeCommitGraph=false",
        "fetch.prune=false",
        "core.alternateRefsCommand=:",
    )
    spec = f"refs/heads/{branch}:refs/heads/{branch}"
    try:
        # A user's url.*.insteadOf may turn even a path into an address; only a path is meant here.
        run_git(root, "fetch", *options, str(tree), spec, config=settings, env={"GIT_ALLOW_PROTOCOL": "file"})
    except GitError as error:
        return error.stderr.splitlines()[-1] if error.stderr else str(error)
    return None
