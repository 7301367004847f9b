"""Faults of TorchTPU's own, each by a minimal program: `python -m evals.backend_faults [NAME...] [--publish]`.

Each runs on the simulated device. Where the wrong result is in the StableHLO that torch_tpu emits, or comes about
before any is emitted, the simulation has no part in it. A workaround is run too. Nothing here was run on a TPU.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evals import results
from evals.mutants import edits, forked
from tools import commands
from tools.verify import VerifyRequest, verify
from torchtpu.launch import LaunchSpec, launch

SECONDS = 240.0
_START = """
import json, torch
import torch.nn.functional as F

torch.manual_seed(0)
torch.zeros(1).to("tpu").cpu()


def lower(function, *given):
    from torch_tpu._internal.compile import tpu_torch_compile as compiler
    from torch_tpu._internal.execution_mode import execution_mode_impl as modes

    modes._push_eager_mode(modes._EagerMode.INTERNAL_COMPILE_FX_GRAPH)
    try:
        holders = [compiler.placeholder(list(shape), dtype, False) for shape, dtype in given]
        made = list(function(*holders))
        return compiler.serialize_mlir_text(compiler.build_mlir(made, holders), enable_debug_info=False)
    finally:
        modes._pop_eager_mode()


def tell(**said):
    print("TOLD " + json.dumps(said))
"""


_NETWORK = """    network = Network().to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3, nesterov=True)
"""


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        what: What is wrong, in a sentence.
        program: Tells `fault` (whether it is there) and `hlo` (whether the StableHLO has it; null where none is made).
        workaround: What to do instead, in a sentence.
        repaired: Tells `fault` of a program with the workaround.
        planted: A program of evals/mutants that has it, and what to replace by what in its train.py or model.py.
        sign: What the verdict on that program must say.
        knowledge: The entry of prompts/knowledge, if any.
        rule: The rule that finds or fixes it, if any.
    """

    what: str
    program: str
    workaround: str
    repaired: str = ""
    planted: tuple[str, str, str, str] | None = None
    sign: str = ""
    knowledge: str = ""
    rule: str = ""


