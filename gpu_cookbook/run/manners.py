"""What a recipe leaves behind or changes around itself. It is called again and again, after its other checks, in a
process in which nothing is timed. Objects and bytes are counted, so that a busy machine changes nothing."""

import contextlib
import ctypes
import decimal
import gc
import hashlib
import ipaddress
import itertools
import locale
import logging
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import psutil

from gpu_cookbook import machine
from gpu_cookbook.catalogue import Recipe
from gpu_cookbook.run import family
from gpu_cookbook.run.contract import for_out, round_trip, steps, takes_out, writes_into
from gpu_cookbook.run.loader import Loader
from gpu_cookbook.run.runner import MARKER
from gpu_cookbook.run.transfers import placed

WARM_UP = 0.3  # seconds of calls, and three at least, after which pools and caches have what they keep
ROUNDS = 6  # what grows in each of them, leaks
CALLS = (3, 100)  # in a round: the least and the most
SECONDS = 0.1  # that the calls of a round take, unless the least number of calls takes longer
OWN = 32  # Python objects that the watching itself leaves behind in a round; at most 7 were observed
LEAST = 2**20  # bytes by which memory grows in each round if it leaks
ENDING = 0.5  # seconds within which a thread that still runs after a round may end
SERIES = 3  # of rounds: what another program does to the same GPU meanwhile does not grow in all of them
# Python objects that a call leaves behind in the framework itself, at most. Measured: Dask 45, with CuPy
# 151, joblib 21, PyOpenCL 4, PyTorch 1.
KEPT = {"NumPy": 0, "multiprocessing": 0, "Dask": 1_000}
KEPT_BY_OTHERS = 100
# Those of an engine, which keeps a record of its tasks, and its bytes. Measured: Dask 1,776 and 167 kB, Ray 2.
KEPT_BY_ENGINES, BYTES_BY_ENGINES = 10_000, 2**20
BLOCKS, PINNED = "blocks of shared memory", "bytes of page-locked memory"
VARIABLE = "the environment variable "
CHANGED_BY_RAY = (
    "the environment variable RAY_",
    "the environment variable PYTHONBREAKPOINT",
    "the handler of SIGTERM",
)
# What these frameworks change when they are first used, whatever a recipe does: how the settings' names begin.
CHANGED_BY_FRAMEWORKS = {
    "Dask": (VARIABLE,),
    "PyTorch": (*(VARIABLE + name for name in ("TRITON_", "TORCH", "_TORCH")),),
    "Modin": (*CHANGED_BY_RAY, VARIABLE + "OMP_NUM_THREADS"),  # to 1, when it first uses Ray
    "Ray": CHANGED_BY_RAY,
    # Its compiler hides the frames of its own errors, and calls logging.info(), which sets the root logger up. That of
    # cuda.compute is the same one, for operators in Python.
    "cuda.compute": ("sys.excepthook", "the root logger"),
    "numba-cuda-mlir": ("sys.excepthook", "the root logger"),
    "cuML": (VARIABLE + "CUML_ACCEL_",),  # cuml.accel.install() also holds for processes that are started later
    "Polars": (VARIABLE + "UCX_",),  # its engine on GPUs imports ucxx, which sets those of UCX that are not set
    "Triton": (*(VARIABLE + name for name in ("TRITON_", "TORCH", "_TORCH")),),  # it works on PyTorch's tensors
}
THREADS = "the number of threads of "  # a library
# PyTorch's precision of matrix products: the old names, and those of PyTorch 2.9 and later.
OF_PRODUCTS = (
    *("cuda.matmul.allow_tf32", "cuda.matmul.allow_fp16_reduced_precision_reduction", "cudnn.allow_tf32"),
    *("fp32_precision", "cuda.matmul.fp32_precision"),
    *("cudnn.fp32_precision", "cudnn.conv.fp32_precision", "cudnn.rnn.fp32_precision"),
    *("mkldnn.fp32_precision", "mkldnn.matmul.fp32_precision"),
    *("mkldnn.conv.fp32_precision", "mkldnn.rnn.fp32_precision"),
)
WRITTEN_BY_FRAMEWORKS = dict.fromkeys(("Modin", "Ray"), (Path.home() / ".ray",))  # Ray's token
# Who changes files, as sys.audit() says: where in its arguments the path is, and the descriptor of the folder, if any.
WRITING = {
    "os.mkdir": (0, 2),
    "os.remove": (0, 1),
    "os.rename": (1, 3),
    "os.rmdir": (0, 1),
    "os.symlink": (1, 2),
    "os.link": (1, 3),
    "os.truncate": (0, None),
}


