"""Grade a folder of submissions.

batch leads each submission through: submissions finds it and reads its files (downloads knows how
learning platforms name them), lab knows everything of the released lab, answers puts the
submission's answers into that, attempts runs them in a sandbox (sandbox and confine outside of it,
runner and child inside), marking judges what was observed. What is known of a submission is kept by
records the moment it is done; gradebook and report write it down for people, and can do so again at
any time. platforms carries points and feedback back to where a class is kept.

What holds against a hostile submission: hidden cases are drawn and judged outside, by a private
seed; a sandbox sees no judge, no solution, no other submission, no network; its memory, processes,
files, output, time and processors are limited; each exercise runs in a process of its own; nothing
that a submission says is trusted to have a form, and its report shows no text that
an answer returned, but for known words.

Some exercises can only be observed in the process of the answer: what it is called with, and what
it calls. There the sandbox sees nothing, so four parts work inside: `guard` (without it a
submission that replaces the observer has full marks), `utils.labs.forbidden` (the course's own
solutions are in the sandbox too, because labs need the modules that hold them),
`utils.labs.audit_hook` (what reaches for the observer, and copies of what is closed) and, outside,
`scan`. Points of an answer that `guard` or `audit_hook` catches are held back until an instructor
has looked at it; what `scan` finds is a remark, but for the names that lead into a counting
function, and names that are put together when a cell runs.

What does not hold:

- An answer is observed in the process that it runs in, which for some exercises is one of several
  that the sandbox starts (utils.labs.apart). `guard` puts the course's functions, their code and
  its tables back before an answer is called, and looks again after each case; an answer that undoes
  its change before it returns is not caught.
- `audit_hook` hears what Python raises an audit event for: frames, the collector, tracing, raw
  memory. There is none for `__closure__` and `__globals__`, nor where an extension module reaches
  into memory: an answer that comes to such a name by a way that `scan` does not know can forge
  what is counted in its own process.
- A copy of the course's code is known by its instructions, whatever its name, its variables and its
  docstring are called. One of which a statement was changed, or of a few instructions only, is not;
  nor is one that is typed into a cell: for that there are `similar` and a remark on published
  solutions.
- Lines of a report carry codes that an answer cannot make without finding the function that makes
  them, in a frame above it; the ways there are among what `audit_hook` hears, and a process that
  the answer has forked ends when it takes one.
- An answer sees the inputs that it is called with. It can hand some of them out in the numbers of
  its report (of seven digits each), in known words such as "list", in which criteria pass, and in
  which of its own lines raises. The next grading should therefore have a new seed.
- A report of a wrong answer keeps back the numbers that were drawn for hidden inputs, but not those
  of one or two digits, nor what is computed from inputs, such as how many values are asked for.
- Similar answers (`similar`) are what two people have in common, not who took it from whom.
- The limit on time counts seconds on the clock, not of the processor: a machine that is busy with
  other work can stop a slow answer that would end in time on an idle one. Grade such a row again.
- A sandbox shares the kernel of the machine: it is no virtual machine, and what the kernel itself
  holds for it (names of files, pipes) is not counted as its memory.
"""
