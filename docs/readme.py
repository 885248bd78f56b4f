"""Draws README's picture from the stored results: ``make readme``, or ``python docs/readme.py``.

The file is left as it is if it says already what the results say: see speedups.described.
"""

from pathlib import Path

from PIL import Image

from gpu_cookbook import results as typed
from gpu_cookbook.render import speedups
from gpu_cookbook.script import run
from gpu_cookbook.store import asv_files
from gpu_cookbook.store.selecting import select
from gpu_cookbook.terminal import complain

PICTURE = Path(__file__).with_name("speedups.png")
GPU_MACHINE = "nvidia-h200"
TITLE = "Times as fast as NumPy. Upper: the data is on the GPU. Lower: with both transfers."


def results() -> list[typed.Result]:
    every, complaints = asv_files.Store().load()
    complain(complaints)  # and draw nothing: results would be missing
    found, _ = select(every)
    return typed.completed(each for each in found if each.stored.machine == GPU_MACHINE)


def drawn() -> str | None:
    """What the picture says; None if there is none yet."""
    return Image.open(PICTURE).info["Description"] if PICTURE.exists() else None


def main() -> None:
    """Draw the picture anew if the stored results say something else."""
    found = results()
    if drawn() != speedups.described(found):
        speedups.plot(found, PICTURE, TITLE)
        print(f"drawn anew: {PICTURE}")


if __name__ == "__main__":
    run(main)
