"""The command line: `course.py`, its verbs, and the environment that it makes.

- `commands`: a file for each verb; its first line is the help line
- `suite`: what the tests consist of, what each part reads and how long it takes
- `install`, `home`, `builds`, `programs`, `platforms`, `standins`, `elf`: the set-up

The set-up uses the standard library only, because it runs before anything is installed. May import:
every room. Used by: `course.py`.
"""
