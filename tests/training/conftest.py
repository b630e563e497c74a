"""Settings of this folder's tests."""

import cloudpickle

import tests.training

# What a test hands to a process of its own goes there as code: by name, the process would have to
# import the whole module of the test, and all that this imports.
cloudpickle.register_pickle_by_value(tests.training)
