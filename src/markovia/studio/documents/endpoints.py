"""What an endpoint is: a line in a table, from which its route, the check of its input and its description are made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, get_args, get_type_hints

from markovia.errors import MarkoviaError

if TYPE_CHECKING:
    from markovia.studio.documents.document import Document
    from markovia.studio.documents.workspace import Workspace

B = TypeVar("B", covariant=True)


class Refused(MarkoviaError):
    """A request that is answered with a status of its own and one sentence."""

    status = 400
    kind = "Refused"


class NotFound(Refused):
    """A document, file or job that is not there."""

    status = 404
    kind = "NotFound"


class StaleRevision(Refused):
    """A change of a document that was changed by somebody else meanwhile."""

    status = 409
    kind = "StaleRevision"


class TooBig(Refused):
    """A body, or what it unpacks to, beyond the limit."""

    status = 413
    kind = "TooBig"


class Costly(Refused):
    """A question whose estimated cost is beyond the limit."""

    status = 422
    kind = "TooLarge"

    def __init__(self, sentence: str, estimate: Mapping[str, float | None] | None = None) -> None:
        super().__init__(sentence)
        self.estimate = dict(estimate or {})


class Busy(Refused):
    """More requests than the server takes at once."""

    status = 503
    kind = "Busy"


@dataclass(frozen=True)
class Call(Generic[B]):
    """One request as a handler sees it: where it acts, the parts of its address, and its checked body."""

    workspace: "Workspace"
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: B = None  # type: ignore[assignment]
    parts: dict[str, Any] = field(default_factory=dict)
    """What other modules of the studio keep for the life of the server, such as its jobs."""

    @property
    def document(self) -> "Document":
        """The open document whose id is in the address."""
        return self.workspace.document(self.path["id"])

    @property
    def revision(self) -> int | None:
        """The revision of the document that the client has seen, where it says so."""
        said = self.query.get("revision")
        if said is None:
            return None
        if not said.isdecimal() or len(said) > 15:
            raise Refused(f"revision is a whole number, not {said[:40]!r}")
        return int(said)


class File(NamedTuple):
    """An answer that is a file to keep."""

    data: bytes
    name: str
    media: str = "application/octet-stream"


class Endpoint(NamedTuple):
    """One line of the table of endpoints.

    `request` is the type that the JSON body is read as, `bytes` for an upload, or None; `response` the type that goes
    back, or None for a file or a stream. `handle` is an ordinary function of a `Call`; it runs in a thread and returns
    the response, a `File`, or a Starlette response. `says` is one sentence; `query` explains the parameters of the query
    string, by name.
    """

    method: str
    path: str
    request: Any
    response: Any
    handle: Callable[[Call[Any]], Any]
    says: str
    query: Mapping[str, str] = {}


def endpoint(method: str, path: str, handle: Callable[[Call[Any]], Any], **query: str) -> Endpoint:
    """Return the line of a handler, whose annotations and docstring say what it takes, answers and does.

    Examples
    --------
    >>> def double(call: Call[float]) -> float:
    ...     "Double a number."
    ...     return 2 * call.body
    >>> endpoint("POST", "/double", double)[2:6]
    (<class 'float'>, <class 'float'>, <function double at ...>, 'Double a number.')
    """
    hints = get_type_hints(handle)
    request = next(iter(get_args(hints["call"])))
    answer = None if hints["return"] in (File, Any) else hints["return"]
    says = (handle.__doc__ or "").partition("\n")[0]
    return Endpoint(method, path, None if request is type(None) else request, answer, handle, says, query)
