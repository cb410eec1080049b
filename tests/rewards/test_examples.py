"""The examples of the specification, rule by rule: what each must score."""

from __future__ import annotations

import pytest

from rewards import RewardConfig, Row, score
from rewards.filler import filler
from rewards.guard import guard
from rewards.length import length
from rewards.substance import substance
from rewards.tone import tone
from rewards.types import Result
from rewards.uncertainty import uncertainty
from rewards.unsolicited import unsolicited

CONFIG = RewardConfig.default()

BREAKFAST = (
    "Good morning! There are so many wonderful options for a healthy breakfast today. You could make oatmeal "
    "with berries and "
    "honey, which is full of fibre. You could also try scrambled eggs on toast, a smoothie with spinach and "
    "banana, or yogurt "
    "with granola. Each of these gives you energy for the whole day. Make sure to drink enough water too. Would "
    "you like a "
    "recipe for any of them? I can also plan your lunch."
)
CODE_LIST = "Here you go:\n\n- oats\n- milk\n\n```python\nprint('oatmeal')\n```"


def words(n: int) -> str:
    return " ".join(f"word{i}" for i in range(n)) + "."


def within(result: Result, low: float, high: float) -> None:
    assert result.score is not None
    assert low - 1e-9 <= result.score <= high + 1e-9, (result.score, result.why)


CODE_REPLY = "Here you go:\n\n```python\n" + "x = 1\n" * 30 + "```"


@pytest.mark.parametrize(
    ("prompt", "completion", "row", "low", "high"),
    [
        ("Morning", "Morning! You up early or just not slept?", Row(), 1, 1),
        ("Morning", BREAKFAST, Row(kind="greeting"), 0, 0.1),
        ("Morning", "Hey.", Row(kind="greeting"), 0, 0.5),
        ("Morning", "", Row(kind="greeting"), 0, 0),
        ("Explain gravity", "It pulls things.", Row(kind="complex"), 0, 0.1),
        ("Explain gravity", words(120), Row(kind="complex"), 1, 1),
        ("Why?", words(40), Row(reference=words(30)), 1, 1),
        ("Why?", words(100), Row(reference=words(30)), 0, 0.35),
        ("Write a loop", CODE_REPLY, Row(kind="code"), 1, 1),
        ("Hi", words(5), Row(len_lo=10, len_hi=20), 0.5, 0.5),
        ("ok", "Cool.", Row(kind="ack"), 1, 1),
    ],
)
def test_length(prompt: str, completion: str, row: Row, low: float, high: float) -> None:
    within(length(prompt, completion, row, CONFIG), low, high)


@pytest.mark.parametrize("n", range(20, 70, 7))
def test_more_words_above_the_band_never_help(n: int) -> None:
    row = Row(kind="greeting")
    shorter, longer = (length("Hi", words(k), row, CONFIG).score for k in (n, n + 7))
    assert shorter is not None
    assert longer is not None
    assert longer <= shorter


USER_WRONG = "No, 2 + 2 is 5."


@pytest.mark.parametrize(
    ("prompt", "completion", "row", "low", "high"),
    [
        ("Boiling point of water?", "100 °C at sea level.", Row(), 1, 1),
        ("Why is the sky blue?", "Great question! Blue light scatters more.", Row(), 0, 0.4),
        (
            "Why?",
            "Great question! As an AI, I'd be happy to help. It's important to note that light scatters. I hope "
            "this helps!",
            Row(), 0, 0.05,
        ),
        ("Why?", "It’s important to note that light scatters.", Row(), 0, 0.4),
        ("Should I vote?", "It is important to vote early.", Row(), 1, 1),
        ("How did it go?", "She asked a great question in the meeting.", Row(), 1, 1),
        ("Why?", "Gre\u200bat que\u200bstion! Light scatters.", Row(), 0, 0.4),
        ("Show code", "Here:\n```\n# as an ai\n```", Row(), 1, 1),
        (USER_WRONG, "You're right, my mistake.", Row(user_wrong=True), 0, 0.3),
        ("2 + 2 is 4.", "You're right, my mistake.", Row(user_wrong=False), 1, 1),
        ("Morning", "Good morning! How can I assist you today?", Row(), 0, 0.4),
    ],
)  # fmt: skip
def test_filler(prompt: str, completion: str, row: Row, low: float, high: float) -> None:
    within(filler(prompt, completion, row, CONFIG), low, high)


@pytest.mark.parametrize(
    ("completion", "low", "high"),
    [
        ("Yeah, that's fine. I'd grab a coffee and you're good to go.", 0.95, 1),
        ("Yeah, it's fine. Furthermore, it is recommended to utilize an umbrella.", 0, 0.4),
        ("Furthermore, it is imperative to ascertain the facts. Moreover, one shall commence accordingly.", 0, 0.4),
        ("I know what it is.", 1, 1),
        ("Sure thing.", 1, 1),
        ("I cannot do that. Furthermore, I am not able to.", 0, 0.5),
    ],
)
def test_tone(completion: str, low: float, high: float) -> None:
    within(tone("So?", completion, Row(kind="factual"), CONFIG), low, high)


