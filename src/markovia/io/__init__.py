"""Files: read and write models in the formats people already have."""

from markovia.io.networkx_interop import from_networkx, to_networkx
from markovia.io.pgmpy_interop import from_pgmpy, to_pgmpy
from markovia.io.pyagrum_interop import from_pyagrum, to_pyagrum
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
    "from_networkx",
    "from_pgmpy",
    "from_pyagrum",
    "load",
    "loads",
    "read_evid",
    "read_map",
    "read_mar",
    "read_pr",
    "save",
    "to_networkx",
    "to_pgmpy",
    "to_pyagrum",
    "write_evid",
    "write_map",
    "write_mar",
    "write_pr",
]
