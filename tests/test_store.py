"""RunStore folds what a worker wrote; Series keeps curves; Ranking answers what-if."""

from __future__ import annotations

import math

import pytest

from ada_tui import protocol
from ada_tui.protocol import (
    Alarm,
    Completion,
    ControlApplied,
    Group,
    JobEnded,
    JobStarted,
    Memory,
    NotARecord,
    Outcome,
    Phase,
    Saved,
    Step,
)
from ada_tui.ranking import Ranking
from ada_tui.series import Series
from ada_tui.store import RunStore, index_group
from rewards.config import RewardConfig

CONFIG = RewardConfig(weights={"length": 1.0, "filler": 1.0, "guard": 1.0})


def group(group_id: str, scores: list[tuple[float, float]], *, batch: int = 0, source: str = "train") -> Group:
    completions = [
        Completion(
            text=f"reply {n}", tokens=3, words=2,
            raw={
                "rewards": {"length": a, "filler": b},
                "guard": 0.0, "gated": False, "substance": None, "kind": "factual",
            },
        )
        for n, (a, b) in enumerate(scores)
    ]  # fmt: skip
    return Group(id=group_id, batch_id=batch, source=source, prompt="Morning", completions=completions)


def entry(*args: object, offset: int = 0, **kwargs: object):
    return index_group(protocol.encode(group(*args, **kwargs)), offset)


def test_steps_become_curves_and_missing_figures_leave_gaps() -> None:
    store = RunStore()
    assert store.fold(Step(step=1, loss=0.5, reward=0.4, rewards={"length": 0.5, "filler": None})) == "steps"
    store.fold(Step(step=2, loss=None, reward=0.6, rewards={"length": 0.7}))
    store.fold(Step(step=3, loss=0.3, reward=0.7, dead_groups=2, groups=8))
    assert store.curves["loss"].segments(10) == [[(1, 0.5)], [(3, 0.3)]]
    assert store.curves["reward/length"].last == 0.7
    assert store.curves["dead"].last == 0.25
    assert "kl" not in store.curves, "a figure that never came must not open an empty chart"
    assert "reward/filler" not in store.curves


def test_a_resumed_run_measures_its_last_steps_anew() -> None:
    store = RunStore()
    store.fold(JobStarted(kind="grpo", steps=10, time=100.0))
    for step in range(1, 6):
        store.fold(Step(step=step, loss=float(step)))
    store.fold(Memory(rss=7, time=101.0))
    store.fold(JobStarted(kind="grpo", steps=10, resumed_from=3, time=200.0))
    store.fold(Step(step=4, loss=40.0))
    assert store.curves["loss"].segments(10) == [[(1, 1.0), (2, 2.0), (3, 3.0), (4, 40.0)]]
    store.fold(Memory(rss=8, time=201.0))
    assert store.curves["memory/rss"].segments(10) == [[(1.0, 7), (101.0, 8)]]


def test_phases_become_stages_with_times() -> None:
    store = RunStore()
    store.fold(Phase(name="load", detail="weights", fraction=0.2, time=1.0))
    store.fold(Phase(name="load", detail="adapter", fraction=0.9, time=2.0))
    store.fold(Phase(name="train", time=3.0))
    assert [(s.name, s.detail, s.fraction, s.started, s.ended) for s in store.stages] == [
        ("load", "adapter", 0.9, 1.0, 3.0),
        ("train", "", None, 3.0, None),
    ]
    store.fold(JobEnded(status="done", time=5.0))
    assert store.stages[-1].ended == 5.0


def test_every_other_event_is_kept_where_screens_look_for_it() -> None:
    store = RunStore()
    store.fold(ControlApplied(version=1, step=4, changed=["weights"]))
    store.fold(ControlApplied(version=2, step=5, error="weight of 'x' is -1"))
    assert [event.version for event in store.regimes] == [1]
    assert store.applied is not None
    assert store.applied.error
    store.fold(Alarm(kind="length", detail="falls", step=5))
    store.fold(Saved(path="adapters/step-000020", step=20))
    store.fold(Outcome(name="export", data={"gguf": "model.gguf"}))
    assert (len(store.alarms), len(store.saved), store.outcomes["export"]["gguf"]) == (1, 1, "model.gguf")


def test_alarms_and_points_are_bounded() -> None:
    store = RunStore()
    for n in range(500):
        store.fold(Alarm(kind=str(n)))
    assert len(store.alarms) == 200
    assert store.alarms[0].kind == "300"
    series = Series(capacity=100)
    for n in range(1000):
        series.append(n, 1.0)
    assert len(series.points) == 100


