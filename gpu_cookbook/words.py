"""Text that somebody else wrote: a stored file, a recipe's last words, an exception. It is made plain where it comes in
(results.py and scaling.py for what a worker sends, store/door.py for what a file contains, doctor/ for what a machine
calls its parts), and each format escapes it once more for itself: html.escape, and the functions here."""

import codecs
import re
from typing import Any

SPACES = "\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}"  # the tables' own; all others are made visible
MOST = 2_000  # characters: nothing that a person reads in a table is longer
# At the start of a paragraph, any punctuation but "=" may begin a heading, a list, a directive or a comment, and "1. "
# a list. Elsewhere, GitHub makes links of bare addresses and names, and "&lt;" is a character.
MARKUP = re.compile(
    r"^(?P<number>\d+)(?=[.)](?:\s|$))|^[!-/:-<>-@[-`{-~]|[\\`*_~|<>\[\]{}$@]|:(?=//)|(?<=www)\.|&(?=#?\w+;)", re.ASCII
)
SUBSTITUTES = str.maketrans(  # for our own signs, where the encoding of a terminal has none
    {
        "µ": "u",
        "×": "x",
        "–": "-",
        "†": "+",
        "≈": "c.",
        "≤": "<=",
        "≥": ">=",
        "²": "^2",
        "→": "->",
        "·": "*",
        "…": "...",
    }
    | {"✓": "yes", "✗": "no", "○": "o"}
    | dict.fromkeys(SPACES, " ")
)
FORMULA = ("=", "+", "-", "@")  # a spreadsheet computes a cell that begins so


def plain(text: str) -> str:
    """The text in one line without anything that a terminal or a browser obeys instead of showing it: control
    characters, escape sequences, marks that turn the direction of writing, halves of characters. They are written as
    Python would write them: \\x1b. A text that is far too long is cut."""
    if not text.isprintable():
        text = "".join(sign if sign.isprintable() or sign in SPACES else _visible(sign) for sign in text[:MOST])
    return text if len(text) <= MOST else f"{text[: MOST - 1]}…"


def reason(error: BaseException) -> str:
    """An exception as one line of a table."""
    lines = "".join(c if c.isprintable() or c == "\n" else " " for c in str(error)).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300].strip()}" if lines else type(error).__name__


def make_plain(made: Any) -> None:
    """Makes the texts of a new dataclass plain: a recipe's process, a file or a driver may have any in it."""
    for name, value in vars(made).items():
        if type(value) is str and not (value.isprintable() and len(value) <= MOST):  # a str, not a Status
            object.__setattr__(made, name, plain(value))


def _visible(sign: str) -> str:
    return " " if sign in "\n\t" else sign.encode("unicode_escape").decode()


def markdown(text: str) -> str:
    """The text as Markdown shows it, in a paragraph, a heading, a list or a cell of a table."""
    return MARKUP.sub(
        lambda found: f"{found[0]}\\" if found["number"] else f"\\{found[0]}", " ".join(plain(text).split())
    )


def csv_cell(value: object) -> object:
    """A text that a spreadsheet would compute gets a quotation mark before it; everything else is left as it is."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def substitute(error: UnicodeError) -> tuple[str, int]:
    """For codecs: what is written instead of signs that an encoding does not have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end].translate(SUBSTITUTES)
    return signs.encode("ascii", "backslashreplace").decode(), error.end


codecs.register_error("gpu-cookbook", substitute)
