"""The GpSimd Engine: index patterns, masks, gathers."""
