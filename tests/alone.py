"""Every recipe as a reader pastes it: ``python tests/alone.py [FILE …]``, or without FILE, all that run here.

What ``gpu-cookbook show`` prints goes into an empty folder, and runs there as a script, without anything of this
project: even where it is installed, ``import gpu_cookbook`` and ``import recipes`` fail, which is tried first. A recipe
passes if it ends with exit code 0 and prints its one line. It has the environment variables that gpu-cookbook gives
every recipe, since several share a machine, but none of gpu-cookbook's own.
"""

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import psutil

from gpu_cookbook import catalogue, machine, show
from gpu_cookbook.run import runner

ROOT = Path(__file__).resolve().parents[1]
OURS = ("gpu_cookbook", "recipes")
REFUSE = f"""
import sys

class Refuse:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {OURS}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Refuse)
"""
# Several scripts in one process, which imports their framework once. It says which of them begins.
RUN_EACH = """
import runpy, sys
for name in sys.argv[1:]:
    print(name, file=sys.stderr, flush=True)
    runpy.run_path(name, run_name="__main__")
"""
# On a busy machine a worker of Dask may ask its scheduler once more while both end. Dask logs that with its traceback.
HEARTBEAT = re.compile(
    r"^[^\n]*Failed to communicate with scheduler during heartbeat\.\n"
    r"(Traceback [^\n]*\n([ \t][^\n]*\n)+\S[^\n]*\n(\nThe above exception [^\n]*\n\n)?)+",
    re.MULTILINE,
)


def environment(home):
    """The environment variables of a script in an empty folder. Python imports ``sitecustomize`` when it starts."""
    (home / "site").mkdir(exist_ok=True)
    (home / "site" / "sitecustomize.py").write_text(REFUSE)
    paths = [Path(each).resolve() for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    paths = [home / "site", *(path for path in paths if path != ROOT)]
    given = {name: value for name, value in runner.environment(home).items() if not name.startswith("GPU_COOKBOOK_")}
    return given | {"PYTHONPATH": os.pathsep.join(map(str, paths))}


def can_import(home):
    """Which of this project's packages a script there could import."""
    command = [sys.executable, "-P", "-c"]
    found = [
        name
        for name in OURS
        if f"No module named '{name}'"
        not in subprocess.run(
            [*command, f"import {name}"], cwd=home, env=environment(home), capture_output=True, text=True
        ).stderr
    ]
    subprocess.run([*command, "pass"], cwd=home, env=environment(home), check=True)  # it is not Python that fails
    return found


def kill(process):
    """Ends it and all that it has started."""
    for each in [*psutil.Process(process.pid).children(recursive=True), process]:
        with contextlib.suppress(psutil.Error):
            each.kill()
    process.wait()


def last_line(text):
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def fault(recipes, home, limit):
    """What is wrong with recipes as scripts in an empty folder, or None. ``home``: a folder for this run alone. Several
    are run in one process, which imports their framework once."""
    folder = home / "pasted"
    folder.mkdir()
    names = [f"{recipe.workload}/{recipe.path.name}" for recipe in recipes]
    for name, recipe in zip(names, recipes, strict=True):
        (folder / name).parent.mkdir(exist_ok=True)
        try:
            (folder / name).write_text(show.script(recipe), encoding="utf-8")
        except (catalogue.BrokenRecipe, SyntaxError) as error:
            return str(error)
    command = [sys.executable, "-P", *(names if len(names) == 1 else ["-c", RUN_EACH, *names])]
    # Not pipes: what a process that has ended leaves behind may hold these open.
    with (home / "output").open("w+", errors="replace") as output, (home / "log").open("w+", errors="replace") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment(home), stdin=subprocess.DEVNULL, stdout=output, stderr=log
        )
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            kill(process)
            return f"not done after {limit:g} s"
        texts = []
        for file in (output, log):
            file.seek(0)
            texts.append(file.read())
    said = HEARTBEAT.sub("", texts[1])
    if code:
        ending = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return (last_line(said) if len(names) == 1 else said) or ending
    if "Traceback" in said or "leaked" in said:
        return last_line(said)
    lines = runner.printed_by_recipe(recipes[0].framework, texts[0]).splitlines()
    wanted = [f"{recipe.workload}, …, all right" for recipe in recipes]
    if [re.sub(", .*, all right$", ", …, all right", line) for line in lines] != wanted:
        return f"prints {lines} instead of one line: {' and '.join(wanted)}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: every recipe that runs here")
    parser.add_argument("--jobs", type=int, default=4, help="how many run at a time (default: 4)")
    parser.add_argument("--limit", type=float, default=120, help="seconds for each (default: 120)")
    options = parser.parse_args()
    every = [catalogue.read(path.resolve()) for path in options.files] or catalogue.recipes()
    recipes = [recipe for recipe in every if not machine.obstacle(recipe)]
    for recipe in every:
        if options.files and recipe not in recipes:
            print(f"{recipe.workload}/{recipe.technique}: does not run here: {machine.obstacle(recipe)}")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="alone-", ignore_cleanup_errors=True) as name:
        if found := can_import(Path(name)):
            print(f"{' and '.join(found)} can be imported from an empty folder, so that nothing would be proved")
            return 1
        print(f"{' and '.join(OURS)} cannot be imported there.", flush=True)

        def run(recipe):
            home = Path(tempfile.mkdtemp(dir=name))
            start = time.monotonic()
            return recipe, fault([recipe], home, options.limit), time.monotonic() - start

        with ThreadPoolExecutor(options.jobs) as pool:
            for future in as_completed([pool.submit(run, recipe) for recipe in recipes]):
                recipe, reason, seconds = future.result()
                failed += reason is not None
                print(f"{recipe.workload}/{recipe.technique}, {seconds:.1f} s: {reason or 'ok'}", flush=True)
    left = f"; {len(every) - len(recipes)} do not run here" if len(recipes) < len(every) else ""
    print(f"{len(recipes) - failed} of {len(recipes)} recipes run alone{left}")
    return 0 if recipes and not failed and not (options.files and left) else 1


if __name__ == "__main__":
    sys.exit(main())
