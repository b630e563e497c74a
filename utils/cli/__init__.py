"""The command line: `course.py`, its verbs, and the environment that it makes.

- `commands`: a file for each verb; its first line is the help line
- `site`: the website, made of notebooks, facts and pages of `site/guide`
- `suite`: what the tests consist of, what each part reads and how long it takes
- `install`: the set-up, with `home` (where it lies, what it remembers), `builds` (which torch),
  `installers` (pip, uv and apt-get), `platforms` (which machine may) and `standins` (in place of
  the GPU libraries)
- `bundles`, `bom`, `wheels`: one file that installs offline, the bill of materials, and the wheels
  of the tools, from which `release` makes a release
- `places`: start-up scripts for SageMaker Studio and Studio Lab
- `cache_lab_environment`: the same for the second pair of torch and torch-xla, of lesson 04

The set-up uses the standard library only, because it runs before anything is installed. May import:
every room. Used by: `course.py`.
"""
