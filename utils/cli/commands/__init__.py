"""The commands of course.py, one module each: `main(arguments)` returns the exit status."""
