"""The rules of which exercise 6 of lab 09 asks, by the names that an answer gives them."""

RULES = {
    "partitions": "a tile has at most 128 partitions",
    "columns": "a product has at most 512 columns of the moving operand",
    "contraction": "both operands of a product have K on the partitions",
    "bank": "a product lies inside one bank of PSUM",
    "dma-psum": "a DMA does not reach PSUM",
    "hbm": "engines do not compute on HBM",
    "two-psum": "of two inputs of the Vector Engine at most one is in PSUM",
    "broadcast": "tensor_tensor does not broadcast",
    "start": "an access begins at partition 0, 32, 64 or 96",
    "bf16-psum": "PSUM takes products in FP32",
}
