"""What a recipe may import and touch. Its syntax tree is read before anything of it runs.

A recipe is an honest script in a framework: what reaches outside of it is no way to compute. What this cannot promise
is in docs/how-we-measure.md.
"""

import ast
import importlib
import sys
import tokenize
from functools import cache
from pathlib import Path
from types import ModuleType

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gpu_cookbook import catalogue, machine

# The modules of the standard library that a recipe may import, why, and which of their names; none: all public ones.
STANDARD = {
    "collections": ("plain containers", ()),
    "concurrent.futures": ("threads and processes as engines", ()),
    "contextlib": (
        "engine() is a context manager",
        ("ExitStack", "asynccontextmanager", "closing", "contextmanager", "nullcontext", "suppress"),
    ),
    "copy": ("plain values", ("copy", "deepcopy")),
    "dataclasses": ("handles to arrays in parts", ("asdict", "astuple", "dataclass", "field", "replace")),
    "decimal": ("plain numbers", ()),
    "enum": ("plain values", ()),
    "fractions": ("plain numbers", ()),
    "functools": ("partial functions, and kernels that are compiled once", ()),
    "io": ("a file in memory", ("BytesIO",)),
    "itertools": ("parts and pairs", ()),
    "math": ("plain numbers", ()),
    "numbers": ("plain numbers", ()),
    "operator": ("whole numbers of any kind", ("index",)),
    "queue": ("handing work to threads", ()),
    "string": ("kernels with a constant to fill in", ("Template",)),
    "struct": ("arguments of kernels", ()),
    "types": ("handles to arrays in parts", ("SimpleNamespace",)),
    "typing": ("annotations", ("Any", "Callable", "Iterator", "Literal", "NamedTuple", "Self", "Sequence", "TypeVar")),
    "uuid": ("names for Dask's keys", ()),
    "asyncio": ("asynchronous engines", ("gather", "run", "to_thread", "wait")),
    "collections.abc": ("annotations", ()),
    "multiprocessing": (
        "processes as an engine",
        ("Array", "Barrier", "Event", "Lock", "Pipe", "Pool", "Process", "Queue", "SimpleQueue", "Value")
        + ("connection", "get_context", "pool", "shared_memory"),
    ),
    "multiprocessing.connection": ("waiting for processes", ("wait",)),
    "multiprocessing.pool": ("processes and threads as engines", ("Pool", "ThreadPool")),
    "multiprocessing.shared_memory": ("arrays that processes share", ("SharedMemory",)),
    "pathlib": ("reading a kernel's source", ("Path",)),
    "tempfile": ("a folder in which processes meet", ("TemporaryDirectory",)),
    "threading": (
        "threads as an engine",
        ("Barrier", "Condition", "Event", "Lock", "RLock", "Semaphore", "Thread", "local"),
    ),
    "weakref": ("freeing what belongs to an array", ("WeakKeyDictionary", "WeakValueDictionary", "finalize", "ref")),
    "os": (
        "the cores, which process it is, and the environment of processes that it starts",
        ("environ", "getenv", "getpid", "sched_getaffinity"),
    ),
    "shutil": ("room in shared memory", ("disk_usage",)),
    "ctypes": (
        "a library that the framework installed, and the types of its arguments",
        ("CDLL", "byref", "sizeof", "POINTER", "Structure")
        + tuple(f"c_{kind}" for kind in ("bool", "char", "char_p", "double", "float", "int", "long", "longlong"))
        + tuple(f"c_{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))
        + ("c_size_t", "c_uint", "c_ulong", "c_ulonglong", "c_void_p"),
    ),
    "unittest.mock": ("a constant of the framework that no argument of it changes", ("patch",)),
}
CORES = "len(os.sched_getaffinity(0)) counts the cores that it may use"
NOT_INSTALLED = "its Install line does not install it. Mend the import, or name the package there"
OUTSIDE = "a recipe changes nothing outside of itself"
# Names of builtins that reach what the syntax tree does not show, or end the process.
BUILTINS = {
    "open": "a recipe reads its kernel with read_text() and writes no file",
    "exit": "a recipe returns or raises an Exception",
    "quit": "a recipe returns or raises an Exception",
    "KeyboardInterrupt": "a recipe returns or raises an Exception",
    "SystemExit": "a recipe returns or raises an Exception",
    "input": "nobody is there to answer",
    "breakpoint": "nobody is there to answer",
    "hash": "another process has another hash of the same text",
    "id": "another process has another address",
} | dict.fromkeys(
    ("__import__", "compile", "delattr", "dir", "eval", "exec", "getattr", "globals", "locals", "setattr", "vars"),
    "write what is meant, so that it can be read",
)
FILES = "a recipe writes no file"
WRITES = {
    "chmod", "dump", "hardlink_to", "lchmod", "link_to", "memmap", "mkdir", "open", "open_memmap", "rename", "rmdir",
    "save", "savetxt", "savez", "savez_compressed", "sink_csv", "sink_ipc", "sink_ndjson", "sink_parquet", "symlink_to",
    "to_csv", "to_excel", "to_feather", "to_hdf", "to_json", "to_orc", "to_pickle", "to_sql", "tofile", "touch",
    "unlink", "write_avro", "write_bytes", "write_csv", "write_database", "write_delta", "write_excel", "write_ipc",
    "write_json", "write_ndjson", "write_text",
}  # fmt: skip
# Attributes that lead from an object to the code around it.
INSIDES = {
    "ag_frame", "cell_contents", "co_code", "cr_frame", "f_back", "f_builtins", "f_code", "f_globals", "f_locals",
    "func_globals", "gi_frame", "tb_frame", "tb_next",
}  # fmt: skip
SPECIAL = {  # names with two underscores that show nothing of what is around
    "__add__", "__all__", "__array_interface__", "__call__", "__cuda_array_interface__", "__dask_keys__", "__dlpack__",
    "__dlpack_device__", "__doc__", "__enter__", "__exit__", "__file__", "__init__", "__len__", "__name__",
    "__post_init__", "__qualname__", "__slots__", "__version__",
}  # fmt: skip
# Modules that frameworks import for themselves, and that could be taken from there. (No recipe needs torch.signal.)
BEHIND = {
    "atexit", "builtins", "ctypes", "ctypeslib", "faulthandler", "gc", "importlib", "inspect", "io", "os", "pickle",
    "pkgutil", "posix", "resource", "runpy", "shutil", "signal", "socket", "subprocess", "sys", "threading", "time",
    "traceback", "tracemalloc",
}  # fmt: skip


class Broken(Exception):
    """A line that a recipe may not have."""

    def __init__(self, node: ast.AST | None, what: str, advice: str) -> None:
        super().__init__(f"line {getattr(node, 'lineno', 1)}: {what}: {advice}")


def fault(recipe: catalogue.Recipe) -> str | None:
    """The first line that touches what a recipe may not, with what to do instead; None if there is none."""
    try:
        tree = ast.parse(recipe.path.read_bytes())
        _check_encoding(recipe.path)
        Reader(tree, recipe.install).read()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except (catalogue.BrokenRecipe, Broken) as error:
        return str(error)
    except catalogue.UNREADABLE as error:
        return catalogue.unreadable(error)
    return None


def never_installed(recipe: catalogue.Recipe) -> str | None:
    """What it imports that is not here, although all that its Install line installs is: such a line is no advice."""
    requirements = catalogue.requirements(recipe.install) if recipe.packages else []
    absent = [name for name in machine.absent(recipe) if not _comes_with(name, requirements)]
    return f"imports {', '.join(absent)}: {NOT_INSTALLED}" if absent else None


def _check_encoding(path: Path) -> None:
    """Broken if the file declares an encoding in which it means something else than what is read in UTF-8."""
    with path.open("rb") as file:
        encoding, _ = tokenize.detect_encoding(file.readline)
    if encoding != "utf-8":
        raise Broken(None, f"declares the encoding {encoding}", "a recipe is written in UTF-8")


class Reader:
    """Reads the syntax tree of a recipe."""

    def __init__(self, tree: ast.Module, install: str) -> None:
        self.tree = tree
        self.requirements = catalogue.requirements(install)
        self.imported: dict[str, str] = {}  # a name -> the module or the object in it that it stands for
        self.parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}

    def read(self) -> None:
        """Raises Broken."""
        nodes = sorted(
            ast.walk(self.tree), key=lambda node: (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        )
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.read_import(node)
        for node in nodes:
            if isinstance(node, ast.If) and _is_main(node.test) and not any(map(_is_assertion, ast.walk(node))):
                raise Broken(node, "checks nothing", "run as a script, a recipe checks its own result")
            if isinstance(node, ast.Attribute):
                self.read_attribute(node)
            elif isinstance(node, ast.Name):
                self.read_name(node)
            elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                self.read_target(node, node.value)
            elif isinstance(node, ast.Call):
                self.read_call(node)
            elif isinstance(node, ast.ExceptHandler):
                self.read_handler(node)
            elif isinstance(node, ast.MatchClass) and node.kwd_attrs:
                raise Broken(node, "matches attributes by name", "write what is meant, so that it can be read")

    def read_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if not isinstance(self.parents[node], ast.Module):
            raise Broken(node, "imports below the top", "imports stand at the top of the file, unconditionally")
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.allow(node, alias.name)
                name = alias.asname or alias.name.partition(".")[0]
                self.imported[name] = alias.name if alias.asname else name
            return
        if node.level or not node.module:
            raise Broken(node, "imports a neighbour", "a recipe stands alone in its file")
        for alias in node.names:
            if alias.name == "*":
                raise Broken(node, f"imports * from {node.module}", "name what is used")
            whole = f"{node.module}.{alias.name}"
            if whole in STANDARD:
                self.allow(node, whole)
            else:
                self.allow(node, node.module)
                self.allow_attribute(node, node.module, alias.name)
            self.imported[alias.asname or alias.name] = whole

    def allow(self, node: ast.AST, module: str) -> None:
        """Broken if the recipe may not import this module."""
        top = module.partition(".")[0]
        if top == "gpu_cookbook":
            raise Broken(node, f"imports {module}", "a recipe imports nothing from this project")
        if top in sys.stdlib_module_names:
            if module not in STANDARD:
                raise Broken(node, f"imports {module}", "the framework, NumPy and " + "what gpu_cookbook/run/rules.py"
                             " lists are enough for a recipe")  # fmt: skip
        elif top.startswith("_"):
            raise Broken(node, f"imports {top}", "it is private")
        elif top != "numpy" and not _comes_with(top, self.requirements):
            raise Broken(node, f"imports {top}", NOT_INSTALLED)
        if top == "numpy":
            _numpy(node, module)

    def allow_attribute(self, node: ast.AST, module: str, name: str) -> None:
        """Broken if the recipe may not use this name of a module."""
        what, top = f"uses {module}.{name}", module.partition(".")[0]
        if name == "cpu_count" and top != "joblib":  # joblib's counts the cores that this process may use
            raise Broken(node, what, CORES)
        if name in SPECIAL:
            return
        if name.startswith("__") or (name.startswith("_") and top in {"numpy", *sys.stdlib_module_names}):
            raise Broken(node, what, "it is private")
        if top in sys.stdlib_module_names:
            if module not in STANDARD:
                return  # an attribute of an object
            if name not in (STANDARD[module][1] or _public(module)):
                raise Broken(node, what, f"of {module}, a recipe may use what gpu_cookbook/run/rules.py lists")
        elif name in BEHIND:
            raise Broken(node, what, OUTSIDE)
        elif top == "numpy":
            _numpy(node, f"{module}.{name}")

    def read_attribute(self, node: ast.Attribute) -> None:
        name, base = node.attr, self.origin(node.value)
        if name in INSIDES or (name.startswith("__") and name.endswith("__") and name not in SPECIAL):
            raise Broken(node, f"uses .{name}", "a recipe does not look at the code around it")
        shared = name == "unlink" and "multiprocessing.shared_memory.SharedMemory" in self.imported.values()
        if name in WRITES and not shared and not (name == "rename" and _renames_columns(self.parents[node], node)):
            raise Broken(node, f"uses .{name}", FILES)
        if base and f"{base}.{name}" not in STANDARD:
            self.allow_attribute(node, base, name)
        if not isinstance(node.ctx, ast.Load):
            self.read_target(node, node.value)
        self.read_value(node)

    def read_target(self, node: ast.AST, changed: ast.expr) -> None:
        """Broken if what is assigned to, or deleted, belongs to something imported."""
        origin = self.origin(changed)
        if origin and origin != "os.environ":
            raise Broken(node, f"changes {origin}", OUTSIDE)

    def read_name(self, node: ast.Name) -> None:
        if node.id in BUILTINS:
            raise Broken(node, f"uses {node.id}", BUILTINS[node.id])
        if node.id.startswith("__") and node.id not in SPECIAL:
            raise Broken(node, f"uses {node.id}", "a recipe does not look at the code around it")
        parent = self.parents[node]
        if node.id == "__name__" and not (_is_main(parent) and self.parents[parent] is self.tree.body[-1]):
            raise Broken(node, "uses __name__", "a recipe does the same under any name")
        handler = self.parents[parent] if isinstance(parent, ast.Tuple) else parent
        if node.id == "BaseException" and not isinstance(handler, ast.ExceptHandler):
            raise Broken(node, "uses BaseException", "name the exception that is expected")
        self.read_value(node)

    def read_value(self, node: ast.expr) -> None:
        """Broken if a module of NumPy or of the standard library is passed on: who knows what is done to it there."""
        origin = self.origin(node)
        if not origin or not isinstance(getattr(node, "ctx", None), ast.Load):
            return
        parent = self.parents.get(node)
        top = origin.partition(".")[0]
        if isinstance(parent, ast.Attribute) or top not in {"numpy", *sys.stdlib_module_names}:
            return
        if isinstance(_found(origin), ModuleType):
            raise Broken(node, f"passes the module {origin} on", "name what of it is used")

    def read_handler(self, node: ast.ExceptHandler) -> None:
        """Broken if it keeps every exception from the caller, Ctrl-C among them."""
        every = node.type is None or "BaseException" in map(ast.unparse, ast.walk(node.type))
        if every and not any(isinstance(each, ast.Raise) for each in ast.walk(node)):
            raise Broken(node, "catches every exception", "name the one that is expected")

    def read_call(self, node: ast.Call) -> None:
        first = node.args[0] if node.args else None
        match self.origin(node.func):
            case "unittest.mock.patch":
                whole = first.value if isinstance(first, ast.Constant) else None
                top = str(whole).partition(".")[0]
                if not isinstance(whole, str) or top not in self.tops() - {"numpy", *sys.stdlib_module_names}:
                    raise Broken(node, "patches what is not the framework's own", OUTSIDE)
            case "ctypes.CDLL":
                if first is None or isinstance(first, ast.Constant):
                    raise Broken(node, "opens a library by its name", "let the framework's package say where it is")
            case None if isinstance(node.func, ast.Attribute) and node.func.attr == "replace" and len(node.args) == 1:
                if not isinstance(first, ast.Dict):  # with which a table replaces values
                    raise Broken(node, "uses .replace with one argument, as Path has it", FILES)

    def tops(self) -> set[str]:
        return {origin.partition(".")[0] for origin in self.imported.values()}

    def origin(self, node: ast.expr) -> str | None:
        """'numpy.random' for np.random; None for what is not imported."""
        if isinstance(node, ast.Name):
            return self.imported.get(node.id)
        if isinstance(node, ast.Attribute) and (base := self.origin(node.value)):
            return f"{base}.{node.attr}"
        return None


def _is_main(test: ast.AST) -> bool:
    return ast.unparse(test) == "__name__ == '__main__'"


def _is_assertion(node: ast.AST) -> bool:
    called = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
    return isinstance(node, ast.Assert) or called.startswith("assert")


def _numpy(node: ast.AST, whole: str) -> None:
    """Broken if that leads out of NumPy's public names."""
    found = _found(whole)
    outside = isinstance(found, ModuleType) and not found.__name__.startswith("numpy")
    if outside or any(part.startswith("_") or part in BEHIND for part in whole.split(".") if part not in SPECIAL):
        raise Broken(node, f"uses {whole}", "it is none of NumPy's public names")


def _found(whole: str) -> object:
    """What stands there in NumPy or in the standard library; None if nothing does."""
    if whole in STANDARD:
        return importlib.import_module(whole)
    first, *rest = whole.split(".")
    # NumPy is imported here and not above, because gpu-cookbook list imports this module, and no framework.
    found: object = importlib.import_module(first) if first == "numpy" else sys.modules.get(first)
    for name in rest:
        found = getattr(found, name, None)
    return found


@cache
def _public(module: str) -> frozenset[str]:
    found = importlib.import_module(module)
    names = getattr(found, "__all__", None) or [name for name in dir(found) if not name.startswith("_")]
    return frozenset(name for name in names if not isinstance(getattr(found, name, None), ModuleType))


def _renames_columns(call: ast.AST, name: ast.Attribute) -> bool:
    """Whether it is called as a table's is, and a Path's cannot be: with a dict alone, or by the name columns alone."""
    if not isinstance(call, ast.Call) or call.func is not name:
        return False
    by_dict = len(call.args) == 1 and isinstance(call.args[0], ast.Dict) and not call.keywords
    return by_dict or (not call.args and [each.arg for each in call.keywords] == ["columns"])


def _comes_with(module: str, requirements: list[Requirement]) -> bool:
    """Whether these requirements, or what they require, install the module; True if one of them is not installed, and
    so nobody knows."""
    names = {canonicalize_name(each.name) for each in requirements}
    if canonicalize_name(module) in names or not all(map(machine.has_distribution, names)):
        return True
    closure = machine.closure(tuple(map(str, requirements)))
    if machine.installed(module):
        return not closure.isdisjoint(map(canonicalize_name, machine.distribution_names(module)))
    return not all(map(machine.has_distribution, closure))