FAULTS = {
    "batch-norm-statistics": Fault(
        what="BatchNorm never updates its running mean and variance",
        program="""
norm = torch.nn.BatchNorm1d(4).to("tpu")
norm((torch.randn(16, 4) + 3).to("tpu"))
text = lower(
    lambda x, mean, var: [F.batch_norm(x, mean, var, training=True), mean, var],
    ((16, 4), torch.float32), ((4,), torch.float32), ((4,), torch.float32),
)
# The program returns the statistics it was given.
tell(fault=bool((norm.running_mean.cpu() == 0).all()), hlo="return %output, %arg1, %arg2" in text, text=text)
""",
        workaround="update them in a forward hook",
        repaired="""
@torch.no_grad()
def keep_statistics(norm, inputs, _output):
    if not (norm.training and norm.track_running_stats):
        return
    rate = norm.momentum if norm.momentum is not None else 1.0 / float(norm.num_batches_tracked)
    axes = [axis for axis in range(inputs[0].dim()) if axis != 1]
    variance, mean = torch.var_mean(inputs[0].float(), axes)
    norm.running_mean.lerp_(mean, rate)
    norm.running_var.lerp_(variance, rate)


data = torch.randn(16, 4) + 3
norm, reference = torch.nn.BatchNorm1d(4).to("tpu"), torch.nn.BatchNorm1d(4)
norm.register_forward_hook(keep_statistics)
norm(data.to("tpu"))
reference(data)
same = all(
    torch.allclose(mine.cpu(), theirs, rtol=1e-5)
    for mine, theirs in ((norm.running_mean, reference.running_mean), (norm.running_var, reference.running_var))
)
tell(fault=not same)
""",
        planted=("cnn", "train.py", "", ""),
        sign=r"running_mean .*never changes",
        knowledge="batch-norm-statistics",
    ),
    "weights-untied": Fault(
        what="a move to the device makes a parameter of its own for each place of a tied one",
        program="""
model = torch.nn.ModuleList([torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)])
model[1].weight = model[0].weight
model.to("tpu")
tell(fault=model[0].weight is not model[1].weight, hlo=None)
""",
        workaround="tie them again after the move, or swap parameters on conversion",
        repaired="""
torch.__future__.set_swap_module_params_on_conversion(True)
model = torch.nn.ModuleList([torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)])
model[1].weight = model[0].weight
model.to("tpu")
tell(fault=model[0].weight is not model[1].weight)
""",
        planted=("gpt", "train.py", "", ""),
        sign="are one parameter in the original and separate ones",
        knowledge="weights-untied",
        rule="TPU902",
    ),
    "optimizer-before-move": Fault(
        what="an optimizer built before the move keeps the old parameters, and trains nothing, silently",
        program="""
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
model.to("tpu")
before = model.weight.detach().cpu().clone()
model(torch.ones(2, 3).to("tpu")).sum().backward()
optimizer.step()
tell(fault=bool((model.weight.detach().cpu() == before).all()), hlo=None)
""",
        workaround="build it after the move",
        repaired="""
model = torch.nn.Linear(3, 2).to("tpu")
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
before = model.weight.detach().cpu().clone()
model(torch.ones(2, 3).to("tpu")).sum().backward()
optimizer.step()
tell(fault=bool((model.weight.detach().cpu() == before).all()))
""",
        planted=("cnn", "train.py", _NETWORK, _NETWORK.replace(".to(device)", "") + "    network.to(device)\n"),
        sign="is not among the optimizer's parameters|never moves|on the CPU",
        rule="TPU901",
    ),
    "autocast-layer-norm": Fault(
        what="layer_norm of a bfloat16 input with float32 weights, as under autocast, builds no program",
        program="""
def norm(x, weight, bias):
    return [torch.ops.aten.native_layer_norm(x, [8], weight, bias, 1e-5)[0]]


try:
    lower(norm, ((4, 8), torch.bfloat16), ((8,), torch.float32), ((8,), torch.float32))
    refused = False
except RuntimeError as error:
    refused = "failed to inline" in str(error)
layer = torch.nn.LayerNorm(8).to("tpu")
try:
    with torch.autocast("tpu", dtype=torch.bfloat16):
        layer(torch.randn(4, 8).to("tpu").bfloat16()).cpu()
    tell(fault=False, hlo=refused)
except RuntimeError as error:
    tell(fault="failed to inline" in str(error), hlo=refused)
""",
        workaround="normalise in float32 outside autocast",
        repaired="""
layer, data = torch.nn.LayerNorm(8).to("tpu"), torch.randn(4, 8)
with torch.autocast("tpu", dtype=torch.bfloat16):
    given = data.to("tpu").bfloat16()
    with torch.autocast("tpu", enabled=False):
        made = layer(given.float())
tell(fault=not torch.allclose(made.cpu(), F.layer_norm(data.bfloat16().float(), (8,)), atol=1e-5))
""",
        planted=("gpt", "model.py", "self.attention(self.norm1(x))", "self.attention(self.norm1(x.bfloat16()))"),
        sign="failed to inline",
        knowledge="autocast-layer-norm",
    ),
    "deferred-seed": Fault(
        what="in DeferAndFuse the same seed gives other draws",
        program="""
torch.tpu.eager_mode = torch.tpu.EagerMode.DEFER_AND_FUSE
waiting = []


def two(read):
    torch.manual_seed(5)
    made = [torch.randn(8, device="tpu"), torch.rand(8, device="tpu")]
    return {n: made[n].cpu() for n in read}


def while_another_waits():
    waiting.append(torch.randn(8, device="tpu"))
    return two((0, 1))


def dropped():
    torch.manual_seed(5)
    return {0: F.dropout(torch.ones(64).to("tpu"), 0.5).cpu()}


def in_place():
    torch.tpu.manual_seed(5)
    return {0: torch.empty(8).to("tpu").normal_().cpu(), 1: torch.empty(8).to("tpu").uniform_().cpu()}


def seeded_twice():
    torch.manual_seed(5)
    first = torch.randn(8, device="tpu")
    torch.manual_seed(5)
    return {0: (first - torch.randn(8, device="tpu")).cpu()}


ways = {
    "read in order": lambda: two((0, 1)), "read in another order": lambda: two((1, 0)), "one unread": lambda: two((1,)),
    "another draw waiting": while_another_waits, "dropout": dropped, "in place": in_place,
}
drawn = {name: [way() for _ in range(4)] for name, way in ways.items()}
other = [
    name for name, (first, *rest) in drawn.items()
    if not all(torch.equal(first[n], one[n]) for one in rest for n in first)
]
plain = drawn["read in order"][0]
for name in ("read in another order", "one unread", "another draw waiting"):
    other += [f"{name}: not as in order" for n, one in drawn[name][0].items() if not torch.equal(one, plain[n])]
other += [] if not seeded_twice()[0].any() else ["seeded twice before either is read"]
tell(fault=bool(other), hlo=None, ways=len(ways) + 4, other=other, mode=str(torch.tpu.eager_mode))
""",
        workaround="draw on the CPU and move what was drawn",
        repaired="""
def drawn():
    torch.manual_seed(5)
    first = torch.randn(8).to("tpu")
    return (first + torch.rand(8).to("tpu")).cpu()


torch.tpu.eager_mode = torch.tpu.EagerMode.DEFER_AND_FUSE
tell(fault=not all(torch.equal(drawn(), drawn()) for _ in range(4)))
""",
    ),
}
NOT_DONE = (
    "`torch.normal` with tensors in DeferAndFuse, which hangs (the simulated device has a substitute in its place)",
    '`torch.Generator(device="tpu")`, which does not return (knowledge entry generator-hang, rule TPU921)',
    "LSTM's backward pass under torch.compile, torch.cond, `dynamic=True`, CTC loss, `_int_mm`: refused with an error",
)


