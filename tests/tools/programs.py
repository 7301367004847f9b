"""Random CUDA programs that also run on a machine without CUDA, for property tests of the fixes.

A program is a choice of spellings put together: how torch is imported, how the device is chosen and carried, and which
steps follow. Every program leaves what it computed in ``result``.
"""

from __future__ import annotations

import string
from dataclasses import dataclass

from hypothesis import strategies as st

# How torch is bound; {t} is torch itself, {c} torch.cuda, {n} torch.nn.
_IMPORTS = {
    "import torch\nimport torch.nn as nn": ("torch", "torch.cuda", "nn"),
    "import torch as t\nfrom torch import nn": ("t", "t.cuda", "nn"),
    "import torch\nfrom torch import cuda as c, nn as net": ("torch", "c", "net"),
    "import os, torch\nimport torch.cuda as gpu": ("torch", "gpu", "torch.nn"),
}

# How the device is chosen; afterwards `device` is a string or an object.
_DEVICES = [
    "device = 'cuda' if {c}.is_available() else 'cpu'",
    'device = {t}.device("cuda" if {c}.is_available() else "cpu")',
    "device = {t}.device('cuda:0') if {c}.is_available() else {t}.device('cpu')",
    "if {c}.is_available():\n    device = 'cuda'\nelse:\n    device = 'cpu'",
    "use_cuda = {c}.is_available()\ndevice = 'cuda' if use_cuda else 'cpu'",
    "index = 0\ndevice = f'cuda:{{index}}' if {c}.is_available() else 'cpu'",
    "device = ['cpu', 'cuda'][{c}.is_available()]",
    "import argparse\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('--no-cuda', action='store_true', default=False)\nargs = parser.parse_args([])\n"
    "args.cuda = not args.no_cuda and {c}.is_available()\ndevice = {t}.device('cuda' if args.cuda else 'cpu')",
    "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--device', default='cuda')\n"
    "args = parser.parse_args([])\nif not {c}.is_available():\n    args.device = 'cpu'\ndevice = args.device",
    "class Config:\n    device = 'cuda' if {c}.is_available() else 'cpu'\ndevice = Config.device",
    "def pick(wanted='cuda'):\n    return wanted if {c}.is_available() else 'cpu'\ndevice = pick()",
    "device_type = 'cuda' if 'cuda' in str('cpu') else 'cpu'\ndevice = device_type",
]

_STEPS = [
    "x = x.to(device)",
    "x = x.to(device, non_blocking=True)",
    "if {c}.is_available():\n    x = x.cuda()",
    "x = x.cuda() if {c}.is_available() else x",
    "model.to(device)",
    "if {c}.is_available():\n    model = model.cuda()\n    {c}.manual_seed_all(3)",
    "if x.is_cuda:\n    x = x.cpu()",
    "array = x.detach().cpu().numpy() if x.device.type == 'cuda' else x.detach().numpy()\n"
    "result['array'] = array.sum()",
    "if device == 'cuda':\n    {c}.synchronize()",
    "if {c}.is_available():\n    {c}.synchronize(); {c}.empty_cache()",
    "result['memory'] = {c}.max_memory_allocated() if {c}.is_available() else 0",
    "{c}.manual_seed(5)",
    "{t}.backends.cudnn.benchmark = True",
    "{t}.backends.cudnn.deterministic, {t}.backends.cudnn.benchmark = True, False",
    "with {t}.autocast('cuda', dtype={t}.float16):\n    x = x * 2",
    "with {t}.cuda.amp.autocast():\n    result['y'] = model(x)",
    "with {t}.autocast(device_type='cpu', dtype={t}.bfloat16):\n    result['low'] = model(x).float()",
    "scaler = {t}.cuda.amp.GradScaler()\nloss = model(x).mean()\nscaler.scale(loss).backward()\n"
    "scaler.unscale_(optimizer)\n{n}.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
    "scaler.step(optimizer)\nscaler.update()",
    "scaler = {t}.amp.GradScaler('cuda', enabled={c}.is_available())\nresult['scale'] = scaler.get_scale()",
    "loader = {t}.utils.data.DataLoader({t}.utils.data.TensorDataset(x), batch_size=2, pin_memory=True)\n"
    "for (b,) in loader:\n    result['batch'] = b.to(device).sum()",
    "loader = {t}.utils.data.DataLoader({t}.utils.data.TensorDataset(x), batch_size=3, pin_memory={c}.is_available())\n"
    "result['batches'] = [b[0].sum() for b in loader]",
    "{t}.save(model.state_dict(), path)\nmodel.load_state_dict({t}.load(path))",
    "{t}.save(x, path)\nresult['back'] = {t}.load(path, map_location=device)",
    "{t}.save(x, path)\nresult['back'] = {t}.load(path, map_location=lambda storage, place: storage)",
    "wrapped = {n}.DataParallel(model)\nresult['wrapped'] = wrapped(x)\nresult['keys'] = sorted(wrapped.state_dict())",
    "result['count'] = {c}.device_count()",
    "result['name'] = {c}.get_device_name(0) if {c}.is_available() else 'none'",
    "result['half'] = {c}.is_available() and {c}.is_bf16_supported()",
    "T = {c}.FloatTensor if {c}.is_available() else {t}.FloatTensor\nresult['legacy'] = T([1.0, 2.0])",
    "g = {t}.Generator(device=device)\ng.manual_seed(7)\nresult['draw'] = {t}.rand(3, generator=g, device=device)",
    "zeros = {t}.zeros(2, device=device)\nresult['zeros'] = zeros + {t}.ones(2).to(device)",
    "result['type'] = x.device.type",
    "try:\n    x = x + 0\nexcept {c}.OutOfMemoryError:\n    {c}.empty_cache()",
    "optimizer = {t}.optim.Adam(model.parameters(), lr=0.1, fused={c}.is_available())",
    "optimizer.zero_grad()\nmodel(x).sum().backward()\noptimizer.step()",
    "def forward(v, device='cpu'):\n    return v.to(device)\nx = forward(x, device)",
    "lock = None if {c}.is_available() else 1",
    "weights = [p.to(device) for p in model.parameters()]\nresult['weights'] = sum(w.sum() for w in weights)",
    "y = (lambda v: v.cuda() if {c}.is_available() else v)(x)\nresult['lambda'] = y.sum()",
    "text = f\"on {{'cuda' if {c}.is_available() else 'cpu'}}\"\nresult['text'] = text",
    "assert device is not None, 'cuda or cpu'",
]

