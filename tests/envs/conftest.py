import importlib.util
import json
import os
import sys

import pytest

from seal.envs.bfcl_data import CATEGORIES, package_folder
from seal.envs.registry import load_environment
from seal.models.fetch import fetched


@pytest.fixture(scope="session")
def package():
    if fetched("bfcl") is None or importlib.util.find_spec("mpmath") is None:
        missing = "the BFCL data (seal fetch bfcl) or the bfcl extra is not here"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    return package_folder()


@pytest.fixture(scope="session")
def bfcl(package):
    assert package.is_dir()
    return load_environment("bfcl")


@pytest.fixture(scope="session")
def tasks(bfcl):
    return {task.id: task for task in bfcl.tasks(None)}


@pytest.fixture(scope="session")
def official(package):
    """The official executor and checks, which evaluate call strings; only tests use them."""
    sys.path.insert(0, str(package.parent))
    try:
        from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_checker, multi_turn_utils
    finally:
        sys.path.remove(str(package.parent))
    multi_turn_checker.execute = multi_turn_utils.execute_multi_turn_func_call
    return multi_turn_checker


@pytest.fixture(scope="session")
def entries(package):
    """The release's own entries, with their reference calls, by our task ids."""
    found = {}
    for category in CATEGORIES:
        name = f"BFCL_v4_multi_turn_{category}.json"
        data = package / "data"
        answers = (data / "possible_answer" / name).read_text("utf-8").splitlines()
        for entry, answer in zip(
            (data / name).read_text("utf-8").splitlines(), answers, strict=True
        ):
            parsed = json.loads(entry)
            task_id = parsed["id"].removeprefix("multi_turn_")
            found[task_id] = (parsed, json.loads(answer)["ground_truth"])
    return found