def test_series_thins_without_losing_a_peak() -> None:
    series = Series()
    for n in range(5000):
        series.append(n, 99.0 if n == 2718 else math.sin(n / 50))
    (line,) = series.segments(200)
    assert len(line) <= 210
    assert (2718, 99.0) in line
    assert line[-1][0] == 4999
    assert line == sorted(line)


def test_series_takes_non_finite_numbers_as_gaps() -> None:
    series = Series()
    for n, value in enumerate([1.0, math.nan, 2.0, math.inf, 3.0]):
        series.append(n, value)
    assert [len(line) for line in series.segments(10)] == [1, 1, 1]
    assert series.last == 3.0


def test_groups_are_indexed_without_their_texts() -> None:
    stored = entry("g1", [(1.0, 0.4), (0.5, 0.5)], offset=77)
    assert (stored.offset, stored.id, stored.prompt, stored.kind, len(stored)) == (77, "g1", "Morning", "factual", 2)
    assert stored.raws[0].rewards == {"length": 1.0, "filler": 0.4}


def test_a_faulty_reward_has_no_opinion_in_its_whole_group() -> None:
    import dataclasses

    sick = group("g1", [(1.0, 0.4)])
    sick = dataclasses.replace(sick, completions=[dataclasses.replace(sick.completions[0], dropped=["filler"])])
    assert index_group(protocol.encode(sick), 0).raws[0].rewards == {"length": 1.0, "filler": None}


@pytest.mark.parametrize(
    "line",
    [
        b"{", b"[]", b'"text"', b"{}", b'{"completions": 3}',
        b'{"completions": [3]}', b'{"completions": [{"raw": null}]}',
        b'{"completions": [{"raw": {"rewards": {"length": "1"}}}]}', b'{"completions": [], "row": [1]}',
        b'{"completions": [], "batch_id": [1]}',
    ],
)  # fmt: skip
def test_a_damaged_group_is_refused(line: bytes) -> None:
    with pytest.raises(NotARecord):
        index_group(line, 0)


def test_a_group_written_twice_counts_once_and_batches_hold_together() -> None:
    store = RunStore()
    store.add(entry("a", [(1, 1)], batch=1))
    store.add(entry("b", [(1, 0)], batch=1))
    store.add(entry("c", [(1, 0)], batch=1, source="probe"))
    store.add(entry("a", [(0, 0)], batch=1, offset=9))
    assert [g.id for g in store.groups] == ["a", "b", "c"]
    assert [g.id for g in store.batch(store.groups[0])] == ["a", "b"]
    assert store.groups[0].offset == 9


def test_turning_a_weight_reranks_stored_groups() -> None:
    ranking = Ranking(CONFIG, CONFIG)
    one = entry("a", [(1.0, 0.2), (0.3, 1.0)])
    assert ranking.now(one).places == [2, 1]
    assert not ranking.edited
    ranking.turn(CONFIG.with_weight("length", 4))
    assert ranking.edited
    assert ranking.now(one).totals == pytest.approx([0.84, 0.44])
    assert ranking.now(one).order == [0, 1]
    assert ranking.moved(one) == [1, -1]
    assert ranking.winner_changed(one)
    ranking.rebase(ranking.config)
    assert ranking.moved(one) == [0, 0]


def test_advantages_are_scaled_over_the_batch_and_say_so() -> None:
    ranking = Ranking(CONFIG, CONFIG)
    first, second = entry("a", [(1, 1), (0, 0)], batch=1), entry("b", [(0.5, 0.5), (0.5, 0.5)], batch=1)
    alone, scaled = ranking.advantages(first, [first])
    together, over_batch = ranking.advantages(first, [first, second])
    assert (scaled, over_batch) == (False, True)
    assert together[0] > alone[0] > 0


def test_a_sweep_counts_what_an_edit_changes() -> None:
    ranking = Ranking(CONFIG, CONFIG)
    groups = [entry(f"g{n}", [(1.0, 0.2), (0.3, 1.0)]) for n in range(450)] + [entry("flat", [(1.0, 0.0), (0.0, 1.0)])]
    ranking.turn(CONFIG.with_weight("length", 4))
    *partial, last = list(ranking.sweep(groups))
    assert len(partial) == 3
    assert (last.groups, last.winners_changed, last.came_alive, last.dead, last.complete) == (451, 450, 1, 0, True)
    assert last.pull["length"] > last.pull["filler"] > 0