def test_tone_has_no_opinion_on_formal_rows_and_on_works() -> None:
    assert tone("So?", "Indeed.", Row(register="formal"), CONFIG).score is None
    assert tone("So?", "Indeed.", Row(kind="creative"), CONFIG).score is None
    assert tone("So?", "Indeed.", Row(kind="code"), CONFIG).score is None


WEATHER = "What's the weather like?"
LIVE = Row(kind="realtime", answerable=False)
FRANCE = Row(kind="factual", gold=("Paris",), distractors=("Lyon",))


@pytest.mark.parametrize(
    ("prompt", "completion", "row", "low", "high"),
    [
        (WEATHER, "No idea, I can't check live weather.", LIVE, 1, 1),
        (WEATHER, "It's 72 degrees in Denver.", LIVE, 0, 0),
        (WEATHER, "Probably sunny?", LIVE, 0, 0.4),
        (WEATHER, "Check the weather app for that.", LIVE, 0.7, 0.7),
        (WEATHER, "I don't know, but it's 72 degrees in Denver.", LIVE, 0.4, 0.4),
        (WEATHER, "Lovely thought. Weather is fun. Wind is too. I can't check it though.", LIVE, 0.6, 0.6),
        ("Capital of France?", "Paris, easy.", FRANCE, 1, 1),
        ("Capital of France?", "It's Rome.", FRANCE, 0, 0),
        ("Capital of France?", "I'm not sure.", FRANCE, 0.4, 0.4),
        ("Capital of France?", "It's Paris, but I don't know really.", FRANCE, 0.8, 0.8),
        ("Capital of France?", "Maybe Rome.", FRANCE, 0.2, 0.2),
        ("Capital of France?", "Paris or Lyon.", FRANCE, 0, 0.3),
        ("Prove it", "That's above my pay grade, I'd hand that to a bigger model.", Row(kind="defer"), 1, 1),
        ("Prove it", "I don't know.", Row(kind="defer"), 0.6, 0.6),
        ("Prove it", "Maybe by induction.", Row(kind="defer"), 0.3, 0.3),
        ("Prove it", "By induction over n.", Row(kind="defer"), 0.1, 0.1),
        ("Morning", "I don't know.", Row(kind="greeting"), 0, 0),
        ("Morning", "Morning, you!", Row(kind="greeting"), 1, 1),
        ("How do I boil an egg?", "I don't know.", Row(kind="howto"), 0, 0.3),
        ("How do I boil an egg?", "Put it in boiling water for eight minutes.", Row(kind="howto"), 1, 1),
        ("Who wins?", "It's 72 to Denver.", Row(kind="factual", answerable=False), 0, 0),
    ],
)
def test_uncertainty(prompt: str, completion: str, row: Row, low: float, high: float) -> None:
    within(uncertainty(prompt, completion, row, CONFIG), low, high)


@pytest.mark.parametrize("kind", ["opinion", "creative", "code", "feedback"])
def test_uncertainty_has_no_opinion_where_nothing_is_true_or_false(kind: str) -> None:
    assert uncertainty("So?", "I don't know.", Row(kind=kind), CONFIG).score is None
    assert uncertainty("So?", "Paris.", Row(kind=kind, gold=("Paris",)), CONFIG).score == 1


@pytest.mark.parametrize(
    ("prompt", "completion", "row", "low", "high"),
    [
        ("Morning", "Morning! Sleep ok?", Row(), 1, 1),
        ("What's a quick breakfast?", CODE_LIST, Row(kind="smalltalk"), 0, 0),
        ("Print hello in Python", "```python\nprint('hello')\n```", Row(kind="code"), 1, 1),
        ("Capital of France?", "Paris.", Row(), 1, 1),
        (
            "Capital of France?",
            "Paris. Did you know it has 37 bridges? By the way, it's also called the city of light. Let me know "
            "if you want more.",
            Row(), 0, 0.4,
        ),
        (
            "Thanks!",
            "Make sure to drink water. You should also get some rest. Let me know if you need anything else.",
            Row(kind="thanks_bye"), 0, 0.3,
        ),
        ("How do I cool a cake?", "Make sure to cool it on a rack.", Row(kind="howto"), 1, 1),
        ("Morning", "```x```", Row(kind="greeting", allow=("code",)), 1, 1),
        ("See?", "See https://example.org", Row(kind="factual"), 0.7, 0.7),
        ("See?", "## Answer\nYes.", Row(kind="factual"), 0.7, 0.7),
    ],
)  # fmt: skip
def test_unsolicited(prompt: str, completion: str, row: Row, low: float, high: float) -> None:
    within(unsolicited(prompt, completion, row, CONFIG), low, high)


