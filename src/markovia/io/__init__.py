"""Files: read and write models in the formats people already have."""

from markovia.io.registry import Format, dumps, formats, load, loads, save
from markovia.io.uai_results import (
    PartitionFunction,
    read_evid,
    read_map,
    read_mar,
    read_pr,
    write_evid,
    write_map,
    write_mar,
    write_pr,
)

__all__ = [
    "Format",
    "PartitionFunction",
    "dumps",
    "formats",
    "load",
    "loads",
    "read_evid",
    "read_map",
    "read_mar",
    "read_pr",
    "save",
    "write_evid",
    "write_map",
    "write_mar",
    "write_pr",
]
