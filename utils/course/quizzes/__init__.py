"""The questions of each quiz, one module per notebook: `lesson03.py`, `lab03.py`."""
