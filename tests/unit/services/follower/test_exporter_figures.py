"""Figures under the names of common exporters: the same counts as rows of `squeue -a -r`."""

from shadowtime.services.follower.cluster import JobObservation, LifeKey, State, exporter_figures


def job(number: int, state: State, user: str, partition: str, processors: int = 2) -> JobObservation:
    key = LifeKey(number, -1, 0)
    return JobObservation(key, state, processors=processors, user=user, account="a1", partition=partition)


PICTURE = [
    job(1, "running", "eve", "batch", 4),
    job(2, "running", "bob", "gpu"),
    job(3, "waiting", "eve", "batch"),
    job(4, "waiting", "eve", "gpu"),
    job(5, "suspended", "bob", "batch"),
    job(6, "over", "bob", "batch"),
]


def test_each_name_has_the_count_of_squeue() -> None:
    figures = {figure.name: figure.values for figure in exporter_figures(PICTURE, lambda kind, name: name)}
    assert figures == {
        "slurm_queue_pending": {"": 2},
        "slurm_queue_running": {"": 2},
        "slurm_queue_suspended": {"": 1},
        "slurm_partition_jobs_pending": {"batch": 1, "gpu": 1},
        "slurm_partition_jobs_running": {"batch": 1, "gpu": 1},
        "slurm_user_jobs_pending": {"eve": 2},
        "slurm_user_jobs_running": {"eve": 1, "bob": 1},
        "slurm_user_jobs_suspended": {"bob": 1},
        "slurm_user_cpus_running": {"eve": 4, "bob": 2},
        "slurm_account_jobs_pending": {"a1": 2},
        "slurm_account_jobs_running": {"a1": 2},
        "slurm_account_jobs_suspended": {"a1": 1},
        "slurm_account_cpus_running": {"a1": 6},
    }


def test_hidden_names_stay_hidden() -> None:
    figures = list(exporter_figures(PICTURE, lambda kind, name: f"{kind}#"))
    assert {name for figure in figures for name in figure.values} == {"", "partition#", "user#", "account#"}


def test_an_empty_cluster_has_zeros_without_labels_only() -> None:
    figures = {figure.name: figure.values for figure in exporter_figures([], lambda kind, name: name)}
    assert figures["slurm_queue_pending"] == {"": 0}
    assert figures["slurm_user_jobs_running"] == {}
