"""Fine-tune a classifier on one NVIDIA GPU: the script that exercise 2 of lab 02 ports.

It does its work on a GPU and raises without one. As a program: python train_cuda.py weights.pt
"""

import sys

import torch
from torch import Tensor, nn
from torch.nn import functional as F

MAX_NORM = 0.5
Batches = list[tuple[Tensor, Tensor]]


def train(model: nn.Module, batches: Batches, lr: float, checkpoint: str) -> list[float]:
    """Train on each batch, from the weights in the file `checkpoint`; returns the losses."""
    torch.cuda.set_device(0)
    torch.cuda.manual_seed_all(0)
    torch.backends.cuda.matmul.allow_tf32 = True

    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, fused=True)
    model.load_state_dict(torch.load(checkpoint, map_location="cuda"))
    model.cuda()
    scaler = torch.amp.GradScaler("cuda")  # keeps small float16 gradients from becoming zero

    losses = []
    for x, y in batches:
        x = x.pin_memory().cuda(non_blocking=True)
        y = y.pin_memory().cuda(non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())

    torch.cuda.synchronize()
    print(f"peak memory: {torch.cuda.max_memory_allocated() / 2**20:.1f} MiB")
    return losses


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    batches = [(torch.randn(16, 6), torch.randint(0, 3, (16,))) for _ in range(100)]
    for number, loss in enumerate(train(model, batches, lr=0.2, checkpoint=sys.argv[1])):
        print(number, f"{loss:.4f}")


if __name__ == "__main__":
    main()
