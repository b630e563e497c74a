"""What of an observation a learner's report may show: numbers, and words that judges use.

An answer sees the hidden inputs. What it returns, and how it names its types, could carry them out
as text; so the report shows no other text of an observation.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

HIDDEN = "(not shown)"
MOST_DIGITS = 7
"""Significant digits of a number that are shown."""
MOST_NUMBERS = 6
"""In one text."""

_WORDS = frozenset(
    "a adapter adapters all an and another array at aten audit automatic baseline batches begun"
    " best bfloat bincount bit bool bound broadcast bucketable bucketize by bytes call calls"
    " capacity central changed checked claim clock collective columns compile compiles complex cpu"
    " credits cuda currency data dependent dict dimensions done drop each either elsewhere end"
    " equal evaluations every execution executions failed false far few finding findings fine"
    " first float floats for forward found function gate gather generator given gpu graph graphs"
    " hand hang histc idle in inf int item items judged kernels kind larger last least left life"
    " list long losses loud machine many map marked mean measure median method min minimum"
    " mismatch more most ms name named names nan ndarray neither no nodes none nonetype nonzero"
    " not number numbers object of off old on one only open or order other others parameter"
    " parameters parity part parts peak permute pipelines places port price products purchase"
    " quality range read reads reduce refused region replace replacements resumed right round"
    " rounding rounds row rows run runs s sample samples scatter searchsorted second seconds seeds"
    " set shapes share sign silent size slow sorted sparse static step steps str string sum"
    " survived sync syncs tensor tensors than the this times to token tokens too train trained"
    " trainium true tuple unchanged unit up value values vendor waiting waits warmup weight with"
    " without work wrong xla yes".split()
)
_NUMBER = re.compile(r"\d[\d.]*(?:e[+-]?\d+)?")
_TOKEN = re.compile(r"[^\W\d_]+|[^\x00-\x7f×²µ–]|[_<>&\"'`{}=\\]")


def is_plain(text: str) -> bool:
    """Whether a text is made of nothing but numbers, marks and words that judges use.

    >>> is_plain("the seed is 0.5"), is_plain("a list of 3"), is_plain("a Hidden_7_3")
    (False, True, False)
    """
    rest, numbers = _NUMBER.subn(" ", text)
    return numbers <= MOST_NUMBERS and all(
        token.lower() in _WORDS for token in _TOKEN.findall(rest)
    )


def visible(text: str) -> str:
    """A measured value as a report shows it.

    >>> visible("a list of 3"), visible("a Secret"), visible("0.123456789")
    ('a list of 3', '(not shown)', '0.1234568')
    """
    return cut_digits(text) if is_plain(text) else HIDDEN


def message(text: str, facts: Any) -> str:
    """A judge's message without the texts that it took over from what was observed."""
    taken = {item for item in _texts(facts) if item and item in text and not is_plain(item)}
    if taken:
        longest_first = sorted(taken, key=lambda item: (-len(item), item))
        pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)"
        text = re.sub(pattern, HIDDEN, text)
    return cut_digits(text)


def cut_digits(text: str) -> str:
    """A text whose numbers have no more than seven significant digits."""
    return _NUMBER.sub(lambda match: _cut(match[0]), text)


def without_inputs(
    texts: Iterable[str], hidden: Any, others: Callable[[], list[Any]]
) -> Callable[[str], str]:
    """Takes the numbers that were drawn for hidden cases out of these texts.

    hidden: plain values. others: gives cases drawn otherwise, if they are needed: what is the same
    in all of them, at the same place, was not drawn. Numbers of one or two digits stay: as counts
    they are everywhere, and give little away.

    >>> texts = ["1792 × 16: more than 8192"]
    >>> drawn = [{"m": m, "k": 16, "most": 8192} for m in (1792, 640)]
    >>> without_inputs(texts, drawn[0], lambda: drawn[1:])(texts[0])
    '(not shown) × 16: more than 8192'
    """
    results = {n for text in texts for n in _NUMBER.findall(text) if _digits(n) >= _TELLING_DIGITS}
    secret = results & set(_drawn(hidden, [])) if results else results
    secret = secret & set(_drawn(hidden, others())) if secret else secret
    return lambda text: _NUMBER.sub(lambda m: HIDDEN if m[0] in secret else m[0], text)


_TELLING_DIGITS = 3


def _digits(number: str) -> int:
    """Significant digits.

    >>> _digits("0.050"), _digits("2.5e10"), _digits("1200")
    (2, 2, 4)
    """
    return len(number.partition("e")[0].replace(".", "").lstrip("0"))


def _drawn(value: Any, others: list[Any]) -> Iterator[str]:
    """The numbers in plain values, as texts may spell them, that are not the same in all others."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _drawn(part, [o.get(key) if isinstance(o, dict) else None for o in others])
    elif isinstance(value, list | tuple):
        for place, part in enumerate(value):
            parts = [
                o[place] if isinstance(o, list | tuple) and place < len(o) else None for o in others
            ]
            yield from _drawn(part, parts)
    elif others and all(other == value for other in others):
        return
    elif isinstance(value, str):
        yield from _NUMBER.findall(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        size = abs(value)
        yield from {str(size), *(f"{size:.{digits}g}" for digits in (3, 4, 5, 6, MOST_DIGITS))}


def _cut(number: str) -> str:
    if _digits(number) <= MOST_DIGITS:
        return number
    try:
        return f"{float(number):.{MOST_DIGITS}g}"
    except (ValueError, OverflowError):  # 1.2.3, or out of range
        return HIDDEN


def _texts(facts: Any) -> Iterator[str]:
    """All texts in plain values; not keys, which are words of the course."""
    waiting = [facts]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
