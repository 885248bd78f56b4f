"""How a recipe's file becomes a module."""

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType

from gpu_cookbook.catalogue import Recipe


class Loader:
    """Loads a recipe's module in two steps, so that importing the framework is timed separately from executing the
    file."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    def imports(self) -> None:
        for name in self.recipe.imports:
            with contextlib.suppress(ModuleNotFoundError):  # an object inside a module: executing the file imports it
                importlib.import_module(name)

    def execute(self) -> ModuleType:
        spec = importlib.util.spec_from_file_location(self.recipe.module, self.recipe.path)
        assert spec and spec.loader, self.recipe.path
        module = importlib.util.module_from_spec(spec)
        sys.modules[self.recipe.module] = module  # processes that the recipe starts look up its functions by this name
        spec.loader.exec_module(module)
        return module


@contextlib.contextmanager
def executed_anew(module: ModuleType) -> Iterator[ModuleType]:
    """A second module of the recipe's file, which stands for the first one meanwhile, as in another process."""
    assert module.__file__
    new = ModuleType(module.__name__)
    new.__file__ = module.__file__
    sys.modules[module.__name__] = new  # where dataclasses look
    try:
        exec(_code(module.__file__), vars(new))
        yield new
    finally:
        sys.modules[module.__name__] = module


@cache
def _code(path: str) -> CodeType:
    return compile(Path(path).read_bytes(), path, "exec")
