"""Find an environment by what a user types: a folder, a name, or `name@CONVENTION_SEED`."""

from pathlib import Path

from seal.envs.template import EnvironmentTemplate, load_template
from seal.errors import ConfigError, did_you_mean
from seal.resources import resource_folder


def shipped_environments() -> list[str]:
    """The names of the environments that come with SEAL."""
    folders = resource_folder("env_templates").glob("*/env.toml")
    return sorted(path.parent.name for path in folders)


def load_environment(environment: str | Path) -> EnvironmentTemplate:
    """The environment in a folder, or of a name, with `@SEED` for its conventions.

    Raises:
        ConfigError: There is no such environment, or the seed is no number.
        TemplateError: A file of the environment is wrong.
    """
    text = str(environment)
    name, at, seed_text = text.rpartition("@")
    if not at or "/" in seed_text or (Path(text) / "env.toml").is_file():
        name, seed_text = text, "0"
    if not seed_text.isdecimal():
        raise ConfigError(
            f"{text}: '{seed_text}' is no convention seed; write a number, such as {name}@7."
        )
    return load_template(_folder(name), resource_folder("env_templates"), int(seed_text))


def _folder(name: str) -> Path:
    shipped = resource_folder("env_templates") / name
    if (shipped / "env.toml").is_file() and "/" not in name:
        return shipped
    if (Path(name) / "env.toml").is_file():
        return Path(name)
    known = shipped_environments()
    what = "a folder without env.toml" if Path(name).is_dir() else "no such environment"
    raise ConfigError(
        f"{name}: {what}.\n"
        f"Environments: {', '.join(known)}, or a folder that holds an env.toml."
        f"{did_you_mean(name, known)}"
    )
