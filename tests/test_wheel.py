"""The built wheel, installed beside `openai-agents` in an environment that has nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
WHEELHOUSE = Path(sys.prefix) / "wheelhouse"

pytestmark = pytest.mark.skipif(
    not WHEELHOUSE.is_dir(), reason="no wheels to install from; `make setup` downloads them"
)


class Installed:
    """An environment with our wheel and `openai-agents`, and a way to run things in it."""

    def __init__(self, folder: Path):
        self.bin = folder / "bin"
        self.site = next((folder / "lib").glob("python3*")) / "site-packages"

    def run(self, *command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PIP_"))}
        environment["TORCHTPU_HOME"] = str(cwd / "home")
        program = str(self.bin / command[0])
        return subprocess.run(
            [program, *command[1:]], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120
        )

    def ok(self, *command: str, cwd: Path) -> str:
        done = self.run(*command, cwd=cwd)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def build_wheel(target: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(target), str(ROOT)],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return next(target.glob("torchtpu_agent-*.whl"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("wheel")
    wheel = build_wheel(folder)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True, timeout=120)
    # Only what the wheel asks for and openai-agents with what it asks for: no torch.
    install = "-m pip install --quiet --no-compile --no-index --find-links".split()
    subprocess.run(
        [str(folder / "env/bin/python"), *install, str(WHEELHOUSE), str(wheel), "openai-agents"],
        check=True,
        timeout=280,
        env={k: v for k, v in os.environ.items() if not k.startswith("PIP_")},
    )
    return Installed(folder / "env")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    tree = tmp_path / "repo"
    tree.mkdir()
    for i in range(4):
        (tree / f"train{i}.py").write_text("import torch\nx = torch.ones(2).cuda()\n")
    # Names of ours, as they occur in other people's repositories.
    for name in ("tools", "agents", "torchtpu", "rich"):
        (tree / f"{name}.py").write_text("raise RuntimeError('the repository was imported')\n")
    return tree


def test_the_command_answers(installed: Installed, tmp_path: Path) -> None:
    assert "migrate" in installed.ok("torchtpu-agent", "--help", cwd=tmp_path)
    assert "0.1.0" in installed.ok("torchtpu-agent", "--version", cwd=tmp_path)


@pytest.mark.parametrize("command", [["torchtpu-agent"], ["python", "-m", "torchtpu_agent"]])
def test_scan_needs_no_torch_and_ignores_modules_of_the_repository(
    installed: Installed, repository: Path, command: list[str]
) -> None:
    assert installed.run("python", "-c", "import torch", cwd=repository.parent).returncode != 0
    done = installed.run(*command, "scan", ".", "--format", "json", cwd=repository)
    assert done.returncode in (0, 1), done.stderr
    assert {f["path"] for f in json.loads(done.stdout)["findings"]} == {f"train{i}.py" for i in range(4)}


def test_worker_processes_find_the_rooms(installed: Installed, repository: Path) -> None:
    # `spawn` starts from nothing: the child has to import the rooms by itself.
    script = repository.parent / "pool.py"
    script.write_text(
        "import multiprocessing, sys\n"
        "from torchtpu_agent import rooms\n"
        "if __name__ == '__main__':\n"
        "    sys.path.insert(0, str(rooms()))\n"
        "    from tools.scan import scan\n"
        "    import pathlib\n"
        "    multiprocessing.set_start_method('spawn')\n"
        "    with multiprocessing.Pool(1) as pool:\n"
        "        print(len(pool.apply(scan, (pathlib.Path(sys.argv[1]),)).findings))\n"
    )
    assert installed.ok("python", "-P", str(script), str(repository), cwd=repository.parent).strip() == "4"


def test_agents_is_the_other_distribution_and_works(installed: Installed, tmp_path: Path) -> None:
    program = (
        "import agents, pathlib\n"
        "agent = agents.Agent(name='helper', instructions='Answer briefly.')\n"
        "print(pathlib.Path(agents.__file__).parent, agent.name)\n"
    )
    assert installed.ok("python", "-c", program, cwd=tmp_path).split() == [
        str(installed.site / "agents"),
        "helper",
    ]


@pytest.mark.parametrize("name", ["tools", "prompts", "evals", "tests", "agents.cli", "agents.migrate"])
def test_room_names_are_nobodys(installed: Installed, tmp_path: Path, name: str) -> None:
    done = installed.run("python", "-c", f"import {name}", cwd=tmp_path)
    assert "ModuleNotFoundError" in done.stderr


def test_the_runtime_is_importable_under_its_own_name(installed: Installed, tmp_path: Path) -> None:
    installed.ok("python", "-c", "import torchtpu, torchtpu_agent", cwd=tmp_path)


def test_the_wheel_holds_no_tests_and_no_compiled_files(installed: Installed) -> None:
    ours = {p.name for p in installed.site.iterdir() if "torchtpu" in p.name}
    assert ours == {"torchtpu", "torchtpu_agent", "torchtpu_agent-0.1.0.dist-info"}
    inside = {p.name for p in (installed.site / "torchtpu_agent").iterdir() if p.is_dir()}
    assert inside <= {"agents", "tools", "prompts", "evals", "__pycache__"}
    assert not (installed.site / "torchtpu_agent/agents/command").exists()


def test_the_wheel_knows_the_failures(installed: Installed, tmp_path: Path) -> None:
    inside = installed.site / "torchtpu_agent/prompts/knowledge"
    assert {p.name for p in inside.iterdir()} == {p.name for p in (ROOT / "prompts/knowledge").iterdir()}
    program = (
        "import sys; from torchtpu_agent import rooms; sys.path.insert(0, str(rooms()))\n"
        "from tools.diagnose import diagnose; from tools.run import RunOutput\n"
        "seen = {'type': 'RuntimeError', 'message': 'sparse operators are not supported on TPU yet'}\n"
        "print(diagnose(RunOutput(outcome='exception', explanation='', exception=seen))[0].entry)\n"
    )
    assert installed.ok("python", "-c", program, cwd=tmp_path).strip() == "sparse-operators"
