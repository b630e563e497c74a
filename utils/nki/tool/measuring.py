"""`nki measure`: the validation kernels on a NeuronCore of this machine, beside their estimates.

AWS's `nki` compiles a kernel when it is called, and keeps the program where NKI_ARTIFACTS_DIR says;
`nrtpy` runs that program again and again, timed on the device:
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/neuron-runtime/nrtpy/model.html
Each kernel has a process of its own. Never run on a device so far: nobody lent the project one.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from utils.course.files import replace_file
from utils.facts.tables import columns
from utils.nki import simulator
from utils.nki.simulator.arrays import Shape
from utils.nki.tool import measured
from utils.nki.tool.asked import made_arrays
from utils.nki.tool.failures import FINE, FOUND, WRONG, Refused
from utils.nki.tool.figures import encode
from utils.nki.validation import Measurement, measurements, recorded, select

DEVICES = "/dev"
PRODUCT = Path("/sys/devices/virtual/dmi/id/product_name")
WARM_UP, RUNS = 5, 20
LIMIT_S = 1800
SECONDS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}
ROOT = Path(__file__).parents[3]


def add(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("--read", type=Path, metavar="RECORD", help="show a record, run nothing")
    parser.add_argument("--row", help="only this measurement, ladder or kernel")
    parser.add_argument("--target", default="trn2", help="the chip of this machine; default: trn2")
    parser.add_argument("--to", type=Path, default=Path("nki-measured.json"), help="the record")


def missing(folder: str = DEVICES) -> str:
    """Why nothing can be measured here; "" if a NeuronCore and AWS's packages are there."""
    if not any(Path(folder).glob("neuron[0-9]*")):
        return f"this machine has no NeuronCore (no {folder}/neuron0); nothing was measured"
    if simulator.use().endswith(simulator.OURS):
        return "AWS's package nki is not installed, which compiles for the NeuronCore"
    try:
        importlib.metadata.version("nrtpy")
    except importlib.metadata.PackageNotFoundError:
        return "AWS's package nrtpy is not installed, which runs and times compiled kernels"
    return ""


def versions() -> dict[str, str]:
    """The versions of AWS's packages that are installed."""
    results = {}
    for name in measured.PACKAGES:
        try:
            results[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return results


def rows_of(row: str | None, target: str) -> list[Measurement]:
    """Measurements of whole kernels on a chip; parts of them cannot be timed from outside."""
    return [it for it in select(row, target) if it.quantity == "seconds"]


def measure(it: Measurement) -> list[float]:
    """Seconds of each run of a measurement's kernel. Raises Refused with what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
        environment = os.environ | {"NKI_ARTIFACTS_DIR": folder, "PYTHONPATH": path}
        environment.pop(simulator.CHOICE, None)
        words = [sys.executable, "-m", __name__, it.id]
        try:
            done = subprocess.run(
                words, env=environment, capture_output=True, text=True, timeout=LIMIT_S
            )
        except subprocess.TimeoutExpired:
            raise Refused(f"{it.id} had not ended after {LIMIT_S} s") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise Refused(f"{it.id}: {last}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def _child(name: str) -> None:
    """In the process of one kernel: compile by a call, then time the compiled program."""
    from nrtpy import NrtpyModel, NrtpyTensor  # late: only where a NeuronCore is

    from utils.nki.validation.estimates import kernel_of  # late: imports AWS's nki

    it = measurements()[name]
    arrays = made_arrays([Shape(*shape) for shape in it.shapes()])
    kernel_of(it.kernel)(*arrays, **it.arguments)
    (neff,) = Path(os.environ["NKI_ARTIFACTS_DIR"]).rglob("*.neff")
    model = NrtpyModel.load_from_neff(neff)
    inputs = {
        key: NrtpyTensor.from_numpy(array, name=key)
        for key, array in zip(model.input_tensors_info, arrays, strict=True)
    }
    result = model.benchmark(inputs, warmup_iter=WARM_UP, benchmark_iter=RUNS, mode="device")
    print(json.dumps([milliseconds * SECONDS["ms"] for milliseconds in result.durations_ms]))


def comparison(record: measured.Record) -> list[str]:
    """A record beside published times and estimates, as lines; made numbers are called so."""
    results = {row.id: sorted(row.seconds)[len(row.seconds) // 2] for row in record.rows}
    title = "made up, measures nothing" if record.made else "measured here"
    lines = [("measurement", title, "published", "estimate", "" if record.made else "error")]
    rows = [measurements()[name] for name in results]
    for item in recorded(rows).comparisons:
        it, unit = item.measured, SECONDS[item.measured.unit]
        here = results[it.id] / unit
        error = "" if record.made else f"{item.estimate.value / here - 1:+.1%}"
        lines.append(
            (
                it.id,
                f"{here:.4g} {it.unit}",
                f"{it.value:g} {it.unit}",
                f"{item.estimate.value:.4g} {it.unit}",
                error,
            )
        )
    return columns(lines)


def main(given: argparse.Namespace) -> int:
    """Run the command; returns its exit status: 2 where nothing can be measured."""
    if given.read:
        try:
            record = measured.read(given.read)
        except measured.BadRecord as error:
            raise Refused(str(error)) from None
        print("\n".join(comparison(record)))
        return FINE
    problem = missing()
    if problem:
        print(f"nki measure: {problem}", file=sys.stderr)
        return WRONG
    rows, failed = [], 0
    for it in rows_of(given.row, given.target):
        print(f"{it.id} ...", file=sys.stderr)
        try:
            rows.append({"id": it.id, "seconds": measure(it)})
        except Refused as error:
            failed += 1
            print(f"  {error}", file=sys.stderr)
    if not rows:
        raise Refused("no kernel could be measured; the reasons stand above")
    content = {
        "nki_measure": measured.FORMAT,
        "made": False,
        "day": datetime.date.today().isoformat(),
        "instance": PRODUCT.read_text().strip() if PRODUCT.exists() else "",
        "target": given.target,
        "packages": versions(),
        "rows": rows,
    }
    record = measured.decode(encode(content))
    replace_file(given.to, encode(record))
    print("\n".join([*comparison(record), f"written: {given.to}"]))
    return FOUND if failed else FINE


if __name__ == "__main__":
    _child(sys.argv[1])