def told(source: str) -> dict[str, Any]:
    """What a program told, or how it ended without telling."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "prog.py").write_text(_START + source)
        ended = launch(
            LaunchSpec(
                argv=["python", "prog.py"],
                cwd=Path(folder),
                device="simulated",
                time_limit=SECONDS,
                env={"OMP_NUM_THREADS": "1"},
            )
        )
    lines = [line for line in ended.output_tail.splitlines() if line.startswith("TOLD ")]
    return dict(json.loads(lines[-1][5:])) if lines else {"ended": ended.explain()[:300]}


def verified(fault: Fault) -> dict[str, Any]:
    """What `verify` says of a program that has the fault on the device, in both its trees."""
    if fault.planted is None:
        return {}
    program, file, find, replace = fault.planted
    with tempfile.TemporaryDirectory() as name:
        original, migrated = Path(name) / "original", Path(name) / "migrated"
        shutil.copytree(edits.PROGRAMS / program, original, ignore=shutil.ignore_patterns("__pycache__"))
        text = (original / file).read_text(encoding="utf-8")
        if find not in text:
            raise ValueError(f"{program}/{file} does not hold {find!r}")
        (original / file).write_text(text.replace(find, replace, 1) if find else text, encoding="utf-8")
        shutil.copytree(original, migrated)
        text = (migrated / "train.py").read_text(encoding="utf-8")
        (migrated / "train.py").write_text(text.replace(edits.CUDA, edits.CHOSEN), encoding="utf-8")
        output = verify(
            VerifyRequest(
                command=commands.parse("python train.py"), original=original, migrated=migrated, tests=False,
                scratch=Path(name) / "scratch", device="simulated", steps=8, timeout=900,
            ),
            run=forked.run,
        )  # fmt: skip
    failed = [stage for stage in output.stages.values() if stage.result == "fail"]
    said = [text for stage in failed for text in (stage.reason, *(problem.message for problem in stage.problems))]
    return {
        "caught": any(re.search(fault.sign, text) for text in said),
        "stages": {stage.stage: {"owner": stage.owner, "reason": stage.reason[:400]} for stage in failed},
    }


def examine(name: str) -> dict[str, Any]:
    """Runs one fault's programs."""
    fault = FAULTS[name]
    facts = {key: value for key, value in asdict(fault).items() if key not in ("program", "repaired", "planted")}
    seen, repaired = told(fault.program), told(fault.repaired)
    when = {"date": results.today(), "revision": results.revision()}
    return {"name": name, **facts, **when, "seen": seen, "repaired": repaired, "verified": verified(fault)}


def _page(record: dict[str, Any]) -> str:
    def yes(value: Any) -> str:
        return {True: "yes", False: "no", None: "none is made", "not tried": "not tried"}.get(value, "not known")

    lines = [
        "# Faults of TorchTPU's own",
        "",
        f"Examined {record['date']} at {record['revision']} by `python -m evals.backend_faults --publish`, with"
        f" torch_tpu {record['versions'].get('torch_tpu')} on the simulated device; nothing was run on a TPU. *In the"
        " StableHLO*: the program that torch_tpu emits has the fault, so that what runs it has no part in it. A fault"
        " that is not seen was reported of torch_tpu 0.2.0 and is not shown by the program here.",
        "",
        "| fault | seen | in the StableHLO | workaround | it works | `verify` catches it"
        " | knowledge | rule |\n|---|---|---|---|---|---|---|---|",
        *(
            f"| {row['what']} | {yes(row['seen'].get('fault', ''))} | {yes(row['seen'].get('hlo', ''))}"
            f" | {row['workaround']} | {yes(not row['repaired']['fault'] if 'fault' in row['repaired'] else '')}"
            f" | {yes(row['verified'].get('caught', 'not tried'))} | {row['knowledge']} | {row['rule']} |"
            for row in record["rows"]
        ),
        "",
        "Not examined here:",
        "",
        *(f"- {text}" for text in NOT_DONE),
    ]
    for row in record["rows"]:
        if "text" in row["seen"]:
            lines += ["", f"StableHLO of {row['name']}:", "", "```mlir", row["seen"]["text"].strip(), "```"]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Examine, print and publish; 1 where a fault is no longer seen or a workaround fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(FAULTS)}; all by default")
    parser.add_argument("--publish", action="store_true")
    arguments = parser.parse_args()
    rows = [examine(name) for name in arguments.names or FAULTS]
    record = {"date": results.today(), "revision": results.revision()}
    record |= {"versions": results.versions(Path(sys.executable)), "rows": rows}
    page = _page(record)
    print(page)
    if arguments.publish:
        # Rows that were not asked for stay, with the date and commit of their own.
        old = {row["name"]: row for kept in results.read("backend_faults") for row in kept["rows"]}
        known = {**old, **{row["name"]: row for row in rows}}
        record["rows"] = [known[name] for name in FAULTS if name in known]
        results.publish("backend_faults", [results.without_places(record)], _page(results.without_places(record)))
    return int(any(row["seen"].get("fault") is not True or row["repaired"].get("fault") is not False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
