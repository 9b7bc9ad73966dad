"""A snapshot of the hidden Markov model serves another process."""

import subprocess
import sys

import orjson

from shadowtime.services.runtime_distribution.hmm.predictor import Hmm, HmmSettings
from tests.support.hmm_log import log, play


def test_a_snapshot_serves_another_process() -> None:
    predictor = Hmm(HmmSettings(states=3))
    events = log(17, 1200)
    told = len(events) - 300
    play(predictor, events[:told])
    program = (
        "import sys, orjson\n"
        "from shadowtime.services.runtime_distribution.hmm.predictor import Hmm\n"
        "from shadowtime.services.runtime_distribution.hmm.predictor import HmmSettings\n"
        "from tests.support.hmm_log import log, play\n"
        "predictor = Hmm(HmmSettings(states=3))\n"
        "predictor.restore(orjson.loads(sys.stdin.buffer.read()))\n"
        "play(predictor, log(17, 1200), TOLD)\n"
        "sys.stdout.buffer.write(orjson.dumps(predictor.snapshot()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program.replace("TOLD", str(told))],
        input=orjson.dumps(predictor.snapshot()),
        capture_output=True,
        check=True,
    )
    whole = Hmm(HmmSettings(states=3))
    play(whole, events)
    assert orjson.loads(done.stdout) == whole.snapshot()