class Watch:
    """Looks at this process from when the recipe's imports are done until its engine is closed."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.faults: list[str] = []
        self.begun = False
        self.home = os.environ[family.MARK]
        self.temporary: set[Path] = set()  # files that this process has written
        self.blocks: dict[str, int] = {}  # of shared memory, and after how many rounds each was seen first

    def load(self, engine: contextlib.ExitStack) -> ModuleType:
        """The recipe's module, its engine started. What a framework does at its import is its own affair, so this
        process is looked at from then on."""
        loader = Loader(self.recipe)
        loader.imports()
        self._begin()
        module = loader.execute()
        if hasattr(module, "engine"):
            engine.enter_context(module.engine())
        return module

    def _begin(self) -> None:
        own = WRITTEN_BY_FRAMEWORKS.get(self.recipe.framework, ())
        self.temporaries = Path(tempfile.gettempdir())
        self.places = (self.home, self.temporaries, "/dev", "/proc", "/sys/fs/cgroup", *own)
        sys.addaudithook(self._audit)
        self._cores, os.cpu_count = os.cpu_count, self._cpu_count
        self.settings = settings()
        gc.freeze()  # what the imports have left stays: PyTorch's takes a quarter of a second to look through each time
        flush()
        os.write(2, f"{MARKER}\n".encode())
        self.begun = True

    def calls(self, module: ModuleType, workload: ModuleType) -> None:
        """Calls the recipe again and again; notes what grows, and what listens."""
        call = one_call(module, workload)
        # The process' own time leaves out other programs, but also what an engine's processes do.
        clock = time.monotonic if "engine" in self.recipe.functions else time.process_time
        start, begin, count = time.monotonic(), clock(), 0
        while count < 3 or time.monotonic() - start < WARM_UP:
            call()
            count += 1
            if count == 1:  # what was not there before, such as a context, has no value to go back to
                self.settings = {k: v for k, v in settings().items() if not k.startswith(VARIABLE)} | self.settings
        self.faults += listening(self.home)
        calls = int(min(CALLS[1], max(CALLS[0], SECONDS * count / max(1e-3, clock() - begin))))
        kept, least = KEPT.get(self.recipe.framework, KEPT_BY_OTHERS), LEAST
        if "engine" in self.recipe.functions and self.recipe.framework != "multiprocessing":  # a pool keeps nothing
            kept, least = max(kept, KEPT_BY_ENGINES), BYTES_BY_ENGINES * calls
        self._look_for_leaks(call, calls, kept, least)
        if hasattr(module, "round_trip") and hasattr(workload, "MANY_PIECES"):
            call = call_in_pieces(module, workload)
            call()
            call()  # what is kept for the next call is there now
            self._look_for_leaks(call, 1, kept, least)
        if "engine" in self.recipe.functions:  # what an engine says while it is closed is its own affair
            flush()
            os.write(2, f"{MARKER}\n".encode())

    def _look_for_leaks(self, call: Callable[[], None], calls: int, kept: int, least: int) -> None:
        """Notes what grows in each round of so many calls. ``kept`` and ``least``: see leaks()."""
        found: dict[str, float] = {}
        _give_back()
        for number in range(SERIES):
            self.blocks = {}
            sizes = [self._growing(0)]
            for done in range(1, ROUNDS + 1):
                for _ in range(calls):
                    call()
                sizes.append(self._growing(done))
            for done, each in enumerate(sizes):
                each[BLOCKS] = sum(since <= done for since in self.blocks.values())
            again = leaks(sizes, calls, kept, least)
            found = {what: again[what] for what in again if number == 0 or what in found}
            if not found:
                break
        self.faults += [f"leaks: {count:,.0f} more {what} after each call" for what, count in found.items()]

    def end(self) -> str | None:
        """What was noticed, in one line, after the engine was closed."""
        self.begun = False
        os.cpu_count = self._cores
        changed = differences(self.settings, settings())
        # A library that is loaded later had no number of threads before.
        changed = [what for what in changed if what in self.settings or not what.startswith(THREADS)]
        own = CHANGED_BY_FRAMEWORKS.get(self.recipe.framework, ())
        self.faults += [f"changes {what}" for what in changed if not what.startswith(own)]
        flush()
        return "; ".join(dict.fromkeys(self.faults)) or None

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.begun:
            return
        path, folder = None, -1
        if event == "open":
            path, mode, flags = arguments
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) if isinstance(flags, int) else 0
            if not writes and not (isinstance(mode, str) and set(mode) & set("wax+")):
                return
        elif event in WRITING:
            at, of = WRITING[event]
            path, folder = arguments[at], -1 if of is None else arguments[of]
        if isinstance(path, str | bytes | os.PathLike):
            name = os.fsdecode(path)
            if folder != -1:  # the path is relative to that
                name = str(Path(f"/proc/self/fd/{folder}").resolve() / name)
            there = event == "os.mkdir" and Path(name).is_dir()  # then nothing is made
            if not there:
                self._written(Path(name).absolute())

    def _written(self, path: Path) -> None:
        if "__pycache__" not in path.parts and not any(path.is_relative_to(place) for place in self.places):
            self.faults.append(f"writes {path}")
        elif path.is_relative_to(self.temporaries):
            self.temporary.add(path)

    def _growing(self, done: int) -> dict[str, int]:
        """What a leak makes grow: {what: how much of it there is now}, after so many rounds. Other programs make and
        delete temporary files and blocks of shared memory as well: only this process' files are counted, and only the
        blocks that are still there in the end, since who has made one cannot be seen."""
        gc.collect()
        process = psutil.Process()
        for path in self.temporary.copy():  # other threads may add to it meanwhile
            if not path.exists():
                self.temporary.discard(path)
        blocks = [path.name for path in Path("/dev/shm").glob("*") if path.is_file()]  # joblib keeps folders
        self.blocks = {name: self.blocks.get(name, done) for name in blocks}
        found = {
            "Python objects": sys.getallocatedblocks(),
            "bytes of host memory": process.memory_info().rss,
            "bytes of memory in other processes": sum(map(_memory, process.children(recursive=True))),
            PINNED: _mapped_from_devices(),
            "threads": _threads(),
            "open files": len(list(Path("/proc/self/fd").iterdir())),
            "child processes": len(process.children(recursive=True)),
            "files for temporary use": len(self.temporary),
        }
        if machine.gpus():
            found["bytes of device memory"] = sum(used for used, _ in machine.device_memory())
        return found

    def _cpu_count(self) -> int | None:
        """os.cpu_count(), which notes if the recipe is who asks, itself or by a module of the standard library."""
        frame = sys._getframe(1)
        library = f"{Path(os.__file__).parent}{os.sep}"
        while (
            frame and frame.f_code.co_filename.startswith(library) and "site-packages" not in frame.f_code.co_filename
        ):
            frame = frame.f_back  # type: ignore[assignment]
        if frame and frame.f_code.co_filename == str(self.recipe.path):
            self.faults.append(
                f"line {frame.f_lineno}: takes all {self._cores()} cores of the machine (os.cpu_count), not the"
                f" {len(os.sched_getaffinity(0))} that it may use: len(os.sched_getaffinity(0))"
            )
        return self._cores()


def one_call(module: ModuleType, workload: ModuleType) -> Callable[[], None]:
    """A function that does all that the recipe can, once, from new host arrays."""
    upload, function, wait, download = steps(module, workload)
    way = round_trip(module, workload)
    inputs = workload.inputs(workload.EDGE_SIZES[-1])
    empty = np.zeros(np.shape(workload.reference(*inputs)), np.float32)

    def call() -> None:
        given = [np.array(x) if isinstance(x, np.ndarray) else x for x in inputs]
        result = function(*upload(*given))
        wait(result)
        download(result)
        if takes_out(function):
            out = for_out(upload, empty.copy())
            wait(function(*upload(*given), out=out))
        if hasattr(module, "round_trip"):
            module.round_trip(*given)
        if writes_into(module):
            way(*given, out=empty.copy())
        if hasattr(module, "pinned"):
            options = {"out": placed(module, True, empty)} if writes_into(module) else {}
            way(*(placed(module, True, x) for x in given), **options)
        if hasattr(module, "prepared"):
            wait(module.prepared(*upload(*given))())

    return call


def call_in_pieces(module: ModuleType, workload: ModuleType) -> Callable[[], None]:
    """A function that goes from host to host in many pieces: from ordinary arrays and from page-locked ones, into new
    arrays and existing ones. Each call has a row, or an element, less than the one before, so that what a recipe keeps
    for each size grows; a pool of memory has room for a smaller array."""
    way, inputs = round_trip(module, workload), workload.inputs(workload.MANY_PIECES)
    pinned = hasattr(module, "pinned")
    ways: list[tuple[Sequence[np.ndarray], dict[str, np.ndarray]]] = [(inputs, {})]
    options = {}
    if writes_into(module):
        options["out"] = placed(module, pinned, np.broadcast_to(np.float32(0), np.shape(workload.reference(*inputs))))
        ways.append((inputs, options))
    if pinned:
        ways.append(([placed(module, True, x) for x in inputs], options))
    numbers = itertools.count(1)

    def call() -> None:
        less = next(numbers)
        for given, existing in ways:
            rows = len(given[0])  # those of a matrix product's right factor stay
            fewer = [x[less:] if len(x) == rows else x for x in given]
            way(*fewer, **{name: out[less:] for name, out in existing.items()})

    return call


def _mapped_from_devices() -> int:
    """Bytes that this process can reach through files of devices. Page-locked memory is among them (of /dev/nvidiactl,
    or as /dev/zero, which stands for memory that is shared), also if nothing was written to it."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    mappings = [line.split(maxsplit=5) for line in lines]
    found = [each[0].split("-") for each in mappings if len(each) == 6 and each[5].startswith(("/dev/nv", "/dev/zero"))]
    return sum(int(end, 16) - int(start, 16) for start, end in found)


