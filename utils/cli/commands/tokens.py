"""Model what a million tokens costs, read and written, on each instance at a service level."""

import argparse
import sys

NEEDS = "learner"

NOTES = """\
All figures are modelled. In brackets: with all assumptions of utils/facts/data/serving_cases.yaml
at their best values, and at their worst. A batch run has no service level; the last columns say how
much it saves, and from how many requests on it costs less in spite of its start. --published shows
the error of each estimate.
"""


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    from utils.facts.tables import columns  # late: --help needs no packages
    from utils.serving import published, tokens

    parser = argparse.ArgumentParser(
        "course.py tokens", description=__doc__, epilog=NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--model", default="llama-3.1-8b", help="default: llama-3.1-8b")
    parser.add_argument("--read", type=int, default=1500, help="tokens of a request; default: 1500")
    parser.add_argument("--write", type=int, default=250, help="tokens of an answer; default: 250")
    parser.add_argument("--first", type=float, default=1.0, help="limit for the first token (s)")
    parser.add_argument("--next", type=float, default=0.05, help="limit for the next ones (s)")
    parser.add_argument("--peak", type=float, default=2.5, help="peak over mean load; default: 2.5")
    parser.add_argument("--dtype", default="bf16", help="of weights and cache; default: bf16")
    parser.add_argument("--price", default="capacity_block", help="or on_demand")
    parser.add_argument("--start", type=float, default=10, help="minutes to start a batch run")
    parser.add_argument("--published", action="store_true", help="compare with published runs")
    given = parser.parse_args(arguments)
    if given.published:
        print(*published.rows(), published.summary(), sep="\n")
        return 0
    try:
        mix, level = tokens.Mix(given.read, given.write), tokens.Level(given.first, given.next)
        terms = {"dtype": given.dtype, "price": given.price, "peak": given.peak}
        rows = tokens.bill(given.model, mix, level, given.start / 60, **terms)
    except (LookupError, ValueError) as error:
        print(f"course.py tokens: {error}", file=sys.stderr)
        return 1
    print(
        f"{given.model}: {mix.tokens_in:,} tokens read, {mix.tokens_out:,} written. Even at"
        f" {given.peak:g} times the mean load\n{level.share:.0%} of requests have a first token in"
        f" {level.first_s:g} s, and the next ones take {level.token_s:g} s at most on average."
        " Modelled:\n"
    )
    print(*columns([tokens.HEAD, *rows]), sep="\n")
    print(f"\n{published.summary()}")
    return 0
