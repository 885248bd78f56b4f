"""The device code compiles for every GPU generation that the project speaks of; no GPU is needed for that."""

from pathlib import Path

import pytest
from conftest import in_opencl

import gpu_cookbook.kernels
from gpu_cookbook.run.device import Cuda

KERNELS = Path(next(iter(gpu_cookbook.kernels.__path__)))


SOURCES = {path.name: path.read_text(encoding="utf-8") for path in sorted(KERNELS.glob("*.cu"))}
SOURCES |= {"what keeps a GPU busy": Cuda.SPIN, "what measures what a GPU can do": Cuda.WORK}


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90", "sm_100"])
@pytest.mark.parametrize("name", SOURCES)
def test_cuda_kernels_compile(name, architecture):
    from gpu_cookbook.run.cuda_core import Program, ProgramOptions

    program = Program(SOURCES[name], "c++", ProgramOptions(arch=architecture))
    assert program.compile("cubin").code[:4] == b"\x7fELF"


@in_opencl
@pytest.mark.parametrize("path", sorted(KERNELS.glob("*.cl")), ids=lambda path: path.name)
def test_opencl_kernels_compile(path):
    import pyopencl as cl

    devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    assert devices
    for device in devices:
        program = cl.Program(cl.Context([device]), path.read_text(encoding="utf-8")).build(["-Werror"])
        assert program.all_kernels()


def test_every_kernel_is_used_and_has_a_name_that_a_recipe_reads():
    read = "".join(path.read_text(encoding="utf-8") for path in (KERNELS.parent / "recipes").glob("*/with_*.py"))
    unused = [path.name for path in KERNELS.glob("*.c[ul]") if f'"{path.name}"' not in read]
    assert unused == []
