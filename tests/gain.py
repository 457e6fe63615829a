"""Does training pay? `python -m tests.gain --seeds 8 [--out runs/gain] [-- OPTIONS OF SEAL TRAIN]`.

Runs `seal train ENV -m MODEL` once a seed, each in a folder of its own: what is finished is read
back, what was cut off resumes. The gain is that of the trained over the base policy on the test
split, under the original words, paired by scenario; the mean over seeds has Student's interval.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

STUDENT_95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306}
STUDENT_95 |= {9: 2.262, 11: 2.201, 15: 2.131, 19: 2.093}
"""Quantiles of Student's t by degrees of freedom, as tabulated."""


def trained(seed: int, options: argparse.Namespace) -> dict:
    out = options.out / f"seed-{seed}"
    seal = str(Path(sys.executable).with_name("seal"))
    command = [seal, "train", options.environment, "-m", options.model]
    command += ["--seed", str(seed), "--out", str(out), "--json", "-q", *options.rest]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"seed {seed}: exit code {done.returncode}\n{done.stderr}")
    summary = json.loads(done.stdout.splitlines()[-1])
    stages = [json.loads(line) for line in (out / "stages.jsonl").read_text().splitlines()[1:]]
    seconds = sum(s["seconds"] for s in stages if s["name"] != "warm start")
    gain = summary["gain"]
    return {
        "seed": seed,
        "seconds": round(seconds),
        "base": summary["base"]["original"]["score"],
        "trained": summary["trained"]["original"]["score"],
        "gain": gain["effect"],
        "low": gain["low"],
        "high": gain["high"],
    }


def mean_interval(values: list[float]) -> tuple[float, float, float]:
    mean = statistics.fmean(values)
    freedom = len(values) - 1
    known = max(f for f in STUDENT_95 if f <= freedom)
    half = STUDENT_95[known] * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", default="rooms")
    parser.add_argument("--model", default="local:tiny")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/gain"))
    parser.add_argument("rest", nargs="*", help="options of seal train, after --")
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error("an interval over seeds needs at least 2 of them")
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda seed: trained(seed, options), range(1, options.seeds + 1)))
    for row in rows:
        print(json.dumps(row))
    mean, low, high = mean_interval([row["gain"] for row in rows])
    figures = {"gain": mean, "low": low, "high": high}
    print(json.dumps({"seeds": len(rows), **{k: round(v, 3) for k, v in figures.items()}}))


if __name__ == "__main__":
    main()
