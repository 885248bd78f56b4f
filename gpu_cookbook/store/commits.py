"""What git says about the clone that results belong to."""

import ast
import io
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from gpu_cookbook.catalogue import UNREADABLE, Recipe

C_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
DOCSTRING = re.compile(r'\A"""(?:[^"\\]|"(?!""))*"""\n')  # of a module
# What only checking and showing use of a workload. AWKWARD is the name of EDGE_SIZES in older commits.
CHECKED_ONLY = {
    *("EDGE_SIZES", "AWKWARD", "MEANS", "tolerance", "error_scale", "exact_inputs", "special_inputs", "_special"),
    *("shared_mean", "shared_reference", "shared_tolerance", "shared_error_scale"),
    *("MORE_SIZES", "LARGE_SIZES", "MANY_PIECES", "wrong_inputs", "too_small", "label"),
}
HOSTED = re.compile(
    r"(?:https://(?P<host>[\w.-]+)/|ssh://git@(?P<ssh>[\w.-]+)(?::\d+)?/|git@(?P<scp>[\w.-]+):)"
    r"(?P<path>[\w./~-]+?)(?:\.git)?/?"
)
UNSHALLOW = "In a shallow clone, run: git fetch --unshallow"
CODE = ("recipes", "kernels", "gpu_cookbook")  # what a metric depends on
# Whose results are stale once it has changed.
MEASURED = (
    "recipes",
    "kernels",
    "docs/transfers",
    "docs/launches",
    "docs/concepts",
    "docs/together",
    "docs/all-reduce",
)

_known: dict[str, str] = {}  # the texts of blobs


class StoreError(OSError):
    """Results cannot be stored or found; the message says what to do."""


class UnknownCommit(StoreError):
    """Something belongs to a commit that the clone does not have."""

    def __init__(self, commit: str) -> None:
        self.commit = commit[:8]
        super().__init__(f"belongs to a commit that this repository does not have ({self.commit}). {UNSHALLOW}")


def without_commits(unknown: Mapping[str, UnknownCommit], where: str, things: str) -> list[str]:
    """What is wrong with all of these, which a shallow clone has by the hundred, in one line: {what: its error}.
    ``where`` they are; ``things``: what they are called, if there are several."""
    if len(unknown) < 2:
        return [f"{what}: {error}" for what, error in unknown.items()]
    commits = [*dict.fromkeys(error.commit for error in unknown.values())]
    names = ", ".join([*commits[:3], *["…"] * (len(commits) > 3)])
    return [
        f"{where}: {len(unknown)} {things} belong to commits that this repository does not have ({names}). {UNSHALLOW}"
    ]


def git(root: Path, *arguments: str) -> str:
    """The output of git, or an empty string if it fails. StoreError if there is no git, or if it trusts nobody else's
    clone."""
    return _git(root, *arguments) or ""


def _forget_other_repositories() -> None:
    """Removes the variables by which a git hook, or whoever keeps a home folder in git, names another repository than
    that of the folder where git is called: also for asv, which calls git itself."""
    for name in ("DIR", "WORK_TREE", "INDEX_FILE", "COMMON_DIR", "OBJECT_DIRECTORY", "NAMESPACE", "PREFIX"):
        os.environ.pop(f"GIT_{name}", None)


