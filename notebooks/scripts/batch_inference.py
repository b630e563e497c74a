"""Batch inference that loses nothing: one result for each item of a table, whatever is killed.

python batch_inference.py items.csv out                    the course's small model, in this process
python batch_inference.py items.csv out --workers 2        two processes
python batch_inference.py items.jsonl s3://BUCKET/out --scheduler tcp://HOST:8786
python batch_inference.py items.csv out --model mine.py:make --instance trn1.2xlarge

The same command again goes on where a run ended. `utils/serving/batch/job.py` says what is written.
"""

import argparse
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from utils.facts import Unknown
from utils.serving import batch


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("items", help="CSV, JSON lines or Parquet with columns id and text")
    parser.add_argument("out", help="a folder; for both, s3://... and what fsspec opens too")
    parser.add_argument("--model", default="letters", help="letters, or FILE.py:NAME")
    parser.add_argument("--buckets", default="32,64,128", help="lengths in characters, ascending")
    parser.add_argument("--batch", type=int, default=16, help="items computed at a time")
    parser.add_argument("--shard", type=int, default=256, help="items of a file")
    parser.add_argument("--id", default="id", metavar="COLUMN")
    parser.add_argument("--text", default="text", metavar="COLUMN")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0: this one")
    parser.add_argument("--scheduler", default="", metavar="ADDRESS", help="of Dask")
    parser.add_argument("--instance", default="", help="whose price counts, such as trn1.2xlarge")
    parser.add_argument("--price", default="on_demand", help="or capacity_block")
    parser.add_argument("--machines", type=int, default=1, help="how many are paid")
    parser.add_argument("--again", action="store_true", help="try items that failed once more")
    return parser.parse_args(arguments)


def main(options):
    """Run the job; returns the exit status."""
    say = partial(print, flush=True)
    try:
        buckets = tuple(int(length) for length in options.buckets.split(","))
        made = batch.Made(options.model, options.batch, buckets)
        job = batch.Job(
            options.items, options.out, made, options.shard, options.id, options.text,
            options.instance, options.price, options.machines, options.again,
        )  # fmt: skip
        if options.scheduler:
            opened = batch.connect(made, options.scheduler)
        elif options.workers:
            opened = batch.Processes(made, options.workers)
        else:
            opened = nullcontext(batch.Inline(made))
        with opened as pool:
            say(batch.run(job, pool, say))
    except (OSError, ValueError, RuntimeError, Unknown) as error:
        print(f"batch_inference.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(parse()))
