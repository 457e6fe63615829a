"""Environments: what an author writes, how it is rendered, run and verified."""

from seal.envs.environment import Environment, check, tool
from seal.envs.registry import load_environment
from seal.envs.template import EnvironmentTemplate

__all__ = ["Environment", "EnvironmentTemplate", "check", "load_environment", "tool"]
