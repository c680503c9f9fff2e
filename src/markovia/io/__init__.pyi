"""The names that `markovia.io` hands out, each with its home."""

from markovia.io.networkx_interop import from_networkx as from_networkx
from markovia.io.networkx_interop import to_networkx as to_networkx
from markovia.io.pgmpy_interop import from_pgmpy as from_pgmpy
from markovia.io.pgmpy_interop import to_pgmpy as to_pgmpy
from markovia.io.pyagrum_interop import from_pyagrum as from_pyagrum
from markovia.io.pyagrum_interop import to_pyagrum as to_pyagrum
from markovia.io.registry import Format as Format
from markovia.io.registry import dumps as dumps
from markovia.io.registry import formats as formats
from markovia.io.registry import load as load
from markovia.io.registry import loads as loads
from markovia.io.registry import save as save
from markovia.io.uai_results import PartitionFunction as PartitionFunction
from markovia.io.uai_results import read_evid as read_evid
from markovia.io.uai_results import read_map as read_map
from markovia.io.uai_results import read_mar as read_mar
from markovia.io.uai_results import read_pr as read_pr
from markovia.io.uai_results import write_evid as write_evid
from markovia.io.uai_results import write_map as write_map
from markovia.io.uai_results import write_mar as write_mar
from markovia.io.uai_results import write_pr as write_pr
