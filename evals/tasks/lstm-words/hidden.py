"""After training on the device the two embeddings are still one parameter, and the optimizer holds it."""
import runpy
import sys

sys.argv = "main.py --cuda --epochs 1 --emsize 16 --nhid 16 --bptt 8 --batch_size 8".split()
end = runpy.run_path("main.py", run_name="__main__")
model, optimizer = end["model"], end["optimizer"]
assert model.encoder.weight.device.type != "cpu", "the model is on the CPU"
held = [p for group in optimizer.param_groups for p in group["params"]]
assert len(held) == len({id(p) for p in held}) == 6, f"the optimizer holds {len(held)} parameters, 6 are due"
assert (model.encoder.weight - model.decoder.weight).abs().max().item() == 0, "the embeddings went apart"
