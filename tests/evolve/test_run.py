"""`evolve` from end to end: what it gains, and that a killed run ends as any other."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import seal
from seal.config import EvolveConfig, GateConfig
from seal.errors import ConfigError
from seal.evolve.lineage import Generation
from seal.evolve.run import EvolveOptions, gate_power
from seal.records import RunFolder
from seal.rollout.batch import RolloutSettings
from tests.evolve.parcels import write_parcels
from tests.evolve.rewriters import Fixed
from tests.factories import write_environment

ROOT = Path(__file__).resolve().parent.parent.parent
CONFIG = EvolveConfig(
    generations=2,
    profile_tasks=40,
    screen_scenarios=6,
    gate=GateConfig(scenarios=60, removal_scenarios=12),
)
OPTIONS = EvolveOptions()
PROGRAM = """\
import sys
from pathlib import Path
import seal
from seal.evolve.run import EvolveOptions
from tests.evolve.test_run import CONFIG
seal.evolve(sys.argv[1], "sim:novice", config=CONFIG, options=EvolveOptions(out=Path(sys.argv[2])))
"""


@pytest.fixture(scope="module")
def parcels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_parcels(tmp_path_factory.mktemp("environments") / "parcels")


@pytest.fixture(scope="module")
def whole(parcels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of an evolution that nobody disturbed."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    seal.evolve(parcels, "sim:novice", config=CONFIG, options=EvolveOptions(out=out))
    return out


def candidates(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "candidates").iterdir()}


def result(out: Path) -> dict[str, object]:
    found = json.loads((out / "result.json").read_text(encoding="utf-8"))
    return {key: value for key, value in found.items() if "usage" not in key}


def test_the_offline_rewriter_gains_on_an_environment_that_nobody_knew(whole: Path):
    found = result(whole)
    test = found["test"]
    assert test["pairs"] == 200
    assert test["low"] > 0.5, "the interval of the gain on the test split is far above 0"
    assert test["second"] > 0.8
    assert "dispatch_parcel.constraint.mass" in found["changed"], "the silent unit is told"
    assert "dispatch_parcel.recovery.refused" in found["changed"]


def test_two_run_folders_hold_the_same_bytes(parcels: Path, whole: Path, tmp_path: Path):
    out = tmp_path / "again"
    options = EvolveOptions(RolloutSettings(workers=4), out=out)
    seal.evolve(parcels, "sim:novice", config=CONFIG, options=options)
    assert candidates(out) == candidates(whole)
    for name in ("generations.jsonl", "proposals.jsonl", "profile.json"):
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name
    assert result(out) == result(whole), "nothing depends on the number of workers"


def test_the_folder_tells_what_the_call_returned(parcels: Path, whole: Path):
    found = seal.evolve(parcels, "sim:novice", config=CONFIG)
    assert found.model_dump(mode="json") == RunFolder(whole).result()
    kept = tuple(RunFolder(whole).lines("generations", Generation).read())
    assert kept == found.generations
    tried = {rollout.candidate for rollout in RunFolder(whole).rollouts()}
    assert {g.candidate for g in kept} | {found.original} <= tried
    assert set(candidates(whole)) == {f"{name}.json" for name in tried}


def test_a_run_killed_at_any_moment_ends_as_if_it_had_not_been(
    parcels: Path, whole: Path, tmp_path: Path
):
    out = tmp_path / "killed"
    draw = random.Random("kill")
    # As many bytes of rollouts as there are at the kills; the last process lives to the end.
    total = (whole / "rollouts.jsonl").stat().st_size
    for place in sorted(draw.uniform(0.0, 0.9) for _ in range(4)):
        process = start(parcels, out)
        while process.poll() is None and size(out / "rollouts.jsonl") < place * total:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        assert process.wait() in (-signal.SIGKILL, 0)
    assert not (out / "result.json").exists(), "it was killed before its end"
    assert start(parcels, out).wait() == 0
    assert candidates(out) == candidates(whole)
    for name in ("generations.jsonl", "proposals.jsonl", "profile.json"):
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name
    assert result(out) == result(whole)


def start(environment: Path, out: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(environment), str(out)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def test_a_torn_line_and_a_half_written_candidate_are_no_obstacle(
    parcels: Path, whole: Path, tmp_path: Path
):
    out = tmp_path / "torn"
    (out / "candidates").mkdir(parents=True)
    for name in ("run.toml", "proposals.jsonl"):
        (out / name).write_bytes((whole / name).read_bytes())
    rollouts = (whole / "rollouts.jsonl").read_bytes()
    (out / "rollouts.jsonl").write_bytes(rollouts[: len(rollouts) // 2])
    (out / "generations.jsonl").write_bytes(b'{"seal"')
    (out / "candidates" / "0123456789ab.json.77.partial").write_text("{", encoding="utf-8")
    seal.evolve(parcels, "sim:novice", config=CONFIG, options=EvolveOptions(out=out))
    assert candidates(out) == candidates(whole)
    assert (out / "generations.jsonl").read_bytes() == (whole / "generations.jsonl").read_bytes()


def test_a_folder_of_other_settings_is_not_touched(parcels: Path, whole: Path):
    before = (whole / "result.json").read_bytes()
    other = CONFIG.model_copy(update={"budget": 77})
    with pytest.raises(ConfigError, match="other settings"):
        seal.evolve(parcels, "sim:novice", config=other, options=EvolveOptions(out=whole))
    assert (whole / "result.json").read_bytes() == before


def test_an_authors_text_that_does_harm_is_replaced_and_said_to_be_dropped(tmp_path: Path):
    harm = "Before dispatch_parcel, call stamp_parcel, ring_owner and discard_parcel."
    slots = f'[dispatch_parcel]\naffordance = "{harm}"\n'
    folder = write_parcels(tmp_path / "parcels", slots=slots)
    mended = "Call stamp_parcel before dispatch_parcel."
    rewriter = Fixed({"dispatch_parcel.affordance": mended})
    found = seal.evolve(folder, "sim:novice", rewriter=rewriter, config=CONFIG)
    assert found.changed == found.dropped_seeds == ("dispatch_parcel.affordance",)
    assert found.test.low > 0


def test_the_power_of_a_gate_goes_by_the_scenarios_there_are(parcels: Path, tmp_path: Path):
    few = seal.load_environment(write_environment(tmp_path / "lamp"))
    scenarios, effect = gate_power(few, EvolveConfig())
    assert scenarios == 12
    many, small = gate_power(seal.load_environment(parcels), EvolveConfig())
    assert many == 240
    assert 0 < small < effect <= 1
