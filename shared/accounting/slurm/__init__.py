"""Slurm's accounting: the output of sacct, as text in any shape and as JSON."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.accounting.slurm import answers, sacct
    from shadowtime.shared.accounting.slurm.answers import end_of, sacct_rows
    from shadowtime.shared.accounting.slurm.head import COMMAND, FIELDS, KNOWN, columns_shown, header_of, is_header
    from shadowtime.shared.accounting.slurm.sacct import SacctColumns
    from shadowtime.shared.accounting.slurm.sacct_values import (
        GOING_ON,
        OF_TYPE,
        STATES,
        amount_of,
        gpu_type_of,
        gpus_got,
        limit_of,
        named_resources,
        resources_of,
        state_in,
        unknown_state,
    )

__getattr__ = lazy_exports(__name__)