def _give_back() -> None:
    """Returns the memory that malloc() keeps free to the system: what leaks would lie in it and not be seen."""
    with contextlib.suppress(AttributeError):  # a C library other than GNU's
        ctypes.CDLL(None).malloc_trim(0)


def _threads(tasks: Path = Path("/proc/self/task")) -> int:
    """The threads of this process, less those that are about to end: the system still lists a thread that was joined
    until it has run to its end, which on a busy machine it does later. What runs therefore gets ENDING to end."""
    own, deadline = threading.get_native_id(), time.monotonic() + ENDING
    while True:
        states = {}
        for task in tasks.iterdir():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                states[int(task.name)] = (task / "stat").read_text().rpartition(")")[2].split()[0]
        if not any(states[each] in "RDXZ" for each in states if each != own) or time.monotonic() > deadline:
            return len(states)
        time.sleep(0.001)


def _memory(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return process.memory_info().rss
    return 0


def leaks(sizes: Sequence[Mapping[str, int]], calls: int, kept: int, threshold: int) -> dict[str, float]:
    """{what: by how much after a call} of what grew in each round, and by enough to be kept from each call. ``kept``:
    the objects of a call that are the framework's own affair; ``threshold``: the bytes by which the memory of this
    process, or of its other processes, grows in a round if it leaks."""
    least = {"Python objects": (kept + 0.5) * calls + OWN, "bytes of device memory": LEAST, PINNED: LEAST}
    least |= dict.fromkeys(("bytes of host memory", "bytes of memory in other processes"), threshold)
    return {
        what: (sizes[-1][what] - first) / (len(sizes) - 1) / calls
        for what, first in sizes[0].items()
        if all(after[what] - before[what] >= least.get(what, calls) for before, after in itertools.pairwise(sizes))
    }


def listening(home: str) -> Iterator[str]:
    """The sockets of the recipe's processes that other machines can reach."""
    for process in family.members(home):
        try:
            sockets = process.net_connections("inet")
        except psutil.Error:
            continue
        for each in sockets:
            waits = each.status == psutil.CONN_LISTEN or (each.type == 2 and not each.raddr)  # 2: UDP
            if each.laddr and waits and not _is_loopback(each.laddr.ip):
                yield f"listens on {each.laddr.ip}, not only on 127.0.0.1"


def _is_loopback(ip: str) -> bool:
    address = ipaddress.ip_address(ip)
    mapped = getattr(address, "ipv4_mapped", None)  # ::ffff:127.0.0.1
    return (mapped or address).is_loopback


def flush() -> None:
    """Python's own buffers of standard output and error, and the C library's."""
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)


