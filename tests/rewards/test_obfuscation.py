"""Hidden phrases are found, with offsets that are right in the raw text; innocent text is left alone."""

from __future__ import annotations

import pytest

from rewards import RewardConfig, Row, score
from rewards.filler import filler
from rewards.text import normalise, view

CONFIG = RewardConfig.default()


@pytest.mark.parametrize(
    "opening",
    [
        "Great question!", "great question", "GREAT QUESTION!", "Great  question!", "Great\nquestion!",
        "Great \t question!",
        "Great\u00a0question!", "Gre\u200bat quest\u200dion!", "\u200bGreat question!", "Grea\u00adt question!",
        "Gr\u0435at quest\u0456on!",
        "Ｇｒｅａｔ　ｑｕｅｓｔｉｏｎ！", "𝐆𝐫𝐞𝐚𝐭 𝐪𝐮𝐞𝐬𝐭𝐢𝐨𝐧!", "G.r.e.a.t q.u.e.s.t.i.o.n!", "G-r-e-a-t q-u-e-s-t-i-o-n!",
        "G r e a t  q u e s t i o n!",
        "Gr.eat ques-tion!", "**Great** question!", "_Great question_!", "Gréat quèstion!", "Well, great question!",
        "Oh, great question!", "Wow! Great question!", "Good morning! Great question!",
    ],
)  # fmt: skip
def test_hidden_flattery_is_found(opening: str) -> None:
    completion = f"{opening} Light scatters, mostly the blue part."
    result = filler("Why is the sky blue?", completion, Row(), CONFIG)
    assert result.score is not None
    assert result.score <= 0.4
    for span in result.spans:
        assert completion[span.start : span.end] == span.text
    shown = normalise(result.spans[0].text.replace("\u200b", "").replace("\u200d", "").replace("\u00ad", ""))
    assert shown.replace(" ", "").replace("\n", "")[0] == "g"


def test_the_span_covers_the_phrase_exactly() -> None:
    completion = "Well: yes. Gre\u200bat que\u200bstion! Yes."
    spans = filler("Why?", completion, Row(), CONFIG).spans
    assert [span.text for span in spans] == ["Gre\u200bat que\u200bstion"]


@pytest.mark.parametrize(
    "note", ["It’s important to note", "It's important  to\nnote", "Its important to note", "It ' s important to note"]
)
def test_apostrophes_hide_nothing(note: str) -> None:
    result = filler("Why?", f"{note} that light scatters.", Row(), CONFIG)
    if "' " not in note:
        assert result.score is not None
        assert result.score <= 0.4


@pytest.mark.parametrize(
    "completion",
    [
        "A state-of-the-art, well-known shop (e.g. the U.S.A. one) is open.",
        'She wrote "Great question!" on the board.',
        "`great question` is a string.",
        "The question was great. Really.",
        "Uncertainly, he looked on; the pressure was on.",
    ],
)
def test_innocent_text_is_left_alone(completion: str) -> None:
    assert filler("So?", completion, Row(), CONFIG).score == 1


def test_hiding_letters_costs_something_itself() -> None:
    plain, hidden = "Morning! Sleep ok?", "Mor\u200bning! Sl\u0435ep ok?"
    assert score("Morning", plain, Row(), CONFIG).raw.guard == 0
    assert score("Morning", hidden, Row(), CONFIG).raw.guard == pytest.approx(-0.2)


def test_a_phrase_that_the_user_used_is_free() -> None:
    reply = "It's important to note the date, yes."
    assert filler("What does 'it's important to note' mean?", reply, Row(), CONFIG).score == 1


def test_code_and_long_quotes() -> None:
    assert view('He said "' + "x" * 150 + '" twice').plain.count("x") == 0
    assert view('He said "' + "x" * 250 + '" twice').plain.count("x") == 250
    assert view("a ```unclosed fence").words == ("a",)
