"""Small sources for the audit. What is to be found stands behind its line: `#! rule`.

CASES has findings of each rule; ALIKE has what looks like one and is none: nothing is found there.
"""

CASES = {
    "cuda-move": """
        import torch
        from torch import nn
        model = nn.Linear(2, 2).cuda()  #! cuda-move
        x = torch.ones(2)
        x = x.cuda(non_blocking=True)  #! cuda-move
        y, z = x.cuda(0), x.cuda(device=1)  #! cuda-move cuda-move cuda-device
        pairs = [each.cuda() for each in (x, y)]  #! cuda-move
        loss = nn.Sequential(
            nn.Linear(2, 2),
        ).cuda()  #! cuda-move
        if y is not None:
            y.detach().cuda()  #! cuda-move
        class Net(nn.Module):
            def forward(self, x):
                return self.head(x.cuda()).cuda()  #! cuda-move cuda-move
    """,
    "cuda-device": """
        import argparse
        import os
        import torch
        DEVICE = "cuda"  #! cuda-device
        WHERE = "cuda:0"  #! cuda-device
        rank = 0
        x = torch.ones(2, device="cuda")  #! cuda-device
        x = x.to("cuda:1", non_blocking=True)  #! cuda-device
        x.to(WHERE), x.to(0)  #! cuda-device
        torch.device(f"cuda:{rank}"), torch.device(f"cuda")  #! cuda-device cuda-device
        torch.device("cuda:" + str(rank))  #! cuda-device
        torch.device("cuda:{}".format(rank))  #! cuda-device
        torch.device("cuda", rank), torch.device(type="cuda")  #! cuda-device cuda-device
        torch.load("a.pt", map_location="cuda")  #! cuda-device
        torch.load("a.pt", "cuda")  #! cuda-device
        torch.load("a.pt", map_location={"cuda:0": "cuda:%d" % rank})  #! cuda-device
        torch.set_default_device("cuda")  #! cuda-device
        torch.Generator(device="cuda")  #! cuda-device
        torch.hub.load("repository", "model", f"cuda:{rank}")  #! cuda-device
        parser = argparse.ArgumentParser()
        parser.add_argument("-d", "--device", default="cuda", help="cuda or cpu")  #! cuda-device
        settings = {"device": "cuda", "name": "cuda"}  #! cuda-device
        settings["device"] = "cuda"  #! cuda-device
        first = second = "cuda"  #! cuda-device
        x.to(second)
        match settings["device"]:
            case "cuda":
                x.to("cuda").cuda()
            case "gpu":
                x.to("cuda")  #! cuda-device
        devices = ["cuda:0", "cuda:1"]  #! cuda-device cuda-device
        start = ("cuda:0",)  #! cuda-device
        device, steps = "cuda", 3  #! cuda-device
        chosen = os.environ.get("DEVICE", "cuda")  #! cuda-device
        def train(model, device="cuda", steps=10):  #! cuda-device
            place = "cuda" if steps > 1 else "cpu"  #! cuda-device
            model.to(place)
        class Trainer:
            device: str = "cuda"  #! cuda-device
            where_device: str = field(default="cuda")  #! cuda-device
            def __init__(self, device=None):
                self.device = device or "cuda"  #! cuda-device
    """,
    "cuda-fallback": """
        import torch
        from torch import cuda
        device = "cuda" if torch.cuda.is_available() else "cpu"  #! cuda-fallback
        device = torch.device("cuda:0" if cuda.is_available() else "cpu")  #! cuda-fallback
        use_cuda = torch.cuda.is_available()  #! cuda-fallback
        x = torch.ones(2)
        if use_cuda:
            x = x.cuda()
            torch.cuda.synchronize()
        place = torch.device("cuda" if use_cuda else "cpu")
        if not torch.cuda.is_available():  #! cuda-fallback
            device = torch.device("cpu")
        else:
            device = torch.device("cuda")
        def where():
            if not torch.cuda.is_available():  #! cuda-fallback
                return "cpu"
            return torch.device("cuda")
        here = torch.cuda.current_device() if torch.cuda.is_available() else "cpu"  #! cuda-fallback
    """,
    "cuda-required": """
        import sys
        import torch
        assert torch.cuda.is_available(), "needs a GPU"  #! cuda-required
        if not torch.cuda.is_available():  #! cuda-required
            raise RuntimeError("needs a GPU")
        if torch.cuda.is_available():  #! cuda-required
            device = torch.device("cuda")  #! cuda-device
        else:
            sys.exit(1)
    """,
    "cuda-api": """
        import torch
        import torch.cuda as tc
        from torch import cuda
        from torch.cuda import synchronize, Event as E
        torch.cuda.synchronize()  #! cuda-api
        tc.set_device(0)  #! cuda-api
        cuda.current_device()  #! cuda-api
        synchronize()  #! cuda-api
        getattr(torch, "cuda").synchronize()  #! cuda-api
        start = E(enable_timing=True)  #! cuda-api
        with torch.cuda.stream(torch.cuda.Stream()):  #! cuda-api cuda-api
            pass
        graph = torch.cuda.CUDAGraph()  #! cuda-api
        with torch.cuda.device(0):  #! cuda-api
            name = torch.cuda.get_device_name()  #! cuda-api
    """,
    "cuda-tensor-type": """
        import torch
        x = torch.cuda.FloatTensor([1.0])  #! cuda-tensor-type
        torch.set_default_tensor_type("torch.cuda.FloatTensor")  #! cuda-tensor-type
        torch.set_default_tensor_type(torch.cuda.HalfTensor)  #! cuda-tensor-type
        y = torch.ones(1).type(torch.cuda.LongTensor)  #! cuda-tensor-type
        z = y.type("torch.cuda.FloatTensor")  #! cuda-tensor-type
    """,
    "cuda-memory": """
        import pytest
        torch = pytest.importorskip("torch")
        print(torch.cuda.max_memory_allocated() / 2**20)  #! cuda-memory
        torch.cuda.empty_cache()  #! cuda-memory
        torch.cuda.memory.memory_reserved()  #! cuda-memory
    """,
    "cuda-query": """
        import torch
        world = torch.cuda.device_count()  #! cuda-query
        dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16  #! cuda-query
        if torch.cuda.is_available() and torch.cuda.is_bf16_supported():  #! cuda-query
            dtype = torch.bfloat16
    """,
    "cuda-seed": """
        import torch
        torch.cuda.manual_seed(0)  #! cuda-seed
        torch.cuda.manual_seed_all(0)  #! cuda-seed
        torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())  #! cuda-seed cuda-seed
    """,
    "cuda-nvtx": """
        import torch
        torch.cuda.nvtx.range_push("step")  #! cuda-nvtx
    """,
    "cuda-env": """
        import os
        import torch
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"  #! cuda-env
        os.environ.setdefault("NCCL_DEBUG", "INFO")  #! cuda-env
    """,
    "cuda-autocast": """
        import torch
        from torch.cuda.amp import autocast as mixed
        from torch.amp import autocast
        with torch.autocast("cuda", dtype=torch.float16):  #! cuda-autocast
            pass
        with torch.autocast(device_type="cuda"), autocast("cuda"):  #! cuda-autocast cuda-autocast
            pass
        with torch.cuda.amp.autocast(), mixed():  #! cuda-autocast cuda-autocast
            pass
        from torch.cuda.amp import *  #! cuda-autocast
    """,
    "grad-scaler": """
        import torch
        from torch.cuda.amp import GradScaler as GS
        from torch.cuda.amp import GradScaler  #! grad-scaler
        a = torch.cuda.amp.GradScaler(enabled=True)  #! grad-scaler
        b = GS()  #! grad-scaler
        c = torch.amp.GradScaler("cuda")  #! grad-scaler
        d = torch.amp.GradScaler()  #! grad-scaler
    """,
    "backend-flags": """
        import torch
        import torch.backends.cudnn as cudnn
        cudnn.benchmark = True  #! backend-flags
        torch.backends.cuda.matmul.allow_tf32 = True  #! backend-flags
    """,
    "attention-backend": """
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):  #! attention-backend
            pass
        with torch.backends.cuda.sdp_kernel(enable_flash=True):  #! attention-backend
            pass
    """,
    "fused-optimizer": """
        import torch
        from torch.optim import AdamW
        model = torch.nn.Linear(1, 1)
        opt = AdamW(model.parameters(), lr=1e-3, fused=True)  #! fused-optimizer
    """,
    "pin-memory": """
        import torch
        x = torch.ones(2).pin_memory()  #! pin-memory
    """,
    "pinned-loader": """
        from torch.utils.data import DataLoader
        loader = DataLoader([1], pin_memory=True)  #! pinned-loader
        options = {"pin_memory": True}  #! pinned-loader
        kwargs = {"pin_memory": True} if options else {}  #! pinned-loader
        def make(data, pin_memory=True):  #! pinned-loader
            return DataLoader(data, pin_memory=pin_memory)
    """,
    "nccl": """
        import argparse
        import torch.distributed as dist
        dist.init_process_group("nccl")  #! nccl
        dist.init_process_group(backend="cpu:gloo,cuda:nccl")  #! nccl
        backend = "nccl"  #! nccl
        dist.init_process_group(backend)
        kind = dist.new_group(backend="nccl" if backend else "gloo")  #! nccl
        argparse.ArgumentParser().add_argument("--dist-backend", default="nccl")  #! nccl
        import torch
        backend = "gloo" if not torch.cuda.is_available() else "nccl"  #! nccl
    """,
    "data-parallel": """
        import torch
        import torch.nn as nn
        model = nn.DataParallel(nn.Linear(1, 1))  #! data-parallel
    """,
    "ddp-device-ids": """
        from torch.nn.parallel import DistributedDataParallel as DDP
        def wrap(model, rank):
            return DDP(model, device_ids=[rank])  #! ddp-device-ids
        import torch
        if torch.cuda.is_available():
            model = DDP(torch.nn.Linear(1, 1), device_ids=[0])  #! ddp-device-ids
    """,
    "gpu-trainer": """
        import lightning as L
        trainer = L.Trainer(accelerator="gpu", devices=2)  #! gpu-trainer
        older = L.Trainer(gpus=1)  #! gpu-trainer
        import torch
        L.Trainer(accelerator="gpu" if torch.cuda.is_available() else "cpu")  #! cuda-fallback
    """,
    "compile-backend": """
        import torch
        model = torch.compile(torch.nn.Linear(1, 1))  #! compile-backend
        faster = torch.compile(model, backend="cudagraphs")  #! compile-backend
        @torch.compile  #! compile-backend
        def step(x):
            return x
        @torch.compile(fullgraph=True)  #! compile-backend
        def other(x):
            return x
    """,
    "compile-mode": """
        import torch
        a = torch.compile(print, backend="neuron", mode="max-autotune")  #! compile-mode
        b = torch.compile(print, backend="neuron", dynamic=True)  #! compile-mode
    """,
    "cuda-extension": """
        from torch.utils.cpp_extension import BuildExtension, CUDAExtension, load, load_inline
        made = [CUDAExtension("fast", ["fast.cpp", "fast.cu"])]  #! cuda-extension
        fast = load(name="fast", sources=["fast.cpp", "fast.cu"])  #! cuda-extension
        inline = load_inline(name="a", cpp_sources="", cuda_sources="__global__")  #! cuda-extension
    """,
    "cpp-extension": """
        import torch
        from torch.utils.cpp_extension import CppExtension, load
        made = CppExtension("fast", ["fast.cpp"])  #! cpp-extension
        fast = load(name="fast", sources=["fast.cpp"])  #! cpp-extension
        torch.ops.load_library("fast.so")  #! cpp-extension
        torch.ops.fast.relu(torch.ones(2))  #! cpp-extension
    """,
    "triton": """
        import triton  #! triton
        import triton.language as tl  #! triton
        @triton.jit  #! triton
        def kernel(p):
            tl.store(p, 1.0)
    """,
    "flash-attn": """
        from flash_attn import flash_attn_func  #! flash-attn
        from transformers import AutoModel
        m = AutoModel.from_pretrained("x", attn_implementation="flash_attention_2")  #! flash-attn
    """,
    "xformers": "import xformers.ops as xops  #! xformers",
    "bitsandbytes": "import bitsandbytes as bnb  #! bitsandbytes",
    "apex": """
        try:
            from apex import amp  #! apex
        except ImportError:
            amp = None
        from apex.optimizers import FusedAdam  #! apex
    """,
    "deepspeed": """
        import tensorflow as tf
        settings = tf.HParams(device="cuda", dist_backend="nccl")  #! nccl
        import importlib
        def start():
            import deepspeed  #! deepspeed
            return deepspeed.initialize()
        again = importlib.import_module("deepspeed")  #! deepspeed
    """,
    "cuda-package": """
        import cupy as cp  #! cuda-package
        from numba import cuda  #! cuda-package
        import pynvml  #! cuda-package
    """,
    "cuda-build": """
        from setuptools import setup
        setup(
            install_requires=[
                "torch==2.1.0+cu121",  #! cuda-build
                "numpy",
            ],
            extras_require={"fast": ["flash-attn>=2"]},  #! flash-attn
        )
    """,
    "item-in-loop": """
        import torch
        def train(model, loader, loss_fn):
            total = 0.0
            for step, (x, y) in enumerate(loader):
                loss = loss_fn(model(x), y)
                loss.backward()
                total += loss.item()  #! item-in-loop
                if step % 100 == 0:
                    print(loss.item())  #! item-in-loop
                norm = float(loss)  #! item-in-loop
            for epoch in range(3):
                print(loss.item())  #! item-in-loop
                for x, y in loader:
                    print(loss_fn(x, y).item())  #! item-in-loop
            return [each.item() for each in model.parameters()]  #! item-in-loop
    """,
    "data-dependent-shape": """
        import torch
        def pick(x: torch.Tensor):
            a = torch.nonzero(x)  #! data-dependent-shape
            b = x.nonzero(as_tuple=True)  #! data-dependent-shape
            c = torch.unique(x)  #! data-dependent-shape
            d = x.masked_select(x > 0)  #! data-dependent-shape
            e = torch.where(x > 0)  #! data-dependent-shape
            return a, b, c, d, e
    """,
    "boolean-mask": """
        import torch
        import torch.nn.functional as F
        def clip(x: torch.Tensor, logits):
            a = x[x > 0]  #! boolean-mask
            mask = (x > 0) & (x < 1)
            b = x[mask]  #! boolean-mask
            c = x[:, ~mask]  #! boolean-mask
            x[x < 0] = 0.0  #! boolean-mask
            p = F.softmax(logits, -1)
            return a, b, c, p[p > 0.5]  #! boolean-mask
    """,
    "tensor-control-flow": """
        import torch
        def step(x: torch.Tensor, model):
            loss = model(x).sum()
            loss.backward()
            if loss > 10:  #! tensor-control-flow
                return None
            while x.norm() > 1:  #! tensor-control-flow
                x = x / 2
            if torch.isnan(loss).any():  #! tensor-control-flow
                raise ValueError("nan")
            assert torch.allclose(x, x)  #! tensor-control-flow
            return 0 if x.sum() == 0 else 1  #! tensor-control-flow
    """,
}

