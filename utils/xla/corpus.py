"""A small English-like text from a grammar of our own: nothing to download, no licence to ask for.

The same seed gives the same text on every machine. A character model learns its words within a few
hundred steps, because there are not many.
"""

import random
from dataclasses import dataclass

_NOUNS = (
    "boat pilot harbour lamp rope tide signal cargo crane gull storm captain anchor map".split()
)
_ADJECTIVES = "old small grey quiet heavy bright slow northern".split()
_VERBS = "finds lifts follows loses watches carries leaves paints counts".split()
_WHEN = ("at dawn", "before noon", "all night", "in the rain", "once more", "too late")
_JOIN = ("and", "but", "while", "because")


def _noun_phrase(rng: random.Random) -> str:
    adjectives = rng.choices(("", rng.choice(_ADJECTIVES)), (2, 1))
    return " ".join(filter(None, ("the", *adjectives, rng.choice(_NOUNS))))


def _clause(rng: random.Random) -> str:
    words = [_noun_phrase(rng), rng.choice(_VERBS), _noun_phrase(rng)]
    if rng.random() < 0.3:
        words.append(rng.choice(_WHEN))
    return " ".join(words)


def _sentence(rng: random.Random) -> str:
    text = _clause(rng)
    while rng.random() < 0.35:
        text += f" {rng.choice(_JOIN)} {_clause(rng)}"
    return text + "."


def sentences(count: int, seed: int = 0) -> list[str]:
    """Sentences of very different lengths, as text data has them.

    >>> sentences(2)
    ['the slow signal finds the heavy cargo.', 'the heavy tide loses the anchor all night.']
    """
    rng = random.Random(seed)
    return [_sentence(rng) for _ in range(count)]


def text(characters: int, seed: int = 0) -> str:
    """One text of exactly that many characters, sentence after sentence."""
    rng = random.Random(seed)
    parts: list[str] = []
    length = 0
    while length < characters:
        parts.append(_sentence(rng) + "\n")
        length += len(parts[-1])
    return "".join(parts)[:characters]


@dataclass(frozen=True)
class Vocabulary:
    """The characters of a text in order; the place of a character is its id.

    >>> letters = Vocabulary.of("a cab")
    >>> letters.encode("bac"), letters.decode([2, 1, 3])
    ([2, 1, 3], 'bac')
    """

    characters: str

    @classmethod
    def of(cls, text: str) -> "Vocabulary":
        """The vocabulary of all characters of a text."""
        return cls("".join(sorted(set(text))))

    def __len__(self) -> int:
        return len(self.characters)

    def encode(self, text: str) -> list[int]:
        """The ids of a text. Raises ValueError for a character that the vocabulary lacks."""
        places = {character: place for place, character in enumerate(self.characters)}
        if strange := sorted(set(text) - set(places)):
            raise ValueError(
                f"the text has {strange[0]!r}, which is not among the {len(self)} characters of"
                " this vocabulary: make it with Vocabulary.of from all the text you encode"
            )
        return [places[character] for character in text]

    def decode(self, ids: list[int]) -> str:
        """The text of ids from 0 to len(self) - 1."""
        return "".join(self.characters[place] for place in ids)
