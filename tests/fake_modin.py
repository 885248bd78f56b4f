"""As much of Modin, and of the Ray below it, as the recipes use, made of pandas: Modin has an environment of its own,
with an older pandas."""

import os
import sys
from types import ModuleType, SimpleNamespace

running, ended, chosen = [], [], []  # the cores of engines, and their names


class Table:
    """A table of Modin, or what has been begun with one. Modin starts an engine of its own if there is none, and keeps
    objects of one that has ended."""

    def __init__(self, of_pandas):
        assert running, "Modin starts another engine"
        assert not ended, "this Ray does not know Modin's objects"
        self.of_pandas, self.there = of_pandas, False
        self.modin = SimpleNamespace(to_pandas=lambda: self.of_pandas)

    def groupby(self, *names, **options):
        assert self.there, "its parts are not in the object store yet"
        return Table(self.of_pandas.groupby(*names, **options))

    def __getitem__(self, name):
        return Table(self.of_pandas[name])

    def mean(self):
        return Table(self.of_pandas.mean())


def execute(*tables):
    for each in tables:
        each.there = True


def start(address, num_cpus, include_dashboard, logging_level):
    assert address == "local" and not sys.modules["ray._private.ray_constants"].ENABLE_RAY_CLUSTER, "it is reached"
    assert os.environ["__MODIN_AUTOIMPORT_PANDAS__"] == "1"
    assert chosen == ["Ray"] and os.environ["MODIN_ENGINE"] == "ray", "another engine may be set"
    running.append(num_cpus)


def end():
    ended.append(running.pop())


def install():
    of_ray = ("ray", "ray._private", "ray._private.ray_constants")
    for name in (*of_ray, "modin", "modin.config", "modin.pandas", "modin.pandas.io", "modin.utils"):
        sys.modules[name] = ModuleType(name)
    sys.modules["ray._private.ray_constants"].ENABLE_RAY_CLUSTER = True
    sys.modules["ray"].init, sys.modules["ray"].shutdown = start, end
    sys.modules["modin.config"].Engine = SimpleNamespace(put=chosen.append)
    sys.modules["modin.pandas.io"].from_pandas = lambda table: Table(table.copy())
    sys.modules["modin.utils"].execute = execute


def assert_once(engine):
    """That an engine which has ended is not started again."""
    try:
        with engine():
            raise AssertionError("it was started twice")
    except RuntimeError as error:
        assert "keep engine() open" in str(error)
