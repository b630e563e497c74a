"""The command `nki` and a plugin of pytest, for authors of kernels with or without the course.

- `__main__`: the command; a module for each subcommand: `profiling` (with `page`), `checking`,
  `comparing`, `tuning` (with `trial`, `journal`), `measuring` (with `measured`), `reference`
- `asked`: what the command line says, as kernels, shapes and arguments; `failures`: errors in words
- `figures`: what is kept of a profile; `close`: when two results are equal; `plugin`: for pytest

May import: what `utils.nki` may, and the rest of it. Used by: the wheel trn-nki.
"""
