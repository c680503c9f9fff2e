"""How long pictures of large graphs take: networks of the benchmarks and random graphs of up to a thousand nodes.

    python benchmarks/pictures.py

Times are seconds of processor time, of the layout and drawing together and of writing the picture as SVG and as PNG.
"""

import argparse
import os
from io import BytesIO
from pathlib import Path
from time import process_time
from typing import Any

import matplotlib

matplotlib.use("agg")

from matplotlib import pyplot as plt

import markovia as mk

NETWORKS = ("alarm", "hailfinder", "pigs", "munin")


def main() -> None:
    """Draw each graph once and print the seconds."""
    options = argparse.ArgumentParser(description=__doc__)
    home = os.environ.get("MARKOVIA_BENCHMARKS", "shared/benchmarks")
    options.add_argument(
        "--folder", type=Path, default=Path(home) / "bif", help="where the .bif.gz files are"
    )
    chosen = options.parse_args()
    graphs: dict[str, Any] = {}
    for name in NETWORKS:
        path = chosen.folder / f"{name}.bif.gz"
        if path.exists():
            graphs[name] = mk.load(path).graph
    for edges in (1_500, 2_500):
        dag = mk.graphs.random_dag(1_000, n_edges=edges, seed=0)
        graphs[f"random DAG, {edges:,} edges"] = dag
        graphs[f"undirected, {edges:,} edges"] = mk.graphs.UndirectedGraph(dag.edges, nodes=dag.nodes)
    graphs["tree"] = mk.graphs.random_tree(1_000, seed=0)
    graphs["grid"] = mk.generators.ising_grid(32, 32, coupling=1.0).graph
    mk.examples.asia().plot()  # matplotlib reads its fonts once
    print(f"{'graph':<26}{'nodes':>7}{'edges':>7}{'drawn s':>9}{'svg s':>8}{'png s':>8}")
    for name, graph in graphs.items():
        start = process_time()
        figure = mk.plotting.plot_graph(graph, progress=False).figure
        times = [process_time() - start]
        for kind in ("svg", "png"):
            start = process_time()
            figure.savefig(BytesIO(), format=kind)
            times.append(process_time() - start)
        plt.close(figure)
        print(
            f"{name:<26}{len(graph.nodes):>7,}{len(graph.edges):>7,}" + "".join(f"{t:>8.2f}" for t in times)
        )


if __name__ == "__main__":
    main()
