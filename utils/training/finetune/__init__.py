"""Fine-tuning with a stable graph: adapters, decoding with a cache of fixed shape, weekly runs in
processes of their own, and the bytes that adapters need.

`lora` adds, loads and merges adapters; `decoding` generates; `weekly` trains one and counts graphs;
`arithmetic` is pure and needs no torch.
"""
