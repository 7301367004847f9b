"""Brings one package into a folder, a wheel from the package index or a checkout, and tests that it leaves out."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from evals.corpus.packages import Package


def fetch(package: Package, target: Path, source_dir: Path | None) -> None:
    """Lays the package's files into ``target``.

    Args:
        package: what to fetch.
        target: an empty folder to be.
        source_dir: a folder with wheels, and checkouts by name; what is not there comes from the network.

    Raises:
        subprocess.CalledProcessError: if a download or clone fails.
        RuntimeError: if a checkout is not at the pinned commit.
    """
    if package.sdist:
        with tarfile.open(
            _downloaded(package, ".tar.gz", "--no-binary", target.parent / "wheels", source_dir)
        ) as sdist:
            for member in sdist.getmembers():
                member.name = member.name.partition("/")[2]
                if member.name:
                    sdist.extract(member, target, filter="data")
        return
    if package.repository is None:
        with zipfile.ZipFile(
            _downloaded(package, "-*.whl", "--only-binary", target.parent / "wheels", source_dir)
        ) as wheel:
            wheel.extractall(target)
        return
    home = source_dir / package.name if source_dir and (source_dir / package.name).is_dir() else None
    if home is None:
        home = target.parent / "checkouts" / package.name
        if not home.exists():
            _run("git", "clone", "--quiet", f"https://github.com/{package.repository}", str(home))
        _run("git", "-C", str(home), "checkout", "--quiet", package.version)
    # Files are copied, not checked out: a mirror may lack the largest objects, and the tree is what is judged.
    command = ["git", "-C", str(home), "rev-parse", "HEAD"]
    commit = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    if commit != package.version:
        raise RuntimeError(f"{home} is at {commit}, not at {package.version}")
    shutil.copytree(home, target, ignore=shutil.ignore_patterns(".git"))


def fetch_tests(package: Package, target: Path, downloads: Path, source_dir: Path | None) -> None:
    """Lays the tests that come from elsewhere beside the package's files; those of the tree itself stay.

    Args:
        package: the package.
        target: its folder.
        downloads: where files from the network are kept.
        source_dir: see ``fetch``; it may hold sdists, too.

    Raises:
        subprocess.CalledProcessError: if a download or clone fails.
    """
    if package.suite == "sdist":
        with tarfile.open(_downloaded(package, ".tar.gz", "--no-binary", downloads, source_dir)) as sdist:
            for member in sdist.getmembers():
                member.name = member.name.partition("/")[2]
                if _is_of(member.name, package.tests):
                    sdist.extract(member, target, filter="data")
    elif package.suite:
        repository, _, commit = package.suite.partition("@")
        home = downloads / repository.partition("/")[2]
        if source_dir and (source_dir / home.name).is_dir():
            home = source_dir / home.name
        elif not home.exists():
            _run("git", "clone", "--quiet", f"https://github.com/{repository}", str(home))
        roots = {path.partition("/")[0] for path in package.tests}
        archive = subprocess.run(
            ["git", "-C", str(home), "archive", commit, *sorted(roots)], check=True, capture_output=True
        )
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(target, filter="data")


def _is_of(path: str, tests: tuple[str, ...]) -> bool:
    """Whether a file is one of the tests or stands in the folder of one, as what tests share does."""
    folders = {test if "." not in test else test.rpartition("/")[0] for test in tests}
    return any(path.startswith(f"{folder}/") for folder in folders)


def _downloaded(package: Package, pattern: str, form: str, downloads: Path, source_dir: Path | None) -> Path:
    """A package's file from the folder of sources, else from the index.

    Args:
        package: the package.
        pattern: what the file's name ends with.
        form: pip's option for the other form, which is not wanted.
        downloads: where downloads are kept.
        source_dir: the folder of sources, if there is one.
    """
    pattern = f"{package.name.replace('-', '_')}-{package.version}{pattern}"
    found = next(iter(source_dir.glob(pattern)), None) if source_dir else None
    if found is None:
        downloads.mkdir(parents=True, exist_ok=True)
        _run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"{form}=:all:",
             "--dest", str(downloads), f"{package.name}=={package.version}")  # fmt: skip
        found = next(iter(downloads.glob(pattern)))
    return found


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
