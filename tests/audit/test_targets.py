"""What the audit says for each target, of scripts and images, and where it follows values."""

import json
from pathlib import Path
from textwrap import dedent

import pytest

from utils.audit import RULES, audit, audit_source
from utils.audit.audit_report import table, to_json
from utils.audit.rules import LEGACY, TARGETS, legacy_rule

XLA_SCRIPT = """
import torch
import torch_xla.core.xla_model as xm
model = torch.compile(torch.nn.Linear(1, 1)).to(xm.xla_device())
for x in loader:
    model(x).sum().backward()
    xm.optimizer_step(optimizer)
    xm.mark_step()
"""


def rules(source: str, target: str = "torchneuron", name: str = "source.py") -> list[str]:
    return [item.rule for item in audit_source(dedent(source), name, target).findings]


def test_an_older_script_is_right_for_its_own_target_only() -> None:
    legacy = ["xla-import", "xla-device", "xla-optimizer-step", "xla-step"]
    assert rules(XLA_SCRIPT) == legacy
    assert rules(XLA_SCRIPT, "xla") == ["compile-default"]
    report = audit_source(XLA_SCRIPT, target="neuron-xla")
    assert [(item.rule, item.severity) for item in report.findings] == [
        ("xla-import", "note"),
        ("compile-default", "error"),
    ]
    assert rules(XLA_SCRIPT, "jax") == []


@pytest.mark.parametrize(
    ("line", "severities"),
    [
        ("model = torch.compile(model)", ["", "error", "error", ""]),
        ("torch.accelerator.synchronize()", ["", "warning", "warning", ""]),
        ("torch.nn.parallel.DistributedDataParallel(m)", ["", "error", "note", ""]),
        ("torch.distributed.fsdp.fully_shard(m)", ["", "error", "error", ""]),
        ("torch.autocast('cuda', dtype=torch.bfloat16)", ["warning", "error", "error", ""]),
        ("torch.cuda.max_memory_allocated()", ["warning", "warning", "warning", ""]),
        ("p = torch.profiler.ProfilerActivity.CUDA", ["warning", "warning", "warning", ""]),
        ("torch.cuda.amp.GradScaler()", ["note", "warning", "warning", ""]),
        ("import triton", ["error", "error", "error", "error"]),
    ],
)
def test_how_bad_a_line_is_for_each_target(line: str, severities: list[str]) -> None:
    results = []
    for target in TARGETS:
        report = audit_source(f"import torch\n{line}\n", target=target)
        results.append(report.findings[0].severity if report.findings else "")
    assert results == severities


def test_an_unknown_target_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'tpu' is none of torchneuron, neuron-xla, xla, jax"):
        audit_source("x = 1", target="tpu")
    with pytest.raises(ValueError, match="'tpu' is none of"):
        audit(tmp_path, target="tpu")


def test_the_report_says_its_target_and_what_became_of_older_software() -> None:
    report = audit_source(XLA_SCRIPT, target="neuron-xla")
    data = json.loads(to_json(report))
    assert data["target"] == "neuron-xla"
    assert "since 2.31" in data["findings"][0]["state"]
    source = "import neuronx_distributed_inference\n"
    text = table(audit_source(source, target="neuron-xla"))
    assert "ends on Trn2 and Trn3 with 2.34" in text and "XLA on Neuron: on Inf2" in text


def test_every_older_name_has_a_rule_with_state_and_advice_for_each_target() -> None:
    assert {legacy_rule(name) for name in LEGACY} <= set(RULES)
    for rule in RULES.values():
        assert set(rule.targets) <= set(TARGETS) and set(rule.advice) <= set(TARGETS)
        assert all(rule.advice_on(target) for target in TARGETS if rule.severity_on(target))
    assert all(RULES[rule].state for rule in LEGACY.values())


