"""The course's shared library; importing it does nothing, and importing one module only what it
needs."""
