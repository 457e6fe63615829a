"""How fast SEAL is, against what else there is: `python -m tests.benchmarks NAME [--json]`.

A ratio is ours over theirs, and higher is better, unless a benchmark says otherwise. Figures move
with whatever else a machine is doing; so sides alternate within one run.
"""

import argparse
import json
import sys

from tests.benchmarks import bfcl, diagnosis, sampling

BENCHMARKS = {"bfcl": bfcl, "diagnosis": diagnosis, "sampling": sampling}
"""By name: modules with a docstring, `add_options(parser)`, `measure(options)`, `table(result)`."""


def main() -> None:
    parser = argparse.ArgumentParser("python -m tests.benchmarks", description=__doc__)
    names = parser.add_subparsers(dest="name", required=True)
    for name, module in BENCHMARKS.items():
        described = (module.__doc__ or "").partition("\n")[0]
        options = names.add_parser(name, help=described, description=described)
        options.add_argument("--json", action="store_true", help="the figures as a JSON object")
        module.add_options(options)
    options = parser.parse_args()
    module = BENCHMARKS[options.name]
    result = module.measure(options)
    print(json.dumps(result) if options.json else module.table(result))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
