"""Serve a language model on this machine with OpenAI's interface, on graphs compiled beforehand."""

import argparse
import asyncio
import sys
from functools import partial
from pathlib import Path

NEEDS = "learner"
ROOT = Path(__file__).resolve().parents[3]

EXAMPLES = """\
Without --model, a small model that continues the course's own sentences, trained once in seconds.

  python3 course.py serve
  curl http://127.0.0.1:8000/v1/completions -d '{"model": "letters", "prompt": "the old "}'

Addresses: /v1/models, /v1/completions, /v1/chat/completions, /health, /metrics.
Exit status: 0 after Ctrl-C; 1 if the model cannot be served or the port is taken.
"""


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        "course.py serve", description=__doc__, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="a checkpoint of Hugging Face")
    parser.add_argument("--port", type=int, default=8000, help="default: 8000; 0: any free one")
    parser.add_argument("--slots", type=int, default=4, help="answers at a time; default: 4")
    parser.add_argument("--waiting", type=int, default=64, help="that may wait; default: 64")
    parser.add_argument("--context", type=int, default=0, help="tokens; default: the model's")
    parser.add_argument("--cache", type=Path, default=ROOT / ".tools" / "serve", metavar="FOLDER")
    given = parser.parse_args(arguments)

    from utils.serving.endpoint import app, models  # late: loading torch takes seconds

    make = partial(models.load, given.model, given.cache, given.slots, given.context)
    try:
        asyncio.run(app.serve(make, given.port, given.waiting, partial(print, flush=True)))
    except (OSError, ValueError) as error:
        print(f"course.py serve: {error}", file=sys.stderr)
        return 1
    return 0
