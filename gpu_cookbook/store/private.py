"""What a text may tell of the person or the network that a machine belongs to: paths, names, addresses. ``gpu-cookbook
send`` takes it out, and ``verify`` looks for it, by the same rules."""

import getpass
import ipaddress
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

GONE = "…"
# A fraction, a URL and what was shortened before have something else than a space or a bracket before their slash.
PATH = re.compile(r"(?<![\w/.)\]}…])(?:~[\w.-]*|\.{1,2})?/(?=[A-Za-z_.~])[^\s'\"<>|,;:()\[\]{}]*|\bfile:/+\S*", re.I)
WINDOWS = re.compile(r"\b[A-Za-z]:\\[^\s'\"<>|,;]*|(?<!\\)\\\\\w[^\s'\"<>|,;]*")
ENVIRONMENT = re.compile(r"(existing|virtualenv|conda|mamba|rattler|uv)-py\d+\.\d+(-[A-Za-z0-9_.=<>!+-]+)?")
PYTHON = re.compile(r"\d+\.\d+(\.\d+)?")
# asv writes a path into the name of an environment that it did not make, with "_" for each slash.
FLAT_PATH = re.compile(r"(?:^|[-_])(?:home|users|root|usr|opt|mnt|tmp|var|srv|data|scratch|bin)_[^\s/]*", re.I)
ADDRESS = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-][\w.-]*")
# After "==" or ">=" there is a version, after a single "=" whatever a program prints.
IPV4 = re.compile(r"(?<![\w.])(?<![=<>!~]=)\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\w)")
IPV6 = re.compile(r"(?<![\w:])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])")
MAC = re.compile(r"\b[0-9A-F]{2}(?:[:-][0-9A-F]{2}){5}\b", re.I)
SERIAL = re.compile(
    r"\b(?:GPU-|MIG-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?:serial (?:number|no)|s/n)\W{0,3}\w+", re.I
)
HOST = re.compile(
    r"(?<![\w.-])[\w.-]+\.(?:(?:localdomain|lan|corp|intranet)\b|(?:local|internal)\b(?!\(|\.\w))|\bip-\d+-\d+-\d+-\d+\b",
    re.I,
)
FILE = re.compile(r"[\w.+-]+\.(?:so(?:\.\d+)*|py|cu|cl|c|cpp|h|hpp|icd|ptx)")  # whose name says what went wrong
# Four numbers with dots between them are a version here, not an address.
VERSIONS = {"versions", "packages", "driver", "os", "version", "value"}
# Only there a user's or a computer's name is looked for: in a device or a version, "amd" is somebody else.
FREE = {"reason", "os", "value", "resident", "prepared", "transfer", "pinned", "first result"}
COMMON = {"root", "user", "admin", "ubuntu", "debian", "docker", "runner", "localhost", "nvidia", "python", "linux"}


def _is_address(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    plausible = address.version == 4 or re.search(r"[0-9A-Fa-f]{3,4}", text) and re.search(r"\d", text)
    return bool(plausible) and not (address.is_loopback or address.is_unspecified)  # everybody's own


RULES: tuple[tuple[str, re.Pattern[str], Callable[[str], bool]], ...] = (
    ("a path", PATH, lambda text: True),
    ("a path", WINDOWS, lambda text: True),
    ("an address or a user's name", ADDRESS, lambda text: True),
    ("a network address", MAC, lambda text: True),
    ("a network address", IPV4, _is_address),
    ("a network address", IPV6, _is_address),
    ("a serial number", SERIAL, lambda text: True),
    ("a computer's name", HOST, lambda text: True),
)


def own_names() -> tuple[str, ...]:
    """This user's home and name and this computer's name, which mean something in no result."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        user = ""
    home = os.environ.get("HOME") or ""
    host = socket.gethostname()
    words = (user, host, host.partition(".")[0])
    return tuple(dict.fromkeys(each for each in (home, *words) if len(each) > 2 and each.lower() not in COMMON))


def is_own(word: str) -> bool:
    """Whether this is the name of the user or of the computer."""
    return word.lower() in {each.lower() for each in own_names()}


def found(text: str, key: str = "") -> Iterator[tuple[str, str]]:
    """(what it is, the piece of the text) for all that is private. ``key``: the field that has the text."""
    for what, pattern, meant in RULES:
        if pattern is not IPV4 or key not in VERSIONS:
            yield from ((what, match[0]) for match in pattern.finditer(text) if meant(match[0]))


def scrubbed(text: str, key: str = "", own: Sequence[str] = ()) -> str:
    """The text without what is private. A path ends in the name of its file where that says what went wrong."""
    for name in own if key in FREE else ():
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", GONE, text, flags=re.I)
    for _, pattern, meant in RULES:
        if pattern is not IPV4 or key not in VERSIONS:
            text = pattern.sub(partial(_replaced, meant), text)
    return text


def _replaced(meant: Callable[[str], bool], match: re.Match[str]) -> str:
    return _short(match[0]) if meant(match[0]) else match[0]


def _short(piece: str) -> str:
    last = piece.replace("\\", "/").rpartition("/")[2]
    return f"{GONE}/{last}" if "/" in piece and FILE.fullmatch(last) else GONE


def names_a_place(data: Mapping[str, Any]) -> bool:
    """Whether the environment of one of asv's files may have the path of its Python for a name, as asv gives it to one
    that it did not make, unless our plugin tells it better."""
    environment, pythons = data["env_name"], (data["python"], data["params"].get("python") or data["python"])
    if not ENVIRONMENT.fullmatch(environment) or FLAT_PATH.search(environment):
        return True
    return not all(map(PYTHON.fullmatch, pythons))


def texts(data: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """(key, text) of every text in plain data, the keys among them."""
    if isinstance(data, str):
        yield key, data
    elif isinstance(data, dict):
        for name, value in data.items():
            yield "", name
            yield from texts(value, name)
    elif isinstance(data, list):
        for each in data:
            yield from texts(each, key)


def without(data: Any, key: str = "", own: Sequence[str] = ()) -> Any:
    """A copy of plain data, all of whose texts are scrubbed; keys are left as they are."""
    if isinstance(data, str):
        return scrubbed(data, key, own)
    if isinstance(data, dict):
        return {name: without(value, name, own) for name, value in data.items()}
    return [without(each, key, own) for each in data] if isinstance(data, list) else data
