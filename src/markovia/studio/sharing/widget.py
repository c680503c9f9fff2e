"""The studio's view of a model as a notebook widget: Jupyter, VS Code and marimo, offline, with the evidence in Python.

A small discrete model is answered in the page, also where no Python runs behind it any more; for the others the page
asks Python. Either way the findings are the traits `given` and `do`, which both sides may set.
"""

from collections.abc import Mapping
from typing import Any

import anywidget
import msgspec
import numpy as np
import traitlets

from markovia.errors import InvalidArgument, MarkoviaError
from markovia.studio.documents import answers, messages
from markovia.studio.documents.endpoints import Call
from markovia.studio.documents.findings import findings, setting, told_findings, told_interventions
from markovia.studio.documents.views import view_of
from markovia.studio.documents.workspace import Workspace
from markovia.studio.sharing.bundle import bundled, static_text
from markovia.studio.sharing.in_page import page_tables


def _findings_out(value: Mapping[str, Any], widget: "NetworkWidget") -> dict[str, Any]:
    return told_findings(widget._held, value)


def _findings_in(value: Mapping[str, Any], widget: "NetworkWidget") -> dict[str, Any]:
    return findings(widget._held, msgspec.convert(value, dict[str, messages.Finding]))


def _doing_out(value: Mapping[str, Any], widget: "NetworkWidget") -> dict[str, Any]:
    return told_interventions(widget._held, value)


def _doing_in(value: Mapping[str, Any], widget: "NetworkWidget") -> dict[str, Any]:
    return {name: setting(widget._held, name, said) for name, said in value.items()}


class NetworkWidget(anywidget.AnyWidget):
    """A model as it is drawn in the studio, in a notebook.

    Attributes
    ----------
    given
        The evidence: what was clicked in the picture, and what the picture shows when it is set.
    do
        The interventions, likewise.

    Examples
    --------
    >>> import markovia as mk
    >>> widget = mk.examples.asia().show(given={"xray": "yes"})
    >>> widget.given
    {'xray': 'yes'}
    >>> widget.given = {"xray": "yes", "smoke": "no"}
    >>> round(widget.marginals["lung"]["yes"], 4)
    0.1423
    """

    _esm = bundled("widget.js", "export default { render: entry.render };")
    _css = static_text("studio.css") + static_text("widget.css")
    given = traitlets.Dict().tag(sync=True, to_json=_findings_out, from_json=_findings_in)
    do = traitlets.Dict().tag(sync=True, to_json=_doing_out, from_json=_doing_in)
    _content = traitlets.Dict().tag(sync=True)
    _height = traitlets.Int(480).tag(sync=True)
    _question = traitlets.Dict().tag(sync=True)
    _answer = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        model: Any,
        *,
        given: Mapping[str, Any] | None = None,
        do: Mapping[str, Any] | None = None,
        height: int = 480,
        engine: str = "auto",
    ) -> None:
        if not 120 <= height <= 4000:
            raise InvalidArgument(f"height is between 120 and 4000 pixels, not {height}")
        self._workspace = Workspace()
        self._document = self._workspace.add(model, getattr(model, "name", "") or "network")
        self._held = answers.networked(self._document.now.model)
        self._engine = engine
        view = msgspec.to_builtins(view_of(self._document))
        super().__init__(
            given=dict(given or {}),
            do=dict(do or {}),
            _content={"view": view, "tables": page_tables(self._held)},
            _height=height,
        )

    @property
    def marginals(self) -> dict[str, Any]:
        """The posterior of every variable without a finding, under the evidence of now."""
        model = self._document.doing(self.do)
        found: dict[str, Any] = model.marginals(given=self.given, engine=self._engine)
        return found

    @traitlets.validate("given")
    def _check_given(self, proposal: Any) -> dict[str, Any]:
        said = {n: s.tolist() if isinstance(s, np.ndarray) else s for n, s in proposal["value"].items()}
        told_findings(self._held, said)
        return said

    @traitlets.validate("do")
    def _check_do(self, proposal: Any) -> dict[str, Any]:
        said = dict(proposal["value"])
        told_interventions(self._held, said)
        return said

    @traitlets.observe("_question")
    def _answer_question(self, change: Any) -> None:
        asked = dict(change["new"])
        if not asked:
            return
        number, kind = asked.pop("number"), asked.pop("kind")
        request: Any
        handle: Any
        request, handle = {
            "marginals": (messages.AskMarginals, answers.marginals),
            "shading": (messages.AskShading, answers.shading),
        }[kind]
        try:
            body: Any = msgspec.convert({**asked, "engine": self._engine}, request)
            found = handle(Call(self._workspace, {"id": self._document.id}, body=body))
            self._answer = {"number": number, "found": msgspec.to_builtins(found)}
        except (MarkoviaError, msgspec.ValidationError) as error:
            self._answer = {"number": number, "error": str(error)}
