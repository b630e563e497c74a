"""One job with DDP, FSDP2 or tensor parallelism, counted and compared with one process: lesson 07.

torchrun --nproc-per-node=4 native_training.py --parallelism fsdp
torchrun --nproc-per-node=4 native_training.py --parallelism fsdp+tp --device cpu --backend gloo
torchrun --nnodes=2 --nproc-per-node=64 --rdzv-backend=c10d --rdzv-endpoint=HOST:29500 \
    native_training.py --parallelism fsdp --device neuron --backend neuron

Rank 0 prints what all ranks report, as lines of JSON: collectives predicted and counted, and the
largest difference of outputs, gradients and updates from a process that trains alone on the CPU.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

import torch.distributed as dist

sys.path.append(str(Path(__file__).resolve().parents[2]))
from utils.training.native import job as jobs
from utils.training.native import predicted


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parallelism", choices=predicted.PARALLELISMS, required=True)
    parser.add_argument("--device", choices=("cpu", "neuron"), default="cpu")
    parser.add_argument("--backend", choices=("gloo", "neuron"), default="gloo")
    parser.add_argument("--rows", type=int, help="of the whole batch; by default 8 for each rank")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--ahead", type=int, default=0, help="blocks that FSDP2 gathers early")
    return parser.parse_args(arguments)


def main(options):
    if options.device == "neuron":
        import torch_neuronx  # noqa: F401  TorchNeuron, which registers the device
    dist.init_process_group(options.backend)
    ranks = dist.get_world_size()
    where = predicted.layout(options.parallelism, ranks)
    job = jobs.Job(
        hidden=max(64, where.model),
        rows=options.rows or 8 * ranks,
        steps=options.steps,
        ahead=options.ahead,
    )
    found = asdict(jobs.train(where, job, options.device))
    everybody = [None] * ranks
    dist.all_gather_object(everybody, found)
    if dist.get_rank() == 0:
        shapes = jobs.shapes(job)
        expected = predicted.collectives(shapes, where, job.rows, job.bucket_bytes)
        lines = [{"layout": str(where), "predicted": expected}]
        for each in everybody:
            off = {name: f"{value:.0e}" for name, value in each["off"].items()}
            lines.append({"rank": each["rank"], "counted": each["last"], "off": off})
        sys.stdout.write("\n" + "".join(json.dumps(line) + "\n" for line in lines))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(parse())
