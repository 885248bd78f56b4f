"""A GPU is measured through cuda-core 0.3, the last version for CUDA 11, too: tried on made-up GPUs, with its names."""

import importlib
import sys
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace

import pytest

from gpu_cookbook import machine
from gpu_cookbook.run import device

OURS = "gpu_cookbook.run.cuda_core"
HELD = 0.001  # seconds that a made-up call takes


class Gpu:
    """What it was asked to run, and a clock that goes on with each launch and each call."""

    def __init__(self):
        self.launched, self.now = [], 0.0
        self.name, self.compute_capability = "Made up", (3, 7)
        self.properties = SimpleNamespace(
            max_threads_per_multiprocessor=2048, max_threads_per_block=1024, multiprocessor_count=13
        )
        self.stream = SimpleNamespace(record=self.record)

    def set_current(self):
        pass

    def sync(self):
        pass

    def create_stream(self):
        return SimpleNamespace()

    def record(self, event=None, options=None):
        assert options.enable_timing, "such an event has no time"
        return Event(self.now)

    def call(self):
        self.now += HELD


@dataclass
class Event:
    at: float
    is_done = False

    def sync(self):
        pass

    def __sub__(self, other):
        return (self.at - other.at) * 1e3  # milliseconds


@dataclass
class EventOptions:  # as cuda-core 0.3.2 has it
    enable_timing: bool = False
    busy_waited_sync: bool = False
    support_ipc: bool = False


@dataclass
class Program:
    code: str
    code_type: str
    options: object

    def compile(self, target):
        assert (self.code_type, target, self.options.arch) == ("c++", "cubin", "sm_37")
        return SimpleNamespace(get_kernel=lambda name: name)


@pytest.fixture
def gpu(monkeypatch):
    """A GPU behind cuda-core 0.3: cuda.core itself has none of the names."""
    made = Gpu()
    experimental = ModuleType("cuda.core.experimental")
    experimental.Device = lambda number: made
    experimental.EventOptions, experimental.Program = EventOptions, Program
    experimental.ProgramOptions = experimental.LaunchConfig = SimpleNamespace
    experimental.launch = lambda stream, config, kernel, *arguments: made.launched.append((kernel, *arguments))
    streams = ModuleType("cuda.core.experimental._stream")
    streams.LEGACY_DEFAULT_STREAM = made.stream
    core = ModuleType("cuda.core")
    core.__path__ = []
    for module in (core, experimental, streams):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, OURS, raising=False)
    yield made
    sys.modules.pop(OURS, None)  # the next one imports today's


def test_a_device_is_timed_by_events_of_the_old_names(gpu):
    cuda = device.Cuda()
    assert cuda.name == "Made up" and cuda.stream is gpu.stream
    assert cuda.behind(0.002, gpu.call, 4) == pytest.approx(HELD)
    cuda.occupy(0.003)
    assert cuda.everywhere() == (26, 1024)
    assert gpu.launched == [("spin", 1_000_000), ("spin", 2_000_000), ("spin", 3_000_000)]


def test_todays_names_are_taken_where_there_are_both():
    core = importlib.import_module("cuda.core")
    ours = importlib.import_module(OURS)
    assert ours.Device is core.Device and ours.launch is core.launch
    assert core.EventOptions(timing_enabled=True) == ours.TIMED


@pytest.mark.parametrize(
    ("cuda", "install"),
    [
        ((11, 4), 'pip install "cuda-core[cu11]==0.3.*"'),
        ((12, 4), 'pip install "cuda-core[cu12]"'),
        ((14, 0), 'pip install "cuda-core[cu13]"'),
    ],
)
def test_without_cuda_core_it_says_which_one_to_install(monkeypatch, cuda, install):
    made = machine.Gpu(0, "Made up", 2**34, (8, 0))
    monkeypatch.setattr(machine, "nvidia", lambda: machine.Nvidia("470.1", cuda, (made,)))
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    monkeypatch.delitem(sys.modules, OURS, raising=False)
    with pytest.raises(device.Unmeasurable) as raised:
        device.Cuda()
    assert str(raised.value) == f"gpu-cookbook needs cuda-core to measure on GPUs: {install}"


def test_a_recipe_that_cuda_11_cannot_run_says_so(monkeypatch, tmp_path):
    made = machine.Gpu(0, "Made up", 2**34, (8, 0))
    monkeypatch.setattr(machine, "nvidia", lambda: machine.Nvidia("470.1", (11, 4), (made,)))
    monkeypatch.setattr(machine, "installed", lambda package: False)
    names = {"packages": ("dask_cuda",), "imports": ("dask_cuda",)}
    recipe = SimpleNamespace(**names, install='pip install "dask-cuda[cu13]" rmm-cu13')
    assert machine.missing(recipe) == "dask_cuda not installed, and no longer published for CUDA 11"
    names = {"packages": ("cupy",), "imports": ("cupy",)}
    recipe = SimpleNamespace(**names, install='pip install "cupy-cuda13x[ctk]"')
    assert machine.missing(recipe) == 'cupy not installed: pip install "cupy-cuda11x"'
