"""A model on a screen or in a file: save, plot, show, report."""

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from markovia.graphs.kinds.plot_options import Highlight, Positions
from markovia.inference.engine import Engine
from markovia.models.graphical.base import GraphicalModel
from markovia.runtime import ports
from markovia.runtime.keyword_advice import guided
from markovia.runtime.shown import html_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ScreenVerbs(GraphicalModel):
    """A model that can be looked at."""

    def _repr_html_(self) -> str:
        return html_picture(self, len(self), repr(self))

    def save(self, path: str | PathLike[str], format: str | None = None) -> None:  # noqa: A002
        """Write the model to a file; the suffix (or `format=`) decides the format."""
        ports.call("save", self, path, format=format)

    @guided
    def plot(
        self,
        *,
        ax: "Axes | None" = None,
        given: Mapping[str, Any] | str | Iterable[str] | None = None,
        do: Mapping[str, Any] | None = None,
        posteriors: bool = False,
        distributions: bool = False,
        layout: Positions = "auto",
        highlight: Highlight = None,
        title: str | None = None,
        engine: str | Engine = "auto",
        max_states: int = 8,
        seed: int = 0,
        progress: bool | None = None,
    ) -> "Axes":
        """Draw the graph, by itself or with posteriors in its nodes; see `markovia.plotting.plot_model`."""
        return ports.draw(
            "plot-model",
            self,
            ax=ax,
            given=given,
            do=do,
            posteriors=posteriors,
            distributions=distributions,
            layout=layout,
            highlight=highlight,
            title=title,
            engine=engine,
            max_states=max_states,
            seed=seed,
            progress=progress,
        )

    @guided
    def show(
        self,
        *,
        given: Mapping[str, Any] | None = None,
        do: Mapping[str, Any] | None = None,
        height: int = 480,
        engine: str = "auto",
    ) -> Any:
        """Show the model in a notebook, with a posterior in every node: a click on a bar observes a state.

        Parameters
        ----------
        given, do
            Evidence and interventions to begin with. The widget's traits `given` and `do` are those of now: a click
            changes them, and setting them changes the picture.
        height
            Of the picture, in pixels.
        engine
            Who answers models that are too large to be answered in the page.

        Returns
        -------
        the widget
            For Jupyter, VS Code and marimo; its `marginals` are the posteriors under the evidence of now.

        Raises
        ------
        MarkoviaError
            If anywidget is not installed: `pip install markovia[notebook]`.
        """
        return ports.call("show", self, given=given, do=do, height=height, engine=engine)

    @guided
    def report(
        self,
        path: str | PathLike[str],
        *,
        given: Mapping[str, Any] | None = None,
        do: Mapping[str, Any] | None = None,
        title: str | None = None,
        engine: str = "auto",
    ) -> None:
        """Write the model, findings and their answers as one HTML file that needs nothing else.

        A small discrete model stays interactive: the page computes the answer to any findings by itself. Of a larger one
        the answers to single findings come along as far as they fit, and the page says so.

        Parameters
        ----------
        path
            The file to write.
        given, do
            Evidence and interventions that the report begins with.
        title
            What to call it, by default the model's name.
        engine
            Who answers while the report is written.

        Examples
        --------
        >>> import markovia as mk, tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "report.html"
        >>> mk.examples.asia().report(file, given={"xray": "yes"})
        >>> "xray = yes" in file.read_text(encoding="utf-8")
        True
        """
        ports.call("report", self, path, given=given, do=do, title=title, engine=engine)