def test_shell_docker_and_yaml_are_read_by_line() -> None:
    shell = """\
        #!/bin/bash
        # export XLA_USE_BF16=1
        export XLA_USE_BF16=1 NCCL_DEBUG=INFO
        pip install torch-neuronx==2.1.* \\
            flash-attn
        if [ "$NEURON_EXTRACT_GRAPHS_ONLY" = "1" ]; then echo; fi
        echo $HOME; FOO=1 python train.py --tf32 True
    """
    result = audit_source(dedent(shell), "run.sh").findings
    assert [(item.line, item.rule) for item in result] == [
        (3, "cuda-env"),
        (3, "xla-env"),
        (4, "neuron-pin"),
        (5, "flash-attn"),
        (6, "xla-env"),
        (7, "backend-flags"),
    ]
    docker = "FROM nvcr.io/nvidia/pytorch:24.01-py3\nENV CUDA_HOME /usr/local/cuda\nRUN ls\n"
    assert rules(docker, name="Dockerfile.gpu") == ["gpu-image", "cuda-env"]
    kubernetes = """\
        containers:
        - image: public.ecr.aws/neuron/pytorch-inference-neuronx:2.1.2
          env:
          - name: NEURON_RT_NUM_CORES
          - name: XLA_USE_BF16
          resources: {limits: {nvidia.com/gpu: 1}}
    """
    assert rules(kubernetes, name="pod.yaml") == ["neuron-image", "xla-env", "gpu-image"]
    assert rules("on: push\njobs:\n  test:\n    runs-on: ubuntu\n", name="ci.yml") == []


def test_code_that_can_do_without_or_chooses_is_a_note() -> None:
    source = """
        try:
            import torch_xla.core.xla_model as xm
        except ImportError:
            xm = None
        def save(device, state):
            if device.type == "xla":
                xm.save(state, "a")
    """
    report = audit_source(dedent(source))
    assert [(item.rule, item.severity) for item in report.findings] == [
        ("xla-import", "note"),
        ("xla-save", "note"),
    ]


def test_branches_that_leave_another_accelerator_on_the_cpu() -> None:
    source = """
        import torch
        kind = "cuda" if "cuda" in device else "cpu"
        window = window.cuda() if x.is_cuda else window
        if x.is_cuda:
            pass
        word = "cuda" if x else "cpu"
        print("gpu" if "cuda" in device else "cpu")
    """
    assert rules(source) == [*["cuda-fallback"] * 2, *["cuda-query"] * 2]


def test_modules_that_are_built_for_cuda_and_device_names_that_are_passed_on() -> None:
    source = """
        import torch
        import alt_cuda_corr
        from mine import stream
        def run(text, device):
            return stream(text, "cuda")
        run("cuda", "cuda")
        register("cuda")
        has_device("cuda")
    """
    assert rules(source) == ["cuda-extension", "cuda-device", "cuda-device"]


def test_what_a_tokenizer_returns_is_on_the_cpu() -> None:
    alike = """
        import torch
        def check(tokenizer, text):
            one = tokenizer(text, return_tensors="pt")
            other = tokenizer(text, return_tensors="pt")
            if torch.equal(one["input_ids"], other["input_ids"]):
                raise ValueError
            for i in range(3):
                assert torch.equal(one.input_ids, other.input_ids)
    """
    assert rules(alike) == []
    moved = alike.replace('return_tensors="pt")', 'return_tensors="pt").to(device)')
    assert "tensor-control-flow" in rules(moved)


def test_values_are_followed_through_names_functions_and_loops() -> None:
    source = """
        import torch
        class Net(torch.nn.Module):
            def forward(self, x, lengths):
                keep = x > 0
                longest = lengths.max().item()
                steps = torch.arange(longest, device=x.device)
                return x[keep], x[:, :longest]
        def score(x):
            return torch.softmax(x, -1)
        def evaluate(model, loader):
            for step, (x, y) in enumerate(loader):
                out = model(x).logits
                if score(out) > 0:
                    break
                print(f"loss {score(out)}")
                rows = out.cpu().numpy()
                if step % 10 == 0:
                    print(step)
    """
    report = audit_source(dedent(source))
    assert [(item.line, item.rule) for item in report.findings] == [
        (6, "item-in-loop"),
        (7, "data-dependent-shape"),
        (8, "boolean-mask"),
        (8, "data-dependent-shape"),
        (14, "tensor-control-flow"),
        (16, "item-in-loop"),
        (17, "item-in-loop"),
    ]


def test_masks_by_name_are_left_alone_where_arrays_are_about() -> None:
    masked = "def f(x, mask):\n    return x[mask]\n"
    assert rules("import torch\n" + masked) == ["boolean-mask"]
    assert rules("import torch\nimport numpy as np\n" + masked) == []
    assert rules("import torch\ndef f(x, i):\n    return x[i], x[0], x[None]\n") == []


def test_progress_is_told_for_each_file(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"m{number}.py").write_text("x = 1\n")
    messages: list[tuple[int, int]] = []
    audit(tmp_path, progress=lambda done, count: messages.append((done, count)))
    assert messages == [(1, 3), (2, 3), (3, 3)]


