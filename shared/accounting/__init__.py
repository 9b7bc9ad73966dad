"""Accounting records of Slurm, PBS, other batch systems and job tables, as columns and as job lives."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.accounting import pbs
    from shadowtime.shared.accounting.cells import (
        NO_LIMIT,
        NO_VALUE,
        UNLIMITED,
        Parser,
        count_of,
        instant_of,
        is_below_one,
        is_missing,
        is_nan,
        memory_of,
        span_of,
        spans_of,
        word_of,
    )
    from shadowtime.shared.accounting.columns import CellColumn, as_it_is, columns_of_text
    from shadowtime.shared.accounting.delimited import MAX_PARTS, RowReader, Shape
    from shadowtime.shared.accounting.durations import seconds_of
    from shadowtime.shared.accounting.instants import (
        EARLIEST,
        MAX_UNIX,
        NOT_SET,
        Instants,
        whole_number,
        zone_of,
    )
    from shadowtime.shared.accounting.job_numbers import (
        FEDERATED_SPANS,
        LIFE,
        TASKS,
        is_federated,
        job_of,
        number_of,
        task_of,
        tasks_of,
    )
    from shadowtime.shared.accounting.lives import (
        CUT_AT_WINDOWS,
        DATED,
        HOUR,
        NO_INSTANTS,
        Lives,
        cut_at_windows,
        in_order_of_time,
        joined_sizes,
        own_numbers,
        repeated,
    )
    from shadowtime.shared.accounting.machine_parts import (
        NONE,
        MachineParts,
        gpu_types_of,
        gpus_of,
        hosts_of,
        parts_of_nodes,
        read_parts,
    )
    from shadowtime.shared.accounting.mapping import (
        INSTANTS,
        NAMES,
        SPANS,
        Mapped,
        is_table,
        notes_on_units,
        parse_columns,
        resolved,
    )
    from shadowtime.shared.accounting.names import HASH, HASHED, KINDS, POOL, REQUEUED, Names, read_key, read_names
    from shadowtime.shared.accounting.odd_rows import UNREADABLE, OddRows
    from shadowtime.shared.accounting.pbs_records import PbsJobs, PbsLife, PbsWaiting, numbered
    from shadowtime.shared.accounting.reading import NUMBERS, TEXTS, TYPES, UNKNOWN, AccountingRows, Reading
    from shadowtime.shared.accounting.slurm import (
        FIELDS,
        GOING_ON,
        OF_TYPE,
        STATES,
        amount_of,
        answers,
        end_of,
        gpu_type_of,
        gpus_got,
        header_of,
        is_header,
        limit_of,
        resources_of,
        sacct,
        sacct_rows,
        unknown_state,
    )
    from shadowtime.shared.accounting.systems import (
        elasticsearch,
        filetxt,
        flux,
        htcondor,
        json_keys,
        json_records,
        lsf,
        philly,
        sge,
        whole_of,
    )
    from shadowtime.shared.accounting.tables import preset_columns, table
    from shadowtime.shared.accounting.text_file import (
        SUFFIXES,
        beginning_of,
        contents_of,
        ends_with_a_line,
        files_of,
        first_lines,
        is_pipe,
        kept,
        lines_of,
        numbered_lines,
        whole_contents,
    )

__getattr__ = lazy_exports(__name__)
