"""SEAL: agents and the words of their learning environments evolve together."""

__version__ = "0.1.0"