SCRIPTS = [
    ("a.sbatch", "#SBATCH --gres=gpu:a100:4", "gpu-image"),
    ("a.sbatch", "#SBATCH --gpus-per-node=8", "gpu-image"),
    ("a.sh", "count=$(nvidia-smi -L | wc -l)", "gpu-image"),
    ("a.sh", "export PATH=/usr/local/cuda/bin:$PATH", "cuda-env"),
    ("a.sh", "module load python cuda/12.1", "cuda-build"),
    ("a.sh", "uv run --group cuda train.py", "cuda-build"),
    ("a.sh", "deepspeed --num_gpus 8 train.py", "deepspeed"),
    ("a.sh", "python train.py --load_in_4bit True", "bitsandbytes"),
    ("a.sh", "python train.py trainer.device=cuda:0", "cuda-device"),
    ("a.yaml", "  device: 'cuda:1'", "cuda-device"),
    ("a.yaml", "dist_backend: nccl", "nccl"),
    ("a.yaml", "pin_memory: true", "pinned-loader"),
    ("a.yaml", "accelerator: gpu", "gpu-trainer"),
    ("cog.yaml", "  gpu: true", "gpu-image"),
    ("docker-compose.yml", "              driver: nvidia", "gpu-image"),
    ("Makefile", "\tnvcc -c kernel.cu", "gpu-image"),
    ("CMakeLists.txt", "enable_language(CUDA)", "cuda-extension"),
    ("ds_config.json", '  "zero_optimization": {', "deepspeed"),
    ("a.sh", "# nvidia-smi", ""),
    ("a.sh", "echo gpus per node: 8", ""),
    ("a.yaml", "deepspeed: null", ""),
    ("a.yaml", "note: builds without nvcc, or nvidia-smi", ""),
    ("a.yaml", "device: cpu", ""),
    ("a.yaml", "accelerator: auto", ""),
]


@pytest.mark.parametrize(("name", "line", "rule"), SCRIPTS)
def test_what_scripts_settings_and_build_files_ask_of_cuda(name: str, line: str, rule: str) -> None:
    assert [item.rule for item in audit_source(line, name).findings] == [rule] * bool(rule)


def test_a_folder_of_the_project_is_no_package_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "awq").mkdir()
    (tmp_path / "awq" / "quantize.py").write_text("import torch\n")
    (tmp_path / "run.py").write_text("import torch\nfrom awq.quantize import pack\nimport cupy\n")
    assert [item.rule for item in audit(tmp_path).findings] == ["cuda-package"]


def test_source_of_python_2_is_read_too() -> None:
    old = "import torch\nprint 'a', 1\nx.cuda(async=True)\nexcept_ = 1\n"
    assert [(item.rule, item.line) for item in audit_source(old).findings] == [("cuda-move", 3)]


def test_names_of_a_projects_own_that_say_what_they_need() -> None:
    source = """
        import torch
        from accelerate import utils
        from exllamav3 import Cache, Model
        from sagemaker.huggingface import HuggingFaceModel
        from torch.nn.attention import SDPBackend
        from transformers.utils import is_torch_bf16_gpu_available
        from vllm import _custom_ops as ops

        cache = Cache(100)
        model = Model.from_config("a")
        model.load(cache)
        ops.scaled_int8_quant(x)
        kinds = [SDPBackend.MATH]
        scaler = utils.GradScalerKwargs(backoff_factor=0.5)
        config.enable_cuda_graph = True
        params = {"attn_mode": "flash_attn_nc"}
        encoder = Encoder("a", torchscript=True)
        model, optimizer = torch.load(file)
        serve('{"kv_connector": "PyNcclConnector"}')
        HuggingFaceModel(pytorch_version="1.13.1").deploy(1, "ml.inf2.xlarge")
        if is_torch_bf16_gpu_available() and platform.is_cuda():
            pass
    """
    report = audit_source(dedent(source))
    assert [(item.line, item.rule) for item in report.findings] == [
        (4, "cuda-package"),
        (6, "attention-backend"),
        (7, "cuda-query"),
        (8, "cpp-extension"),
        (10, "cuda-package"),
        (11, "cuda-package"),
        (12, "cuda-package"),
        (13, "cpp-extension"),
        (14, "attention-backend"),
        (15, "grad-scaler"),
        (16, "cuda-api"),
        (17, "flash-attn"),
        (18, "torchscript"),
        (19, "load-location"),
        (20, "nccl"),
        (21, "neuron-image"),
        (22, "cuda-query"),
    ]
    script = """vllm serve --kv-transfer-config '{"kv_connector":"PyNcclConnector"}'"""
    assert [item.rule for item in audit_source(script, "serve.sh").findings] == ["nccl"]