def _git(root: Path, *arguments: str) -> str | None:
    """The same; None if git fails."""
    _forget_other_repositories()
    command = ["git", "-c", "log.showSignature=false", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    except FileNotFoundError:
        raise StoreError("Stored results belong to commits, but git is not on PATH: install it.") from None
    if done.returncode and (advice := re.search(r"git config --global --add safe\.directory .*", done.stderr)):
        raise StoreError(
            f"git does not read {root}, because it belongs to another user (dubious ownership). If you trust that"
            f" user: {advice[0].strip()}"
        )
    return done.stdout.strip() if done.returncode == 0 else None


def commit_named(root: Path, name: str) -> str:
    """The hash of the commit that git knows by this name, such as HEAD, a branch or the beginning of a hash; an empty
    string if there is none."""
    return git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")


def is_shallow(root: Path) -> bool:
    """Whether the clone lacks commits, so that nobody can say which ones there are."""
    return git(root, "rev-parse", "--is-shallow-repository") == "true"


def head(root: Path) -> str:
    """The commit that is checked out; StoreError if there is none, or if this is a folder of another repository."""
    if _git(root, "rev-parse", "--show-cdup") == "" and (
        found := git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    ):
        return found
    raise StoreError(
        f"Stored results belong to commits, but {root} is not a git repository with a commit."
        " Clone the project with git clone, and run this there."
    )


def is_changed(root: Path, code: Sequence[str]) -> bool:
    """Whether something in these folders is not committed; StoreError if git cannot say."""
    found = _git(root, "status", "--porcelain", "--untracked-files=normal", "--", *code)
    if found is None:
        raise StoreError(f"git cannot say whether everything is committed: run git status in {root} to see why.")
    return bool(found)


def web_address(root: Path) -> str | None:
    """Where a browser finds the repository that this clone came from; None if its remote is no address of a host."""
    match = HOSTED.fullmatch(git(root, "remote", "get-url", "origin"))
    host = match and (match["host"] or match["ssh"] or match["scp"])
    return f"https://{host}/{match['path']}" if match else None


@cache
def changed_since(root: Path, commit: str, until: str | None = None) -> frozenset[str]:
    """The files of MEASURED whose code is not what it was at that commit: in the clone, or at the commit ``until``.
    Comments and docstrings are not code: a recipe's docstring may quote a measured time without making it stale. Nor
    are the sizes at which recipes are only checked, how exact their results must be, and how a size is written.

    StoreError if there is no such commit."""
    both = [f"{commit}^{{commit}}", *([until] if until else [])]
    listed = _git(root, "diff", "--raw", "--no-abbrev", *both, "--", *MEASURED)
    if listed is None:
        for each in filter(None, (commit, until)):
            if not commit_named(root, each):
                raise UnknownCommit(each)
        raise StoreError(f"git cannot compare with {commit[:8]}: run git diff {commit[:8]} in {root} to see why.")
    changed, both_have = set(), {}
    for line in listed.splitlines():  # modes, both blobs and what happened; after a tab, the name, of two the new one
        entry, *_, name = line.split("\t")
        *_, before, now, what = entry.split()
        changed.add(name)
        if what == "M":
            both_have[name] = before, now
    texts = _texts(root, [blob for pair in both_have.values() for blob in (pair if until else pair[:1])])
    for name, (before, now) in both_have.items():
        text = texts[now] if until else _text(root / name)
        if text is not None and _same_code(name, texts[before], text):
            changed.remove(name)
    return frozenset(changed)


def _text(path: Path) -> str | None:
    """What is in a file; None if it cannot be read, as one that was deleted."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _texts(root: Path, blobs: Sequence[str]) -> dict[str, str]:
    """The text of each blob, and of others: those that are not known yet are read by one git process. Most files are
    the same in most commits, and a blob's name is a hash of its content."""
    if wanted := [blob for blob in dict.fromkeys(blobs) if blob not in _known]:
        command = ["git", "-C", str(root), "cat-file", "--batch"]
        done = subprocess.run(command, input="".join(f"{blob}\n" for blob in wanted).encode(), capture_output=True)
        if done.returncode:
            raise StoreError(f"git cannot read all files of {root}: a partial clone gets the others when it is online.")
        output = io.BytesIO(done.stdout)
        for blob in wanted:
            size = int(output.readline().split()[2])  # after its name and its kind
            _known[blob] = output.read(size).decode(errors="replace")
            output.readline()
    return _known


@cache  # most files are the same in most commits
def _same_code(name: str, one: str, other: str) -> bool:
    if DOCSTRING.sub("", one) == DOCSTRING.sub("", other):  # so in a fifth of them, and there is nothing to parse
        return True
    first, second = _code(name, one), _code(name, other)
    return first == second if isinstance(first, str) else _alike(first, second)


def _code(name: str, text: str) -> ast.Module | str:
    try:
        tree = ast.parse(text) if name.endswith(".py") else None
    except UNREADABLE:  # the file may be half written
        tree = None
    if tree is None:
        return " ".join(C_COMMENT.sub(" ", text).split())
    if name.endswith("__init__.py"):  # a workload
        tree.body = [node for node in tree.body if not _names(node) & CHECKED_ONLY]
    return tree


def _alike(one: Any, other: Any) -> bool:
    """Whether two parts of syntax trees are the same code: most that differ do so soon."""
    if type(one) is not type(other):
        return False
    if isinstance(one, ast.AST):
        return all(map(_alike, _fields(one), _fields(other)))
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    return bool(one == other)


def _fields(node: ast.AST) -> Iterator[Any]:
    """What a node of a syntax tree consists of, without docstrings and other strings that stand alone."""
    for name in node._fields:
        value: Any = getattr(node, name, None)
        yield [each for each in value if not is_text(each)] if isinstance(value, list) else value


def is_text(statement: ast.stmt) -> bool:
    """Whether it is a string that nothing is done with."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _names(node: ast.stmt) -> set[str]:
    """What a statement of a module defines."""
    if isinstance(node, ast.Assign):
        return {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
    return {node.name} if isinstance(node, ast.FunctionDef | ast.ClassDef) else set()


def sources(recipe: Recipe) -> set[str]:
    """The files of the recipe, its workload and its kernels, as git names them."""
    folder = f"recipes/{recipe.workload}"
    kernels = (f"kernels/{name}" for name in recipe.kernels)
    return {f"{folder}/{recipe.path.name}", f"{folder}/__init__.py", *kernels}
