"""What a real Slurm 22.05 printed of its settings, as keys of the policy `slurm`."""

from pathlib import Path

import pytest

from shadowtime.replayer.analysis.slurm_site import as_toml
from shadowtime.services.catalogue import canonical
from shadowtime.services.follower.slurm.site_text import COMMANDS, site_of
from shadowtime.shared.accounting.machine_parts import read_parts
from shadowtime.shared.accounting.names import Names
from shadowtime.shared.errors import FollowError

CONFIG = """Configuration data as of 1795570300
BOOT_TIME               = 1795570256
ClusterName             = shadow
FairShareDampeningFactor = 1
PreemptType             = preempt/none
PriorityDecayHalfLife   = 00:10:00
PriorityCalcPeriod      = 00:01:00
PriorityFavorSmall      = No
PriorityFlags           = MAX_TRES
PriorityMaxAge          = 7-00:00:00
PriorityUsageResetPeriod = NONE
PriorityType            = priority/multifactor
PriorityWeightAge       = 10000
PriorityWeightAssoc     = 0
PriorityWeightFairShare = 20000
PriorityWeightJobSize   = 2000
PriorityWeightPartition = 3000
PriorityWeightQOS       = 5000
PriorityWeightTRES      = (null)
SchedulerParameters     = bf_interval=20,bf_continue,default_queue_depth=50,bf_min_age_reserve=60
SchedulerType           = sched/backfill
"""
NODES = """NodeName=n1 CPUTot=8 RealMemory=1 Gres=(null) Partitions=batch,quick
NodeName=n2 CPUTot=8 RealMemory=1 Gres=(null) Partitions=fat
"""
PARTITIONS = """PartitionName=batch Nodes=n1 PriorityJobFactor=1 PriorityTier=1
PartitionName=quick Nodes=n1 PriorityJobFactor=5 PriorityTier=1
PartitionName=fat Nodes=n2 PriorityJobFactor=2 PriorityTier=3
"""
RESERVATIONS = (
    "ReservationName=maint StartTime=1795571145 EndTime=1795571505 Duration=00:06:00 Nodes=n2 NodeCnt=1 CoreCnt=4 "
    "Features=(null) Users=root State=INACTIVE\n"
)
ASSOCIATIONS = """shadow|root|||1|
shadow|root|root||1|
shadow|bio|||10|root
shadow|bio|user5||1|
shadow|physics|||60|root
shadow|theory|||2|physics
shadow|theory|user1||3|
shadow|theory|user2||1|
other|bio|user9||1|
"""
QOS = "normal|0|1.000000\nurgent|10|0.500000\n"
USAGE = (
    "root||6109\n root|root|0\n bio||1220\n  bio|user5|1220\n  theory||3340\n   theory|user1|846\n   theory|user2|0\n"
)

TEXTS = {
    "config": CONFIG,
    "nodes": NODES,
    "partitions": PARTITIONS,
    "reservations": RESERVATIONS,
    "associations": ASSOCIATIONS,
    "qos": QOS,
    "limits": "shadow||||\nshadow|4|cpu=64||2\nshadow||cpu=8||\nother|1||cpu=600|\n",
    "qos_limits": "normal|||||||\nurgent|||cpu=60||cpu=16,gres/gpu=2||\n",
    "usage": USAGE,
}


@pytest.fixture
def pools(tmp_path: Path) -> Path:
    file = tmp_path / "pools.txt"
    file.write_text(NODES + PARTITIONS)
    return file


def test_a_slurm_is_read(pools: Path) -> None:
    names = Names()
    keys, notes = site_of(TEXTS, read_parts(pools), names)
    assert keys["weight_fairshare"] == 20_000
    assert (keys["half_life"], keys["calc_period"], keys["max_age"]) == (600, 60, 604_800)
    assert (keys["bf_interval"], keys["sched_depth"], keys["calc_at"]) == (20, 50, 1_795_570_256)
    assert (keys["processors"], keys["nodes"]) == (16, 2)
    assert keys["partitions"] == [[1, 1, 1], [2, 5, 1], [3, 2, 3]]
    assert keys["qos"] == [[1, 0, 1000], [2, 10, 500]]
    assert keys["accounts"] == [[0, 0, 1, 1], [1, 0, 10, 1], [2, 0, 60, 0], [3, 2, 2, 2]]
    assert keys["users"] == [[1, 1, 1, 1220], [2, 3, 3, 846]]
    assert keys["reservations"] == [[1, 1_795_571_145, 1_795_571_505, 4]]
    assert names.of["account"] == {"bio": 1, "physics": 2, "theory": 3}
    assert notes == ["PriorityFlags=MAX_TRES: not modelled", "SchedulerParameters bf_min_age_reserve=60: not modelled"]