def test_caches_that_grow_and_masks_that_are_inverted() -> None:
    source = """
        import torch
        from transformers import DynamicCache

        class Attention(torch.nn.Module):
            def forward(self, keys, values, past_key_value, acceptance, logits):
                keys, values = past_key_value.update(keys, values, self.layer, {})
                logits[~acceptance] = -1e9
                return keys

        cache = DynamicCache()
    """
    assert rules(source) == ["growing-cat", "boolean-mask", "growing-cat"]


def test_what_says_by_its_words_that_it_is_for_gpus_or_tpus() -> None:
    source = """
        import sys
        import ray
        import torch
        from metaflow import nvcf
        from torch.utils.data import DataLoader

        use_cuda = torch.cuda.is_available()
        loader = DataLoader(data, pin_memory=use_cuda)
        def product(v, z):
            return cauchy_mult(v, z, backend="GPU")
        def seconds(start: torch.cuda.Event) -> float:
            return start.elapsed()
        xla = "torch_xla" in sys.modules
        run(["python", "train.py", "--deepspeed"])
        @ray.remote(resources={"TPU": 4})
        def work():
            pass
        extension = CUDAExtension("a", ["a.cu"], extra_compile_args={"nvcc": ["-O2"]})
        if torch.cuda.is_available():
            torch.backends.cudnn.benchmark = True
    """
    report = audit_source(dedent(source))
    assert [(item.line, item.rule) for item in report.findings] == [
        (5, "gpu-image"),
        (8, "cuda-query"),
        (9, "pinned-loader"),
        (11, "cuda-device"),
        (12, "cuda-api"),
        (14, "xla-import"),
        (15, "deepspeed"),
        (16, "xla-device"),
        (19, "cuda-extension"),
        (20, "cuda-query"),
        (21, "backend-flags"),
    ]
    yaml = 'backend: "xla"\nacceleratorType: v4-8\nresources: {"TPU": 4}\n'
    found = [(item.line, item.rule) for item in audit_source(yaml, "run.yaml").findings]
    assert found == [(1, "xla-process-group"), (2, "xla-device"), (3, "xla-device")]


def test_reads_by_meters_places_in_a_sequence_and_parts_of_complex_numbers() -> None:
    source = """
        import torch

        class Model(torch.nn.Module):
            def forward(self, x, cache):
                offset = cache.shape[1] if cache is not None else 0
                x = x + self.positions[offset : offset + x.shape[-1]]
                z = torch.conj(x.conj())
                return x.imag

        for x, y in loader:
            loss = model(x, y)
            loss.backward()
            meter_loss.add(loss.data)
    """
    assert rules(source) == ["python-number", *["complex-numbers"] * 2, "item-in-loop"]


def test_sizes_of_requests_libraries_of_cuda_and_machines() -> None:
    source = """
        import torch
        import torch.backends.cudnn as cudnn
        from torch.utils.cpp_extension import CUDAExtension

        extension = CUDAExtension
        version = [int(part) for part in torch.__version__.split(".")[:2]]
        settings = {"gpus_per_node": 8, "gres": None}
        def generate(prompts, tokens, device):
            longest = max(len(prompt) for prompt in prompts)
            cache = torch.zeros((len(prompts), longest + tokens), device=device)
            min_prompt_len = batch["min_prompt_len"]
            return cache, torch.zeros(8, device=device), torch.ones(min_prompt_len, device=device)
    """
    assert [(item.line, item.rule) for item in audit_source(dedent(source)).findings] == [
        (3, "backend-flags"),
        (4, "cuda-extension"),
        (6, "cuda-extension"),
        (8, "gpu-image"),
        (11, "data-dependent-shape"),
        (13, "input-length"),
    ]
    conda = "channels:\n  - nvidia\ndependencies:\n  - libcublas=11.11\n  - libcurl=8\n"
    found = [(item.line, item.rule) for item in audit_source(conda, "environment.yml").findings]
    assert found == [(2, "cuda-build"), (4, "cuda-build")]
    stack = "InstanceType:\n  Default: p4d.24xlarge\nmodule: transformers_neuronx\n"
    found = [(item.line, item.rule) for item in audit_source(stack, "stack.yaml").findings]
    assert found == [(2, "gpu-image"), (3, "transformers-neuronx")]
