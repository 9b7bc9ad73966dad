"""Kernels of scheduling that several stages share: pure functions over arrays."""
