"""The notebook's code cells run on the device as the script does."""
import json
from pathlib import Path

cells = json.loads(Path("notebooks/segment.ipynb").read_text())["cells"]
code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
plain = "\n".join(line for text in code for line in text.splitlines() if not line.lstrip().startswith(("!", "%")))
scope = {"__name__": "__main__"}
exec(compile(plain, "segment.ipynb", "exec"), scope)
assert next(scope["model"].parameters()).device.type != "cpu", "the notebook stays on the CPU"
