"""Logs of archives and sites as workloads: formats, reading as a whole or in pieces, quality checks."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.replayer.logs.chunked_workload import read_in_pieces
    from shadowtime.replayer.logs.description import SHAPES, described
    from shadowtime.replayer.logs.formats import AS_READ, format_of, log_formats, read_trace, trace_of_frame
    from shadowtime.replayer.logs.frame_files import require_parquet, write_columns
    from shadowtime.replayer.logs.other_schedule import read_starts, real_starts
    from shadowtime.replayer.logs.perturbed_copies import perturbed
    from shadowtime.replayer.logs.quality import (
        columns_of,
        columns_of_workload,
        lacks_of,
        oddities_of,
        overlaps,
    )
    from shadowtime.replayer.logs.removed_jobs import PutBack, parse_put_back, put_back
    from shadowtime.replayer.logs.swf import FIELDS, table_of, write_jobs, write_swf
    from shadowtime.replayer.logs.trace import BUNDLED, Trace, sha256_of, size_note
    from shadowtime.replayer.logs.workload import (
        MAX_LOAD,
        MAX_MACHINE,
        MIN_LOAD,
        YEAR_2000,
        Workload,
        machine_of,
        of_rows,
        prepare,
        processors_of_jobs,
    )

__getattr__ = lazy_exports(__name__)
