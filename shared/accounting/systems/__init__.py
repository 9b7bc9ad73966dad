"""Accounting of systems other than Slurm's `sacct`, PBS and tables: one module for each format."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.accounting.systems import elasticsearch, filetxt, flux, htcondor, lsf, philly, sge
    from shadowtime.shared.accounting.systems.job_rows import whole_of
    from shadowtime.shared.accounting.systems.json_objects import JsonRecord, json_keys, json_records

__getattr__ = lazy_exports(__name__)
