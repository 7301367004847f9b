"""Runtime over TorchTPU: choose a device, bring it up, run and measure programs on it."""
