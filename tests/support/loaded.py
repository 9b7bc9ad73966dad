"""Kernels, loaded: imported by the server that forks processes, so that none of them loads any."""

from shadowtime.shared.kernels.decorator import load_all

load_all()
