"""Temporary, for scaling_charts until the tables of scale's rows are here."""

from gpu_cookbook.render.format import digits, seconds, stale
from gpu_cookbook.render.tables import Entry, Table
from gpu_cookbook.scaling import record

STORY_SIZE, STORY_CHUNK = 100_000, 10_000
STORY = (
    ("core", False, "701 s on one core"),
    ("core", True, "55 s on 16 cores"),
    ("GPU", False, "almost 12 s on a K80"),
    ("GPU", True, "less than 2 s on 8 K80"),
)
AS_WRITTEN = {"core": "dask", "GPU": "dask_cuda_random_state"}


def _best(rows, kind, every, lane):
    mine = [row for row in rows if row.measured and (row.mode, row.size, row.kind) == ("strong", STORY_SIZE, kind)]
    if lane == "idiomatic":
        mine = [row for row in mine if row.technique == AS_WRITTEN[kind] and row.chunk == STORY_CHUNK]
    else:
        mine = [row for row in mine if row.lane == lane]
    workers = max((row.workers for row in mine if every), default=1)
    mine = [row for row in mine if row.workers == workers and not (every and workers == 1)]
    return min(mine, key=lambda row: row.time.median, default=None)


def told(rows):
    found = [(then, lane, _best(rows, *where, lane)) for *where, then in STORY for lane in ("idiomatic", "tuned")]
    return [each for each in found if each[-1]]


def story(rows):
    entries, found = [], told(rows)
    for *_, then in STORY:
        words = {
            lane: f"{stale(row)}{seconds(row.time.median)} on {row.on}, {digits(1)} ×: {row.technique}"
            for other, lane, row in found
            if then == other
        }
        entries.append(tuple(map(Entry, (then, words.get("idiomatic", "–"), words.get("tuned", "–")))))
    origins = dict.fromkeys(f"{row.origin.commit[:8]}, {row.origin.date}" for *_, row in found if row.origin)
    title = "The experiment, then and now"
    if origins:
        title += f". {found[0][-1].origin.machine}, {' and '.join(origins)}"
    head = ("first told, 2020", "Dask, as it was written then", "the fastest of the tuned lane")
    records = [{"table": "story", "then": then} | record(row) for then, _, row in found]
    return Table(title, head, "lll", entries, [], records)
