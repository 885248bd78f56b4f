"""NCCL's all-reduce: it begins when every rank has been called in the same group."""

import numpy as np

import cupy

NCCL_FLOAT32, NCCL_SUM = 7, 0
group = None  # (rank, where the array is, where the sum goes, elements, stream) of each call


def groupStart():
    global group
    group = []


def groupEnd():
    global group
    assert group is not None, "outside of a group"
    calls, group = group, None
    assert [rank for rank, *_ in calls] == list(range(cupy.cuda.COUNT)), (
        "ranks that were not called let all others wait"
    )
    done = []

    def add_up():
        if not done:
            done.append(True)
            total = np.sum([cupy.floats(source, count) for _, source, _, count, _ in calls], axis=0, dtype=np.float32)
            for _, _, target, count, _ in calls:
                cupy.floats(target, count)[:] = total

    for rank, *_, stream in calls:
        assert stream.gpu == rank
        stream.queue.append(add_up)


class NcclCommunicator:
    def __init__(self, rank):
        self.rank = rank

    @staticmethod
    def initAll(count):
        return [NcclCommunicator(rank) for rank in range(count)]

    def destroy(self):
        self.rank = None

    def allReduce(self, source, target, count, dtype, operation, stream):
        assert group is not None, "one thread that calls ranks outside of a group waits for ever"
        assert cupy.cuda.current == self.rank and (dtype, operation) == (NCCL_FLOAT32, NCCL_SUM)
        group.append((self.rank, source, target, count, cupy.cuda.streams[stream]))