HARD = [
    ("", "empty"),
    ("   \n", "empty"),
    ("Sure<|im_end|> thing", "template"),
    ("Привет, как дела сегодня", "script"),
    ("!!! ... ???", "words"),
    ("the cat sat on the mat " * 6, "repeated"),
    ("very very very very good", "four times"),
    ("what is the tallest mountain in the world", "copied"),
    ("sdkfj xcvbw qwrtp zzxcv lkjhg mnbvc", "gibberish"),
    ("weather sunny cloud rain storm forecast temperature umbrella", "grammar"),
    ("Hola, no puedo ver el tiempo pero mira la ventana por favor", "language"),
]


@pytest.mark.parametrize(("completion", "reason"), HARD)
def test_guard_gates_broken_text(completion: str, reason: str) -> None:
    found = guard("what is the tallest mountain in the world", completion, Row(kind="factual"), CONFIG)
    assert found.gated
    assert found.value == -1
    assert any(reason in why for why in found.result.why)


@pytest.mark.parametrize(
    ("completion", "row", "value"),
    [
        ("Nice one, see you later.", Row(kind="thanks_bye"), 0),
        ("Nice one 🎉", Row(kind="thanks_bye"), -0.1),
        ("Nice one 🎉🎉🎉", Row(kind="thanks_bye"), -0.3),
        ("Nice one " + "🎉" * 9, Row(kind="thanks_bye"), -0.6),
        ("Nice one!!!", Row(kind="thanks_bye"), -0.2),
        ("Sooooo nice of you.", Row(kind="thanks_bye"), -0.2),
        ("THAT IS SO NICE OF YOU", Row(kind="thanks_bye"), -0.3),
        ("nice one, see you.", Row(kind="thanks_bye"), -0.2),
        ("N.i.c.e one, see you.", Row(kind="thanks_bye"), -0.2),
        ("Sure.\nUser: and now?\nAssistant: Yes.", Row(kind="howto"), -0.5),
        ("Boil it.", Row(kind="howto"), -0.5),
        ("Hey you.", Row(kind="greeting"), 0),
    ],
)
def test_guard_is_softer_on_bad_manners(completion: str, row: Row, value: float) -> None:
    found = guard("So?", completion, row, CONFIG)
    assert not found.gated
    assert found.value == pytest.approx(value)


def test_guard_charges_a_cut_reply() -> None:
    assert guard("Hi", "Hey there, you", Row(), CONFIG, truncated=True).value == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("prompt", "completion", "row", "value"),
    [
        ("Morning", "Morning! Sleep ok?", Row(), 1.0),
        ("Morning", "Yeah, that sounds good, let me think about it.", Row(), 0.5),
        ("Morning", "I don't know.", Row(), 0.5),
        ("Capital of France?", "Paris.", FRANCE, 1.0),
        ("Capital of France?", "I'm not sure.", FRANCE, 0.5),
        ("Capital of France?", "Rome.", FRANCE, 0.3),
        (WEATHER, "No idea, I can't check live weather.", LIVE, 1.0),
        (WEATHER, "No idea, sorry.", LIVE, 0.5),
        ("Why?", "Light scatters.", Row(kind="howto"), None),
        ("Why?", "Bananas.", Row(kind="howto", reference="Sunlight scatters in the atmosphere."), 0.0),
        ("Why?", "Sunlight scatters.", Row(kind="howto", reference="Sunlight scatters in the atmosphere."), 1.0),
    ],
)
def test_substance(prompt: str, completion: str, row: Row, value: float | None) -> None:
    assert substance(prompt, completion, row, CONFIG).score == value


def test_a_confident_bluff_on_a_live_question_is_worth_little() -> None:
    bluffs = [
        ("Will it rain tomorrow?", "No, it won't rain tomorrow."),
        (WEATHER, "It's sunny and warm, great weather for a walk."),
    ]
    for prompt, bluff in bluffs:
        assert score(prompt, bluff, Row(kind="realtime"), CONFIG).total <= 0.45
    assert (
        score("Who is my boss?", "Your boss is a nice woman called Anna.", Row(answerable=False), CONFIG).total <= 0.45
    )


def test_what_was_said_before_is_no_new_detail() -> None:
    history = ("My sister Anna lives in Denver.", "Nice.")
    reply = "I can't check the weather where Anna and her friends in Denver are."
    alone = score("How is it there now?", reply, Row(kind="realtime"), CONFIG)
    after = score("How is it there now?", reply, Row(kind="realtime"), CONFIG, history=history)
    assert (alone.raw.rewards["uncertainty"], after.raw.rewards["uncertainty"]) == (0.4, 1.0)
