"""From a run of a program to StableHLO of one whole step: capture on fake tensors, then lowering by TorchTPU."""