_PLAIN = [
    "total   =  1+2",
    "names = [ 'a' , 'b']  ;  size=len( names )",
    "text = '''\n  cuda in a text stays\n'''",
    "def odd ( a,b = 2 ) :  return a+b",
    "if   total>2 :  size = 3",
    'value = "it\'s"',
]

_WRAP = ["{body}", "if True:\n{body}", "for turn in range(1):\n{body}", "try:\n{body}\nfinally:\n    total = 0"]


@dataclass(frozen=True)
class Program:
    """One drawn program.

    Attributes:
        text: the source.
        plain: lines that no fix may touch, in order.
        comments: comments in it, in order.
    """

    text: str
    plain: tuple[str, ...]
    comments: tuple[str, ...]


def _indented(text: str, by: str) -> str:
    return "\n".join(by + line for line in text.split("\n"))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Draws a program."""
    header = draw(st.sampled_from(sorted(_IMPORTS)))
    t, c, n = _IMPORTS[header]
    marks = iter(f"# mark {a}{b}" for a in string.ascii_lowercase for b in string.ascii_lowercase)
    comments: list[str] = []
    plain: list[str] = []
    lines = header.split("\n")

    def add(piece: str, by: str = "") -> None:
        rows = _indented(piece, by).split("\n")
        if draw(st.booleans()):
            comments.append(next(marks))
            # The first row of every piece can carry a comment, unless it opens a text.
            rows = (
                [comments[-1] if by == "" else by + comments[-1], *rows]
                if "'''" in rows[0]
                else [rows[0] + "  " + comments[-1], *rows[1:]]
            )
        lines.extend(rows)

    lines += [draw(st.sampled_from(_DEVICES)).format(t=t, c=c, n=n)]
    lines += [
        f"{t}.manual_seed(0)",
        "result = {}",
        f"model = {n}.Sequential({n}.Linear(4, 4), {n}.ReLU(), {n}.Linear(4, 1))",
    ]
    lines += [f"x = {t}.randn(6, 4)", f"optimizer = {t}.optim.SGD(model.parameters(), lr=0.1)", "total = size = 0"]
    for _ in range(draw(st.integers(1, 7))):
        if draw(st.integers(0, 3)) == 0:
            piece = draw(st.sampled_from(_PLAIN))
            plain.extend(row for row in piece.split("\n") if row)
            add(piece)
            continue
        body = draw(st.sampled_from(_STEPS)).format(t=t, c=c, n=n)
        wrap = draw(st.sampled_from(_WRAP))
        unit = draw(st.sampled_from(["    ", "  ", "\t"]))
        if wrap == "{body}":
            add(body)
            continue
        opening, _, closing = wrap.partition("\n{body}")
        lines.append(opening)
        # A body of one indentation inside a block of another is how mixed files look.
        add(body.replace("    ", unit), unit)
        lines.extend(closing.replace("    ", unit).split("\n")[1:])
    lines += ["result['x'] = x", "result['model'] = [p.detach().clone() for p in model.parameters()]"]
    return Program("\n".join(lines) + "\n", tuple(plain), tuple(comments))
