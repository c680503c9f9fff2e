"""Files: read and write models in the formats people already have."""

from markovia.io.registry import Format, dumps, formats, load, loads, save

__all__ = ["Format", "dumps", "formats", "load", "loads", "save"]
