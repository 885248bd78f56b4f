"""As much of Modin, and of the Ray below it, as the recipes use, made of pandas: Modin has an environment of its own,
with an older pandas."""

import sys
from types import ModuleType, SimpleNamespace

running = []  # the engine's settings


class Table:
    """A table of Modin, or what has been begun with one. Modin starts an engine of its own if there is none."""

    def __init__(self, of_pandas):
        assert running, "Modin starts another engine"
        self.of_pandas = of_pandas
        self.modin = SimpleNamespace(to_pandas=lambda: self.of_pandas)

    def groupby(self, *names, **options):
        return Table(self.of_pandas.groupby(*names, **options))

    def __getitem__(self, name):
        return Table(self.of_pandas[name])

    def mean(self):
        return Table(self.of_pandas.mean())


def execute(*tables):
    assert all(isinstance(each, Table) for each in tables)


def start(address, num_cpus, **settings):
    assert address == "local" and not sys.modules["ray._private.ray_constants"].ENABLE_RAY_CLUSTER
    running.append(num_cpus)


def install():
    of_ray = ("ray", "ray._private", "ray._private.ray_constants")
    for name in (*of_ray, "modin", "modin.pandas", "modin.pandas.io", "modin.utils"):
        sys.modules[name] = ModuleType(name)
    sys.modules["ray._private.ray_constants"].ENABLE_RAY_CLUSTER = True
    sys.modules["ray"].init, sys.modules["ray"].shutdown = start, running.clear
    sys.modules["modin.pandas.io"].from_pandas = lambda table: Table(table.copy())
    sys.modules["modin.utils"].execute = execute
