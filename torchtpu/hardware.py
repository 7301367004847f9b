"""Looks for TPU chips on this machine without importing torch or starting a TPU runtime."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PCI_DEVICES = Path("/sys/bus/pci/devices")
VFIO = Path("/dev/vfio")
PRODUCT = Path("/sys/class/dmi/id/product_name")
GOOGLE_VENDOR = "0x1ae0"

# PCI device ids that torch_tpu 0.2.0 accepts (its `_internal/utils/hardware.py`).
GENERATIONS = {
    "0x005e": "v4",
    "0x0062": "v5p",
    "0x0063": "v5e",
    "0x006f": "v6e",
    "0x0076": "tpu7x",
}


@dataclass(frozen=True)
class Chips:
    """The TPU chips of this machine.

    Attributes:
        generation: Name such as ``v6e``, or None when no chip is there.
        usable: Number of chips this machine exposes through VFIO, which is what torch_tpu counts.
        present: Number of chips on the PCI bus, usable or not.
    """

    generation: str | None
    usable: int
    present: int


def on_google_cloud(product: Path | None = None) -> bool:
    """Says whether this machine is one of Google Cloud's, where a metadata server answers.

    Args:
        product: File with the machine's product name; None takes the kernel's.
    """
    return _read(product or PRODUCT).startswith("Google")


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _exposed(entry: Path, vfio: Path) -> bool:
    try:
        return (vfio / (entry / "iommu_group").readlink().name).exists()
    except OSError:
        return False


def find_chips(pci: Path = PCI_DEVICES, vfio: Path = VFIO) -> Chips:
    """Counts the TPU chips of this machine.

    Args:
        pci: The kernel's folder of PCI devices.
        vfio: The folder of VFIO groups a process may open.

    Returns:
        The chips found; all counts are zero where there is no PCI bus.
    """
    try:
        entries = sorted(pci.iterdir())
    except OSError:
        return Chips(None, 0, 0)
    tpus = [
        entry
        for entry in entries
        if _read(entry / "vendor") == GOOGLE_VENDOR and _read(entry / "device") in GENERATIONS
    ]
    if not tpus:
        return Chips(None, 0, 0)
    usable = [entry for entry in tpus if _exposed(entry, vfio)]
    generation = GENERATIONS[_read((usable or tpus)[0] / "device")]
    return Chips(generation, len(usable), len(tpus))
