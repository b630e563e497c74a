"""From texts to tokens and back, as they come; and stops, which clients give as texts."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from utils.xla.corpus import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class Letters:
    """Characters. Capitals become small, and what the vocabulary lacks becomes a space."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def encode(self, text: str) -> list[int]:
        """The ids of a text, one for each character."""
        known = {*self.vocabulary.characters}
        text = "".join(letter if letter in known else " " for letter in text.lower())
        return self.vocabulary.encode(text)

    def chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """The last message alone: this model continues texts and knows no roles."""
        return self.encode(messages[-1]["content"])

    def decoder(self) -> Callable[[int], str]:
        """From an id to its character."""
        return lambda token: self.vocabulary.decode([token])


class Checkpoint:
    """The tokenizer of a Hugging Face folder. Raises ValueError if it has none."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "tokenizer.json").is_file():
            raise ValueError(
                f"{folder} has no tokenizer.json: save the model's fast tokenizer there too"
            )
        from transformers import AutoTokenizer  # late: slow to load, and not for letters

        self.tokenizer: PreTrainedTokenizerFast = AutoTokenizer.from_pretrained(
            folder, local_files_only=True
        )

    def encode(self, text: str) -> list[int]:
        """The ids of a text, with those that the tokenizer puts around it."""
        return list(self.tokenizer.encode(text))

    def chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """The ids of a chat in the checkpoint's template. Raises ValueError if it has none."""
        if not self.tokenizer.chat_template:
            raise ValueError("this checkpoint has no template of chats: ask /v1/completions")
        text = self.tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=True
        )
        return list(self.tokenizer.encode(str(text), add_special_tokens=False))

    def decoder(self) -> Callable[[int], str]:
        """From an id to the characters that are complete with it."""
        from tokenizers.decoders import DecodeStream  # late: with transformers

        stream = DecodeStream(skip_special_tokens=True)
        return lambda token: stream.step(self.tokenizer.backend_tokenizer, token) or ""


Texts = Letters | Checkpoint


class Writer:
    """The text of an answer up to its first stop, given out as soon as it is sure.

    What could be the beginning of a stop is held back until more has come. The stop that ends first
    counts, of several the longest.

    >>> writer = Writer(["END"])
    >>> [writer.push(piece) for piece in ("so ", "E", "xit", " EN", "D of")], writer.stopped
    (['so ', '', 'Exit', ' ', ''], True)
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.stops, self.stopped, self._held = stops, False, ""

    def push(self, piece: str, last: bool = False) -> str:
        """What may be given out now that a piece has come, the `last` one or not."""
        text, self._held = self._held + piece, ""
        results = [(text.find(stop), len(stop)) for stop in self.stops]
        ends = [(start + length, start) for start, length in results if start >= 0]
        if ends:
            self.stopped = True
            return text[: min(ends)[1]]
        held = 0 if last else max((_beginning(text, stop) for stop in self.stops), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]


def _beginning(text: str, stop: str) -> int:
    """How many characters at the end of a text are the beginning of a stop."""
    longest = min(len(stop) - 1, len(text))
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)
