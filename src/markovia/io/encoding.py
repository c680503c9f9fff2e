"""From the bytes of a file to text.

A byte order mark decides first. Without one, an XML file is decoded as its declaration
(`<?xml version="1.0" encoding="..."?>`) says, and everything else as UTF-8. Older files that are not UTF-8 are
read as Latin-1, in which every byte is some character; a warning names the first byte that made it necessary.
Text with NUL characters is refused: it is a binary file, or UTF-16 without its mark.
"""

import codecs
import re

from markovia.errors import ParseError, warn_user

_MARKS = (b"\xff\xfe", b"\xfe\xff")
_DECLARED = re.compile(rb"\s*+<\?xml\s[^<>]{0,200}?\bencoding\s*=\s*[\"']([^\"'<>]{0,100})[\"']")
# they undo escapes or encode host names, and no other program takes them for the encoding of a document
_NOT_FOR_FILES = {"unicode-escape", "raw-unicode-escape", "idna", "punycode", "undefined"}


def decoded(data: bytes | bytearray, source: str | None = None, *, xml: bool = False) -> str:
    r"""Return the text of a file.

    Parameters
    ----------
    data
        All bytes of the file.
    source
        The file's name for messages.
    xml
        Whether to honour the encoding that an XML declaration names.

    Raises
    ------
    ParseError
        If a declared encoding is unknown or wrong, or the text has a NUL character.

    Warns
    -----
    UserWarning
        If the text was not UTF-8 and has been read as Latin-1.

    Examples
    --------
    >>> decoded(b"\xef\xbb\xbfcaf\xc3\xa9")
    'café'
    >>> decoded(b'<?xml version="1.0" encoding="windows-1252"?><a>5 \x80</a>', xml=True)[-10:]
    '<a>5 €</a>'
    """
    declared = _DECLARED.match(data) if xml else None
    if data.startswith(_MARKS):
        text = _utf16(data, source)
    elif declared is not None:
        text = _as_declared(data, declared, source)
    else:
        text = _utf8_or_latin1(data, source)
    check_text(text, source)
    return text


def check_text(text: str, source: str | None = None) -> None:
    """Refuse text with NUL characters.

    Raises
    ------
    ParseError
        At the first one.
    """
    if (at := text.find("\0")) >= 0:
        line, column = _position(text[:at])
        raise ParseError("expected text, found a NUL character", file=source, line=line, column=column)


def _utf16(data: bytes | bytearray, source: str | None) -> str:
    try:
        return data.decode("utf-16")
    except UnicodeDecodeError:
        raise ParseError("expected text in UTF-8, UTF-16 or Latin-1", file=source) from None


def _as_declared(data: bytes | bytearray, declared: re.Match[bytes], source: str | None) -> str:
    name = declared[1].decode("latin-1")
    line, column = _position(data[: declared.start(1)].decode("latin-1"))
    try:
        encoding = codecs.lookup(name).name
        legible = "<?xml".encode(encoding) == b"<?xml"
    except (LookupError, UnicodeError, ValueError):
        encoding, legible = "", False
    if not encoding or encoding.replace("_", "-") in _NOT_FOR_FILES:
        raise ParseError(
            f"expected an encoding that Python knows, found {name[:40]!r}",
            file=source,
            line=line,
            column=column,
        )
    if encoding == "utf-8" or not legible:
        # the declaration has just been read as ASCII, so a file that claims UTF-16 here is not in UTF-16
        return _utf8_or_latin1(data, source)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line, column = _position(data[: error.start].decode(encoding, "replace"))
        raise ParseError(
            f"expected text in the declared encoding {name[:40]}, found the byte 0x{data[error.start]:02x}",
            file=source,
            line=line,
            column=column,
        ) from None


def _utf8_or_latin1(data: bytes | bytearray, source: str | None) -> str:
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = _position(data[: error.start].decode("utf-8"))
        warn_user(
            f"{source or '<string>'}:{line}:{column}: the byte 0x{data[error.start]:02x} is not UTF-8; "
            "the whole text was read as Latin-1"
        )
        return data.decode("latin-1")


def _position(before: str) -> tuple[int, int]:
    """Return line and column (from 1) of what follows this text."""
    return before.count("\n") + 1, len(before) - before.rfind("\n")
