"""Grade a folder of submissions.

inbox finds them, pour puts their answers into the released lab, batch runs each in a sandbox and
marking judges what was observed; gradebook and report write it down.

What holds against a hostile submission: hidden cases are drawn and judged outside, by a private
seed; a sandbox sees no judge, no solution, no other submission, no network; its memory, processes,
files, output, time and processors are limited; each exercise runs in a process of its own; nothing
that a submission says is trusted to have a form.

What does not hold: an answer is observed in the process that it runs in. The course's own code is
put back before a function is observed, but a learner who is set on it can still forge counts from
within that function. An answer also sees the inputs that it is called with, and can hand a little
of them out through the numbers in its report; the next grading should therefore have a new seed.
A sandbox shares the kernel of the machine: it is no virtual machine, and what the kernel itself
holds for it (names of files, pipes) is not counted as its memory.
"""
