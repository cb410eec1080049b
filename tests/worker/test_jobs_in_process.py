"""The sample and sft scripts called directly, and the environment a worker gives itself."""

from __future__ import annotations

import os
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ada_tui.errors import BadInput  # noqa: E402
from ada_tui.protocol import Job, JobStarted, ModelLoaded, Phase  # noqa: E402
from ada_tui.worker import sample, sft  # noqa: E402
from ada_tui.worker.__main__ import go_offline, main  # noqa: E402
from ada_tui.worker.context import JobContext  # noqa: E402
from rewards import RewardConfig  # noqa: E402

HOSTILE = "Hi \x1b[31m[/red] \u202e\x00 \ud800 👩\u200d🚀"


def test_sample_writes_a_scored_group_per_prompt(bench: Any) -> None:
    history = [{"role": "user", "content": "Hey"}, {"role": "assistant", "content": "Hey you"}]
    prompts = [
        {"prompt": "Morning", "history": history, "row": {"id": "m", "kind": "greeting", "reference": "Morning!"}},
        {"prompt": HOSTILE},
    ]
    job = bench.job("sample", data={"prompts": prompts, "n": 3}, policy="base")
    with JobContext(job) as context:
        sample.run(context)
    groups = sorted(job.groups(), key=lambda group: group.id)
    assert [(group.id, group.source, group.policy, len(group.completions)) for group in groups] == [
        ("sample-0", "sample", "base", 3),
        ("sample-1", "sample", "base", 3),
    ]
    assert len({group.batch_id for group in groups}) == 2  # a lone group each: never a batch together
    assert groups[0].history == history
    assert groups[0].row == {"id": "m", "kind": "greeting", "reference": "Morning!"}
    assert groups[0].kind_by == "row"
    for completion in (completion for group in groups for completion in group.completions):
        assert 1 <= completion.tokens <= 12
        assert completion.raw.keys() >= {"rewards", "guard", "gated", "substance", "kind"}
    assert [event.steps for event in bench.events(job, JobStarted)] == [2]
    assert bench.events(job, Phase)[-1].fraction == 1.0
    loaded = bench.events(job, ModelLoaded)[0]
    assert (loaded.backend, loaded.trainable, loaded.adapter) == ("trl", 0, "")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ({}, "nothing to sample"),
        ({"prompts": [{"prompt": "  "}]}, "every prompt must be text"),
        ({"prompts": [{"prompt": "Hi", "row": {"kind": "nonsense"}}]}, "column 'kind' has 'nonsense'"),
    ],
)
def test_sample_refuses_what_it_cannot_use(bench: Any, data: dict[str, Any], line: str) -> None:
    with JobContext(bench.job("sample", data=data)) as context, pytest.raises(BadInput) as refused:
        sample.run(context)
    assert line in str(refused.value)


def test_sft_without_a_single_reply_has_nothing_to_imitate(bench: Any) -> None:
    (bench.root / "bare.jsonl").write_text('{"id": "a", "prompt": "Hi"}\n')
    with (
        JobContext(bench.job("sft", data={"train": "bare.jsonl"})) as context,
        pytest.raises(BadInput, match="no training row has a reference reply"),
    ):
        sft.run(context)


def test_the_default_rewards_are_used_when_a_job_names_none(bench: Any) -> None:
    from ada_tui.worker.scoring import scorer_of

    job = bench.job("sample", rewards={"weights": {}})
    with JobContext(job) as context:
        assert scorer_of(context).config.weights == RewardConfig.default().weights


@pytest.mark.parametrize(("base", "offline"), [("embedded", True), ("models/mine", True), ("Qwen/Qwen2.5-3B", False)])
def test_telemetry_is_off_and_the_hub_only_there_for_hub_ids(
    bench: Any, monkeypatch: pytest.MonkeyPatch, base: str, offline: bool
) -> None:
    (bench.root / "models" / "mine").mkdir(parents=True)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    os.environ.pop("HF_HUB_OFFLINE", None)
    go_offline(Job(workspace=str(bench.root), model={"base": base}))
    assert os.environ["HF_HUB_DISABLE_TELEMETRY"] == os.environ["DO_NOT_TRACK"] == "1"
    assert (os.environ.get("HF_HUB_OFFLINE") == "1") is offline


def test_a_folder_without_a_job_starts_nothing(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "no job here" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert main([]) == 2
