"""Inputs as the exercises of lab 01 get them, to look at in the notebook."""

from utils.facts import figure
from utils.labs.lab01.sheets import RELATED, offer, sheet, table_of

SHEET = sheet("trainium2")
GEMMS = [
    {"m": 1024, "k": 2048, "n": 512, "dtype": "bf16", "on": "core"},
    {"m": 4, "k": 2048, "n": 3072, "dtype": "fp8", "on": "chip"},
]
JOB = {
    "parameters": 1.5e9,
    "recipe": "mixed",
    "dtypes": {"weights": "bf16", "gradients": "bf16", "master": "fp32", "moments": "fp32"},
    "cores": 2 * SHEET["cores"],
    "cores_per_chip": SHEET["cores"],
    "hbm_gib_per_chip": figure("trainium2.hbm.capacity").to("GiB"),
    "tensor_parallel": 2,
    "activation_gib": 1.5,
}
TABLE = table_of("trn2.48xlarge")
RELATIONS = list(RELATED.values())
NEED = {
    "parameters": 2e10,
    "bytes_per_parameter": 16,
    "activation_gib": 40.0,
    "network_gb_per_s": 90,
    "market": "on_demand",
}
OFFERS = [offer("trn1.32xlarge"), offer("trn2.48xlarge")]
FABRIC = {
    "kind": "torus",
    "sizes": [4, 4],
    "link_gb_per_s": figure("trainium2.link.bandwidth_intra_instance").to("GB/s"),
    "latency_us": 2.5,
}