def differences(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> list[Any]:
    return [key for key in {**before, **after} if before.get(key) != after.get(key)]


def settings() -> dict[str, Any]:
    """The settings of this process and of the devices and frameworks that it uses, by their names. Those of modules
    that the rules let no recipe import are not among them: frameworks change them, such as the filters of warnings."""
    libc = ctypes.CDLL(None)
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    tiny = np.float64(2.2250738585072014e-308)
    context = decimal.getcontext()
    found: dict[str, Any] = {VARIABLE + name: value for name, value in os.environ.items()}
    found |= {f"the handler of {each.name}": signal.getsignal(each) for each in signal.Signals}
    found |= {
        "the current folder": Path.cwd(),
        "the umask": next(line for line in status.splitlines() if line.startswith("Umask")),
        "the locale": locale.setlocale(locale.LC_ALL),
        "NumPy's handling of errors (np.seterr)": (np.geterr(), np.geterrcall()),
        "NumPy's print options": repr(np.get_printoptions()),
        "NumPy's buffer size": np.getbufsize(),
        "NumPy's global random state": _hash(np.random.get_state()),  # noqa: NPY002 - this very state
        "sys.stdout": id(sys.stdout),
        "sys.stderr": id(sys.stderr),
        "sys.excepthook": sys.excepthook,
        "the switch interval": sys.getswitchinterval(),
        "garbage collection": (gc.isenabled(), gc.get_threshold()),
        "the decimal context": (context.prec, context.rounding, context.Emin, context.Emax, context.traps),
        "the cores that the process may use": os.sched_getaffinity(0),
        "the priority of the process": os.getpriority(os.PRIO_PROCESS, 0),
        "the root logger": (logging.root.level, list(map(id, logging.root.handlers))),
        "the rounding of floats": libc.fegetround(),
        "the handling of denormals": bool(tiny / 2),
        "tracing": (sys.gettrace(), sys.getprofile(), threading.gettrace()),
        "the folder for temporary files": tempfile.tempdir,
    }
    for name in dir(resource):
        if name.startswith("RLIMIT_"):
            found[f"the limit {name}"] = resource.getrlimit(getattr(resource, name))
    for name, read in FRAMEWORKS.items():
        if module := sys.modules.get(name):
            found |= read(module)
    return found | cuda_context()


def _hash(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()


def _read(setting: Callable[[], Any]) -> Any:
    """A setting, or why it cannot be read: an older PyTorch has no new names, and raises RuntimeError for an old name
    after a new one has set what the old one cannot say."""
    try:
        return setting()
    except (AttributeError, RuntimeError) as error:
        return type(error).__name__


def of_torch(torch: Any) -> dict[str, Any]:
    found = {
        "PyTorch's default dtype": torch.get_default_dtype(),
        "PyTorch's default device": torch.get_default_device(),
        "PyTorch's number of threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "PyTorch's way to share memory": torch.multiprocessing.get_sharing_strategy(),
        "PyTorch's repeated warnings": torch.is_warn_always_enabled(),
        "PyTorch's precision of matrix products": (
            _read(torch.get_float32_matmul_precision),
            *(_read(partial(attrgetter(name), torch.backends)) for name in OF_PRODUCTS),
        ),
        "PyTorch's choice of cuDNN's algorithms": (
            torch.backends.cudnn.enabled,
            torch.backends.cudnn.benchmark,
            torch.backends.cudnn.deterministic,
        ),
        "PyTorch's deterministic mode": torch.are_deterministic_algorithms_enabled(),
        "PyTorch's recording of gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "PyTorch's handling of anomalies": torch.is_anomaly_enabled(),
        "PyTorch's global random state": _hash(torch.get_rng_state().tolist()),
        "PyTorch's print options": str(vars(torch._tensor_str.PRINT_OPTS)),
    }
    if torch.cuda.is_initialized():
        found |= {
            "PyTorch's current GPU": torch.cuda.current_device(),
            "PyTorch's current stream": torch.cuda.current_stream().cuda_stream,
        }
    return found


def of_cupy(cupy: Any) -> dict[str, Any]:
    return {
        "CuPy's current GPU": cupy.cuda.runtime.getDevice(),
        "CuPy's current stream": cupy.cuda.get_current_stream().ptr,
        "CuPy's allocator": repr(cupy.cuda.get_allocator()),
        "CuPy's limit of its pool": cupy.get_default_memory_pool().get_limit(),
    }


def of_jax(jax: Any) -> dict[str, Any]:
    return {f"JAX's {name}": value for name, value in jax.config.values.items()}


def of_warp(warp: Any) -> dict[str, Any]:
    warp.init()  # which sets a few of these
    found = {f"Warp's {name}": repr(value) for name, value in vars(warp.config).items() if not name.startswith("_")}
    if warp.is_cuda_available():
        found |= {
            "Warp's current device": warp.get_device().alias,
            "Warp's current stream": warp.get_stream("cuda").cuda_stream,
        }
    return found


def of_numba(numba: Any) -> dict[str, Any]:
    return {
        "Numba's number of threads": numba.get_num_threads(),
        "Numba's size of chunks": numba.get_parallel_chunksize(),
    }


def of_joblib(joblib: Any) -> dict[str, Any]:
    backend, jobs = joblib.parallel.get_active_backend()
    return {"joblib's configuration": (type(backend).__name__, jobs)}


def of_dask(dask: Any) -> dict[str, Any]:
    names = {"scheduler", "num_workers", "pool", *dask.config.config} - {"distributed"}  # whose workers change theirs
    return {f"Dask's {name}": repr(dask.config.get(name, None)) for name in names}


FRAMEWORKS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "torch": of_torch,
    "cupy": of_cupy,
    "jax": of_jax,
    "warp": of_warp,
    "numba": of_numba,
    "joblib": of_joblib,
    "dask": of_dask,
    "sklearn": lambda sklearn: {"scikit-learn's configuration": repr(sklearn.get_config())},
    "pyarrow": lambda pyarrow: {
        "PyArrow's number of threads": (pyarrow.cpu_count(), pyarrow.io_thread_count()),
        "PyArrow's pool of memory": pyarrow.default_memory_pool().backend_name,
    },
    "pandas": lambda pandas: {"pandas' options": repr(pandas.options.d)},
    "threadpoolctl": lambda threadpoolctl: {
        f"{THREADS}{each['filepath']}": each["num_threads"] for each in threadpoolctl.threadpool_info()
    },
    "polars": lambda polars: {"Polars' configuration": polars.Config.state()},
}


def cuda_context() -> dict[str, Any]:
    """The limits of the current CUDA context: a stack or a heap that a recipe makes larger costs others memory."""
    if not machine.gpus():
        return {}
    driver = ctypes.CDLL("libcuda.so.1")
    current, size = ctypes.c_void_p(), ctypes.c_size_t()
    if driver.cuCtxGetCurrent(ctypes.byref(current)) or not current:
        return {}
    found = {}
    for number, name in enumerate(("stack of a thread", "buffer of printf", "heap")):
        if not driver.cuCtxGetLimit(ctypes.byref(size), number):
            found[f"the GPU's {name}"] = size.value
    return found
