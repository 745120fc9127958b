"""The command ``air-recsys``: thin, one module a group of commands."""

from air_recsys.cli.app import main

__all__ = ["main"]
