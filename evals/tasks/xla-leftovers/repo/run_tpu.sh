#!/usr/bin/env bash
# v2-8, torch_xla 1.13
export XRT_TPU_CONFIG="localservice;0;localhost:51011"
export XLA_USE_BF16=1
python ae.py --accelerator xla --steps 2000
