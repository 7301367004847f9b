"""The adapters were trained: their upper halves start at zero; both files load on the CPU."""
import runpy
import sys

import torch

sys.argv = ["finetune.py", "--steps", "2", "--rank", "2"]
runpy.run_path("finetune.py", run_name="__main__")
adapters = torch.load("adapters.pt", map_location="cpu")
assert len(adapters) == 8, f"{len(adapters)} adapters were saved, 8 are due"
ups = [value for name, value in adapters.items() if name.endswith("up")]
assert ups and all(up.abs().sum() > 0 for up in ups), "an adapter never changed"
merged = torch.load("merged.pt", map_location="cpu")
assert not any("down" in name and "layers" in name and name.endswith("query.down") for name in merged)