ALIKE = {
    "cuda-move": """
        import torch
        from numba.special import cuda
        class Backend:
            def cuda(self):
                return self
            def both(self):
                return self.cuda()
        class Net(torch.nn.Module):
            def cuda(self, device=None):
                return super().cuda(device)
        args = Backend()
        args.cuda
        args.cuda()
        kept = Backend()
        kept.cuda()
        "text".cuda()
        config = {"cuda": 1}
        cuda = 3
        print(cuda, config["cuda"], torch.ones(1).is_cuda)
    """,
    "cuda-device": '''
        """Runs on "cuda", or device="cuda"."""
        import argparse
        import torch
        # device = "cuda"
        def run(x, device):
            """Moves x.to("cuda:0")."""
            if device.type == "cuda" or "cuda" in str(device) or str(device).startswith("cuda:"):
                print("cuda:0 is used", device="cuda" == device)
            return x.to(device, torch.float32)
        name = "cuda"
        print(name, "cuda", f"cuda: {name}")
        argparse.ArgumentParser().add_argument("--device", default="cpu", choices=["cuda", "cpu"])
        words = ["cuda", "opencl"]
        supported_devices = ["cuda", "cpu"]
        places = {"torch.device": 0}
        torch.ones(1, device="cpu").to(torch.device("xla"))
        torch.ones(1).to("neuron")
    ''',
    "cuda-fallback": """
        import torch
        def report():
            print(torch.cuda.is_available())
            if torch.cuda.is_available():
                print("there is a GPU")
                torch.cuda.empty_cache()
            return torch.accelerator.is_available()
        device = torch.accelerator.current_accelerator() if report() else torch.device("cpu")
    """,
    "cuda-required": """
        import torch
        def check(wanted):
            if wanted and not torch.cuda.is_available():
                raise ValueError("--cuda was given, and there is none")
            assert torch.accelerator.is_available()
        def test_it(self):
            if not torch.cuda.is_available():
                raise unittest.SkipTest("needs CUDA")
            torch.cuda.synchronize()
        def test_more(self):
            if not torch.cuda.is_available():
                pytest.skip("needs CUDA")
            torch.cuda.synchronize()
    """,
    "cuda-api": """
        import unittest
        import torch
        class cuda:
            @staticmethod
            def synchronize():
                return None
        cuda.synchronize()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        ready = torch.cuda.is_available() and torch.cuda.get_device_name(0)
        def wait(device):
            if device.type != "cuda":
                return
            torch.cuda.synchronize(device)
        @unittest.skipUnless(torch.cuda.is_available(), "needs CUDA")
        def test_streams():
            torch.cuda.Stream()
        try:
            wait("cpu")
        except torch.cuda.OutOfMemoryError:
            pass
    """,
    "cuda-tensor-type": """
        import torch
        x = torch.FloatTensor([1.0]).type(torch.float32)
        kind = "torch.cuda.FloatTensor"
    """,
    "cuda-memory": """
        import torch
        print(torch.accelerator.memory.memory_allocated())
    """,
    "cuda-query": """
        import torch
        if torch.cuda.device_count() > 1:
            print(torch.cuda.device_count())
    """,
    "cuda-seed": """
        import random
        import torch
        torch.manual_seed(0)
        random.seed(0)
        if torch.cuda.is_available():
            torch.cuda.manual_seed_all(0)
    """,
    "cuda-nvtx": """
        import torch
        with torch.profiler.record_function("nvtx"):
            pass
    """,
    "cuda-env": """
        import os
        import torch
        os.environ["CUDATEXT"] = "1"
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        table = {}
        table["CUDA_VISIBLE_DEVICES"] = "0"
    """,
    "cuda-autocast": """
        import torch
        def mixed(device):
            with torch.autocast(device.type, dtype=torch.bfloat16), torch.autocast("neuron"):
                with torch.amp.autocast(device_type="cpu"):
                    pass
        def autocast(name):
            return name
        autocast("cuda")
    """,
    "grad-scaler": """
        import torch
        off = torch.cuda.amp.GradScaler(enabled=False)
        cpu = torch.amp.GradScaler("cpu")
        class GradScaler:
            pass
        own = GradScaler()
    """,
    "backend-flags": """
        import torch
        torch.backends.mkldnn.enabled = True
        if torch.backends.cudnn.enabled:
            torch.set_float32_matmul_precision("high")
        class cudnn:
            benchmark = False
        cudnn.benchmark = True
    """,
    "attention-backend": """
        import torch
        import torch.nn.functional as F
        def attend(q, k, v):
            return F.scaled_dot_product_attention(q, k, v)
    """,
    "fused-optimizer": """
        import torch
        def make(parameters, fused):
            torch.optim.SGD(parameters, lr=1.0, fused=False)
            return torch.optim.AdamW(parameters, fused=fused, foreach=True)
        def plot(fused=True):
            return fused
    """,
    "pin-memory": """
        import torch
        def use(board, x):
            board.pin_memory(3)
            return x.is_pinned()
    """,
    "pinned-loader": """
        from torch.utils.data import DataLoader
        def make(data, pin):
            return DataLoader(data, pin_memory=pin), DataLoader(data, pin_memory=False)
    """,
    "nccl": """
        import torch
        import torch.distributed as dist
        def start(backend):
            if backend == "nccl":
                print("nccl", dist.is_nccl_available())
            dist.init_process_group("gloo" if backend else backend)
        name = "nccl"
    """,
    "data-parallel": """
        from mine import DataParallel
        from torch import nn
        model = DataParallel(nn.Linear(1, 1))
    """,
    "ddp-device-ids": """
        from torch.nn.parallel import DistributedDataParallel as DDP
        def wrap(model):
            return DDP(model), DDP(model, device_ids=None, gradient_as_bucket_view=True)
    """,
    "gpu-trainer": """
        import lightning as L
        from transformers import Trainer
        trainer = L.Trainer(accelerator="auto", devices=2)
        other = Trainer(accelerator="gpu")
    """,
    "compile-backend": """
        import re
        import torch
        pattern = re.compile("cuda")
        a = torch.compile(print, backend="openxla")
        def make(model, backend):
            model.compile(optimizer="adam")
            return torch.compile(model, backend=backend), torch.compile(model, disable=True)
    """,
    "compile-mode": """
        import torch
        a = torch.compile(print, backend="neuron", mode="default", dynamic=False)
        b = open("file", mode="rb")
    """,
    "cuda-extension": """
        from setuptools import Extension
        from torch.utils.cpp_extension import BuildExtension
        from json import load
        made = [Extension("plain", ["plain.c"])]
        text = load(open("fast.cu"))
    """,
    "cpp-extension": """
        import torch
        x = torch.ops.aten.add(torch.ones(1), 1)
    """,
    "triton": """
        import numba
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            import triton
        text = "import triton"
        from .triton import jit
        from tritonclient import http
        @jit
        def kernel(p):
            return p
    """,
    "flash-attn": """
        from .flash_attn import attention
        from transformers import AutoModel
        flash_attn = attention
        m = AutoModel.from_pretrained("x", attn_implementation="sdpa")
    """,
    "xformers": "text = 'import xformers'  # import xformers",
    "bitsandbytes": "from mine.bitsandbytes import quantize",
    "apex": "from salesforce import apex",
    "deepspeed": """
        def deepspeed(config):
            return config
        deepspeed({"deepspeed": True})
    """,
    "cuda-package": """
        from numba import njit
        import cupyx_like
        cupy = None
    """,
    "cuda-build": """
        import posix
        from setuptools import setup
        posix.mknod("path", device=0)
        setup(name="cu121", install_requires=["torch==2.9.1", "triton-client"])
    """,
    "item-in-loop": """
        import numpy as np
        import torch
        class Net(torch.nn.Module):
            def __init__(self, depth):
                super().__init__()
                self.rates = [x.item() for x in torch.linspace(0, 1, depth)]
        def read(table, rows, view):
            first = torch.ones(1).item()
            for key, value in table.items():
                if key == "end":
                    print(view.item())
                    raise SystemExit(1)
                values = np.asarray(value)
                print(values.item(), np.float32(1).item(), view.item(1, 2), view.item("a"))
                n = float(len(rows)) + int(values.mean())
                start = torch.randint(0, 9, (1,)).item()
            return first + n + start, [x.item() for x in torch.linspace(0, 1, 3).sqrt()]
    """,
    "data-dependent-shape": """
        import numpy as np
        import pandas as pd
        import torch
        def pick(frame, array, x: torch.Tensor):
            labels = np.unique(array)
            names = frame["name"].unique()
            places = array.nonzero()
            both = torch.where(x > 0, x, 0)
            count = torch.count_nonzero(x)
            return labels, names, places, both, count, pd.unique(array)
    """,
    "boolean-mask": """
        import numpy as np
        import torch
        class Data(torch.utils.data.Dataset):
            def __getitem__(self, i):
                x = torch.ones(3)
                return x[x > 0]
        def pick(array, frame, x: torch.Tensor):
            a = np.asarray(array)
            b = a[a > 0], frame[frame.age > 3], frame[frame["age"] == 2]
            i = torch.argmax(x)
            scale = torch.FloatTensor(array).sum(1)
            scale = 1 / scale
            scale[scale == float("inf")] = 0
            return b, x[i], x[0], x[..., None], x[: len(array) > 3]
    """,
    "tensor-control-flow": """
        import numpy as np
        import torch
        def step(x: torch.Tensor, mask=None, train=True, best=1.0):
            if mask is not None and train and x is not mask:
                pass
            if x.shape[0] > 3 or x.dim() == 2 or x.size(0) == 1 or len(x) > 4 or x.numel():
                pass
            if x.requires_grad and x.dtype == torch.float32 and torch.is_tensor(x):
                pass
            score = np.mean([1.0, 2.0])
            while score > best:
                score -= 1
            if isinstance(x, torch.Tensor) and torch.is_floating_point(x) and x.is_cuda:
                pass
            weights = torch.tensor([0.5, 0.5])
            if weights.sum() > 1 or torch.isnan(weights).any():
                pass
            return torch.where(x > 0, x, 0)
        def test_step(x: torch.Tensor):
            assert torch.allclose(x, step(x))
    """,
}