MAINTENANCE = (
    "ReservationName=maint day StartTime=1795571145 EndTime=1795571505 Duration=00:06:00 Nodes=n[1-2],x9 NodeCnt=3 "
    "CoreCnt=12 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES TRES=cpu=24 Users=root State=INACTIVE\n"
)
"""As of nodes with two threads a core. No partition has the node x9."""


def test_a_reservation_takes_processors_of_each_pool_with_its_nodes(pools: Path) -> None:
    """Cores were counted for processors, and all of them were taken from the pool of the first node."""
    changed = {"reservations": MAINTENANCE, "nodes": f"{NODES}NodeName=x9 CPUTot=8 RealMemory=1 Gres=(null)\n"}
    keys, _ = site_of(TEXTS | changed, read_parts(pools), Names())
    assert keys["reservations"] == [[0, 1_795_571_145, 1_795_571_505, 8], [1, 1_795_571_145, 1_795_571_505, 8]]
    some = MAINTENANCE.replace("cpu=24", "cpu=6").replace(",x9", "")
    keys, _ = site_of(TEXTS | {"reservations": some}, read_parts(pools), Names())
    assert [row[3] for row in keys["reservations"]] == [3, 3]


def test_settings_without_a_number_are_noted(pools: Path) -> None:
    """A word without a value, such as defer, and -1, which turns a pass off, were ignored without a word."""
    parameters = "bf_interval=-1,bf_continue,defer,sched_interval=-1,bf_window=2880"
    changed = {
        "config": CONFIG.replace("bf_interval=20,bf_continue,default_queue_depth=50,bf_min_age_reserve=60", parameters),
        "reservations": MAINTENANCE.replace("SPEC_NODES", "WEEKLY"),
        "associations": ASSOCIATIONS.replace("user5||1", "user5||parent").replace("user9||1", "user9||parent"),
    }
    keys, notes = site_of(TEXTS | changed, read_parts(pools), Names())
    assert keys["bf_window"] == 2_880
    assert notes[1:] == [
        "SchedulerParameters bf_interval=-1: not modelled",
        "SchedulerParameters defer: not modelled",
        "SchedulerParameters sched_interval=-1: not modelled",
        "ReservationName=maint Flags=WEEKLY: only its next time is reserved",
        "associations with Share=parent: 1; each is treated as 1 share",
    ]
    unset = CONFIG.replace("bf_interval=20,bf_continue,default_queue_depth=50,bf_min_age_reserve=60", "(null)")
    assert len(site_of(TEXTS | {"config": unset}, read_parts(pools), Names()).notes) == 1


def test_limits_that_are_not_modelled_are_noted(pools: Path) -> None:
    """`slurm-site` says that it lists what the policy does not model; limits and licences were not in the list."""
    enforced = f"{CONFIG}AccountingStorageEnforce = associations,limits,qos,safe\nLicenses                = matlab:10\n"
    _, notes = site_of(TEXTS | {"config": enforced}, read_parts(pools), Names())
    assert notes[0] == "Licenses=matlab:10: has no effect"
    assert notes[3:] == [
        "associations with GrpJobs: 1; no job waits because of them",
        "associations with GrpTRES: 2; no job waits because of them",
        "associations with MaxJobs: 1; no job waits because of them",
        "QOS with GrpTRESRunMins: 1; no job waits because of them",
        "QOS with MaxTRESPU: 1; no job waits because of them",
    ]


def test_hidden_associations_are_noted(pools: Path) -> None:
    """With PrivateData=users in slurmdbd.conf, sacctmgr shows only the user's own; the others' shares were lost."""
    own = "shadow|root|||1|\nshadow|bio|||10|root\nshadow|bio|user5||1|\n"
    _, notes = site_of(TEXTS | {"associations": own}, read_parts(pools), Names())
    told = "associations that sshare has and sacctmgr does not show: 4; see PrivateData in slurmdbd.conf"
    assert told in notes


