"""What lab 16 shows in its examples: a part of an incident, made as those that are judged."""

MINUTES = [0, 9, 15, 18, 19, 20, 21, 22, 23, 24, 26]
METRICS = {
    "requests_per_s": [11.0, 11.7, 11.0, 11.3, 11.0, 11.6, 11.7, 11.6, 11.1, 18.6, 18.6],
    "prompt_tokens": [1339, 1327, 1309, 1375, 1346, 1363, 1296, 1304, 1363, 1345, 1335],
    "cached_share": [0.5, 0.53, 0.52, 0.51, 0.54, 0.51, 0.54, 0.53, 0.54, 0.26, 0.27],
    "replicas": [4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3],
    "kv_blocks": [3500, 3500, 3500, 3500, 3500, 3500, 3500, 3500, 3500, 3500, 3500],
    "kv_used": [0.53, 0.56, 0.53, 0.57, 0.53, 0.85, 1.0, 1.0, 1.0, 1.0, 1.0],
    "compiles": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    "preemptions": [0, 0, 0, 0, 0, 0, 4, 9, 13, 73, 75],
    "waiting": [0, 0, 0, 0, 0, 91, 182, 273, 365, 1094, 1094],
    "ttft_p99_ms": [151, 149, 150, 154, 145, 151, 155, 8352, 15509, 14788, 59168],
}  # fmt: skip
LOG = [
    [4, "storage: disk of the metrics at 71 %"],
    [10, "replica 4: health check took 1.2 s, and passed when it was tried again"],
    [15, "deploy: router 2.4.4, no change of configuration"],
    [20, "replica 4: runtime stopped answering, removed from the router"],
    [24, "pager: ttft_p99_ms is beyond its limit"],
]
