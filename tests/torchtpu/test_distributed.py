"""Two ranks under torchrun compute what one process does."""

import json

import pytest

from tests.torchtpu.children import HERE, python

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def launched(tmp_path, *arguments):
    return python(
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        *arguments,
        cwd=tmp_path,
        limit=500,
    )


def test_two_ranks_match_one_process(tmp_path):
    done = launched(tmp_path, HERE / "on_device" / "ranks.py", tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    for rank in (0, 1):
        found = json.loads((tmp_path / f"rank{rank}.json").read_text())
        assert found.pop("world") == 2
        wrong = {name: error for name, error in found.items() if isinstance(error, str) or error > 1e-6}
        assert not wrong and len(found) == 8


def test_world_set_by_the_program_itself(tmp_path):
    (tmp_path / "program.py").write_text(
        "import os, sys\n"
        "import torch.multiprocessing as mp\n"
        "def work(rank, port):\n"
        "    from torchtpu import device\n"
        "    device.bring_up()\n"
        "    import torch, torch.distributed as dist\n"
        "    os.environ |= dict(MASTER_ADDR='127.0.0.1', MASTER_PORT=port, RANK=str(rank), WORLD_SIZE='2')\n"
        "    dist.init_process_group('tpu_dist')\n"
        "    x = torch.ones(1, device='tpu') * (rank + 1)\n"
        "    dist.all_reduce(x)\n"
        "    assert x.item() == 3, x\n"
        "    dist.destroy_process_group()\n"
        "if __name__ == '__main__':\n"
        "    import socket\n"
        "    with socket.socket() as s:\n"
        "        s.bind(('127.0.0.1', 0))\n"
        "        port = str(s.getsockname()[1])\n"
        "    mp.spawn(work, args=(port,), nprocs=2)\n"
        "    print('both ranks agree')\n"
    )
    done = python("program.py", cwd=tmp_path, limit=300)
    assert "both ranks agree" in done.stdout, done.stderr[-4000:]


@pytest.mark.parametrize("first", ["torch.manual_seed(0)", "torch.ones(2).to('tpu')", "torch.tpu.default_generators"])
def test_world_set_with_no_group_yet(tmp_path, first):
    (tmp_path / "program.py").write_text(
        "import os\n"
        "from torchtpu import device\n"
        "device.bring_up()\n"
        "import torch\n"
        "os.environ |= dict(RANK='0', WORLD_SIZE='2')\n"
        f"{first}\n"
        "print((torch.ones(2, device='tpu') + 1).tolist(), os.environ['WORLD_SIZE'])\n"
    )
    done = python("program.py", cwd=tmp_path)
    assert done.stdout.strip() == "[2.0, 2.0] 2", done.stderr[-4000:]
