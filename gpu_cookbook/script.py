"""What the scripts in benchmarks/ that store a line have in common."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from gpu_cookbook.store import transfers
from gpu_cookbook.store.commits import StoreError
from gpu_cookbook.terminal import fail

Save = Annotated[str | None, typer.Option(metavar="NAME", help="Store the result for a machine of this name.")]


def commit_for(save: str | None, root: Path, code: Sequence[str]) -> str:
    """What transfers.commit_here() says, before anything is measured; '' if nothing is to be stored."""
    try:
        return transfers.commit_here(save, root, code) if save else ""
    except StoreError as error:
        fail(str(error))
