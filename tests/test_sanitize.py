"""What tests/sanitize.py makes of compute-sanitizer's words, which a script says here in its place."""

import re
import sys

import pytest
import sanitize

from gpu_cookbook import catalogue

FAKE = """#!/bin/sh
if [ "$1" = --help ]; then echo "  --show-backtrace arg (=yes)  --report-api-errors arg  --port arg"; exit; fi
folder=$(dirname "$0")
echo "$@" >> "$folder/calls"
while [ "${1#--}" != "$1" ]; do
    case "$1" in
        --tool) tool=$2 ;;
        --log-file) log=$2 ;;
    esac
    shift 2
done
case "$3" in
    */sanitizer/*) cp "$folder/planted-$tool" "$log" ;;
    *) "$@"; cp "$folder/$tool" "$log" ;;
esac
"""
PLANTED = {
    "memcheck": """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at multiply(const float *, const float *, float *, int)+0x1b0
=========     by thread (0,0,0) in block (0,0,0)
=========     Access to 0x7f4a2fa00004 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f4a2fa00000 of size 4 bytes
=========
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure" on a call to cuMemcpy.
=========
========= ERROR SUMMARY: 2 errors
""",
    "racecheck": """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at multiply(const float *, const float *, float *, int)+0x90
=========     and Read access at multiply(const float *, const float *, float *, int)+0x100 [12 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
""",
    "initcheck": """\
========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at multiply(const float *, const float *, float *, int, const float *)+0x70
=========     by thread (65,0,0) in block (0,0,0)
=========     Access to 0x7f3c7ec000fc
=========
========= ERROR SUMMARY: 1 error
""",
    "synccheck": """\
========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at 0x2c8 in multiply(float const*, float const*, float*, int)
=========     by thread (0,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 1 error
""",
}
NOTHING = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
LIBRARY = """\
========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at void at::native::vectorized_elementwise_kernel<(int)4, at::native::AUnaryFunctor<float>>(int)+0x70
=========     by thread (1,0,0) in block (0,0,0)
========= Uninitialized __global__ memory read of size 4 bytes
=========     at cupy_copy__float32_float32+0x90
========= Host API memory access error at host access to 0x7f1200000200 of size 8 bytes
=========     Uninitialized access at 0x7f1200000204 on access by cuMemcpyDtoH source
========= ERROR SUMMARY: 3 errors
"""


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """Its folder: what is in the file memcheck there is what memcheck says of a recipe that is not planted."""
    program = tmp_path / "compute-sanitizer"
    program.write_text(FAKE)
    program.chmod(0o755)
    for name in sanitize.TOOLS:
        (tmp_path / name).write_text(NOTHING)
        (tmp_path / f"planted-{name}").write_text(PLANTED[name])
    numpy = catalogue.find("multiply", "numpy")
    monkeypatch.setattr(sanitize, "has_own_kernel", lambda recipe: recipe == numpy)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("OUT", str(tmp_path))
    return tmp_path


def said(capsys, *arguments, code=0):
    """The table's rows, {tool: its numbers}, and the lines below it."""
    old, sys.argv = sys.argv, ["sanitize.py", *arguments]
    try:
        assert sanitize.main() == code
    finally:
        sys.argv = old
    lines = capsys.readouterr().out.splitlines()[1:]
    words = lines[0].split()
    assert words == ["tool", "recipes", "ended", "errors", "in", "libraries", "seconds"]
    rows = [line.split() for line in lines[1:] if re.fullmatch(r"\w+check( +\d+){5}", line)]
    return {name: tuple(map(int, numbers[:4])) for name, *numbers in rows}, lines[1 + len(rows) :]


def test_the_recipes_with_a_cuda_kernel_of_their_own():
    chosen = {(each.workload, each.technique) for each in catalogue.recipes() if sanitize.has_own_kernel(each)}
    assert {
        ("multiply", "pycuda"),
        ("matmul", "numba"),
        ("multiply", "torch_compile"),
        ("subset_mean", "pycuda"),
    } < chosen
    assert {("random_subset_mean", "torch_tuned"), ("random_subset_mean", "ray_cuda_tuned")} < chosen
    assert not {("multiply", "numpy"), ("matmul", "cupy"), ("multiply", "pyopencl"), ("multiply", "torch")} & chosen
    assert not [each for each in catalogue.recipes() if has_cuda_kernel(each) and not sanitize.has_own_kernel(each)]