def test_the_usage_of_a_user_is_that_of_all_its_associations(pools: Path) -> None:
    """A user with an association for each partition had the usage of the last one."""
    two = {
        "associations": ASSOCIATIONS.replace("bio|user5||1|", "bio|user5|batch|1|\nshadow|bio|user5|fat|1|"),
        "usage": USAGE.replace("  bio|user5|1220\n", "  bio|user5|1000\n  bio|user5|220\n"),
    }
    assert site_of(TEXTS | two, read_parts(pools), Names()) == site_of(TEXTS, read_parts(pools), Names())


def test_what_is_written_is_what_the_policy_takes(pools: Path, tmp_path: Path) -> None:
    names = Names()
    site = site_of(TEXTS, read_parts(pools), names)
    file = tmp_path / "site.toml"
    file.write_text(as_toml(site, names))
    spec = canonical("policy", f"slurm:site={file}")
    assert "accounts=0:0:1:1;1:0:10:1;2:0:60:0;3:2:2:2" in spec
    assert "backfill=yes,weight_age=10000" in spec
    assert "# user: 1 user5, 2 user1" in file.read_text()


def test_priorities_that_are_none_are_first_come_first_served(pools: Path) -> None:
    texts = TEXTS | {"config": CONFIG.replace("priority/multifactor", "priority/basic")}
    keys, notes = site_of(texts, read_parts(pools), Names())
    assert "weight_age" not in keys
    assert notes[0] == "PriorityType=priority/basic: treated as first come, first served"


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({"config": ""}, "no SchedulerType"),
        ({"partitions": "PartitionName=batch Nodes=n1\n"}, "PartitionName=batch has no PriorityJobFactor"),
        ({"qos": "normal|0\n"}, "expected Name,Priority,UsageFactor"),
        ({"qos": "normal|high|1\n"}, "priority of QOS of Slurm: expected a whole number, found 'high'"),
        ({"qos": "normal|0|nan\n"}, "usage factor of QOS: expected a number of at least 0, found 'nan'"),
        ({"usage": "bio|user5|many\n"}, "usage of sshare of Slurm: expected a whole number, found 'many'"),
        ({"partitions": PARTITIONS.replace("PriorityTier=3", "PriorityTier=x")}, "PriorityTier of Slurm: expected"),
        ({"config": CONFIG.replace("20000", "2e4")}, "PriorityWeightFairShare of Slurm: expected a whole number"),
        ({"reservations": RESERVATIONS.replace("CoreCnt=4", "CoreCnt=four")}, "CoreCnt of Slurm: expected"),
    ],
)
def test_answers_of_another_kind_are_named(pools: Path, changed: dict[str, str], wrong: str) -> None:
    with pytest.raises(FollowError, match=wrong):
        site_of(TEXTS | changed, read_parts(pools), Names())


def test_hidden_partitions_are_asked_for() -> None:
    shown = [command for command in COMMANDS.values() if command[0] == "scontrol" and command[-1] != "config"]
    assert len(shown) == 3
    assert all("-a" in command for command in shown)


@pytest.mark.parametrize(
    ("first", "second", "memory"),
    [
        ("CPUAlloc=8 AllocMem=0", "CPUAlloc=0 AllocMem=0", None),
        ("CPUAlloc=8 AllocMem=900", "CPUAlloc=4 AllocMem=0", 4000),
        ("CPUAlloc=0 AllocMem=0", "CPUAlloc=0 AllocMem=0", 4000),
        ("", "CPUAlloc=4", 4000),
    ],
)
def test_nodes_on_which_jobs_run_without_memory_have_none(
    tmp_path: Path, first: str, second: str, memory: int | None
) -> None:
    """With CR_Core, jobs in files without TRES requested a node's memory each, so one ran on each node."""
    file = tmp_path / "nodes.txt"
    file.write_text(
        f"NodeName=n1 CPUTot=8 {first} RealMemory=2000 Partitions=batch\n"
        f"NodeName=n2 CPUTot=8 {second} RealMemory=2000 Partitions=batch\n"
    )
    (pool,) = read_parts(file).pools
    assert pool.memory == memory
