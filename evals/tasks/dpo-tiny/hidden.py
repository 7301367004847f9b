"""The reference model stays as it was while the policy moves, both on the device."""
import runpy
import sys

sys.argv = ["dpo.py", "--steps", "2"]
end = runpy.run_path("dpo.py", run_name="__main__")
policy, reference = end["policy"], end["reference"]
assert {p.device.type for m in (policy, reference) for p in m.parameters()} != {"cpu"}
assert not any(p.requires_grad for p in reference.parameters())
moved = max((a - b).abs().max().item() for a, b in zip(policy.parameters(), reference.parameters()))
assert moved > 0, "the policy is the reference"