def has_cuda_kernel(recipe):
    return any(name.endswith(".cu") for name in recipe.kernels)


def test_nothing_found_says_so(tool, capsys):
    rows, rest = said(capsys)
    assert rows == dict.fromkeys(sanitize.TOOLS, (1, 1, 0, 0))
    assert rest == []
    calls = (tool / "calls").read_text().splitlines()
    assert len(calls) == 4 + len(list(sanitize.PLANTED.glob("with_*.py")))
    assert all("--target-processes all --show-backtrace no" in call for call in calls)
    assert all(("--report-api-errors no" in call) == ("--tool memcheck" in call) for call in calls)
    assert "--print-limit" not in calls[0]  # the script knows no such option
    assert len({re.search(r"--port (\d+)", call)[1] for call in calls}) == len(calls)
    assert "#### racecheck, multiply/numpy: " in (tool / "sanitize.log").read_text()


@pytest.mark.parametrize("name", sanitize.TOOLS)
def test_a_fault_is_named(tool, capsys, name):
    (tool / name).write_text(PLANTED[name] + PLANTED[name])
    rows, (line,) = said(capsys, "--tool", name, code=1)
    assert rows == {name: (1, 1, 2, 0)}
    assert line.startswith(f"{name}, multiply/numpy: 2 × {sanitize.FOUND[name]}") and " at multiply(" in line


def test_faults_of_libraries_are_counted_apart(tool, capsys):
    (tool / "initcheck").write_text(LIBRARY)
    rows, rest = said(capsys, "--tool", "initcheck", code=1)
    assert rows == {"initcheck": (1, 1, 1, 2)}
    assert [line.partition(":")[0] for line in rest] == ["in libraries", "in libraries", "initcheck, multiply/numpy"]
    assert rest[-1].endswith("1 × Host API memory access error at no kernel")


@pytest.mark.parametrize("name", sanitize.TOOLS)
@pytest.mark.slow
def test_a_planted_fault_that_is_not_found_is_said(tool, capsys, name):
    (tool / f"planted-{name}").write_text(NOTHING)
    rows, rest = said(capsys, code=1)
    assert rows[name] == (1, 1, 0, 0)
    assert rest and all(
        f"the planted fault was not found, so that zeros of {name} say nothing" in line for line in rest
    )


def test_a_recipe_that_is_wrong_is_named(tool, capsys, monkeypatch):
    wrong = catalogue.read(sanitize.HERE / "wrong" / "multiply" / "with_dropped_tail.py")
    monkeypatch.setattr(catalogue, "choose", lambda *_: [wrong])
    monkeypatch.setattr(sanitize, "has_own_kernel", lambda recipe: True)
    rows, (line,) = said(capsys, "--tool", "memcheck", code=1)
    assert rows == {"memcheck": (1, 0, 0, 0)}
    assert line.startswith(
        "memcheck, multiply/dropped_tail: the check says: 1: 1 of 1 elements are wrong, the first at"
    )


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("", "not ended: the tool has printed no summary"),
        ("========= COMPUTE-SANITIZER\n========= Error: Target application terminated before first instrumented API "
         "call\n", "not ended: the tool has printed no summary"),
        (NOTHING + "========= ERROR SUMMARY: 7 errors were not printed. Use --print-limit option to adjust\n",
         "7 errors were not printed"),
        ("========= Internal error, which nobody knows\n" + NOTHING, "1 × Internal error, which nobody knows"),
    ],
)  # fmt: skip
def test_what_is_not_a_complete_log_counts_as_no_zero(tool, capsys, log, words):
    (tool / "memcheck").write_text(log)
    _, (line,) = said(capsys, "--tool", "memcheck", code=1)
    assert words in line


def test_what_does_not_end_or_is_not_reached_is_named(tool, capsys):
    script = tool / "compute-sanitizer"
    script.write_text(script.read_text().replace('*) "$@"', "*) sleep 600"))
    rows, lines = said(capsys, "--tool", "memcheck", "--tool", "racecheck", "--jobs", "1", "--budget", "6", code=1)
    assert rows == {"memcheck": (1, 0, 0, 0), "racecheck": (1, 0, 0, 0)}
    assert re.match("memcheck, multiply/numpy: not ended after [1-6] s", lines[0])
    assert lines[1] == "racecheck: 1 not run: the time for all was over: multiply/numpy"
