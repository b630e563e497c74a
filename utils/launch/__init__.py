"""Running on Trainium: a plan that costs nothing, and a start that ends what it began.

Pure, without boto3 and network: `plans` puts a plan together from `known` (what launch.yaml says),
`cost`, `requests` (the calls, and the script that ends an instance), `policy` (permissions),
`guides` and `clusters` (steps and ends), with the names and tags of `names`; `words` prints it and
`review` looks for mistakes in it.

Talking to AWS, and only when asked to: `aws.session` (calls, errors in plain words),
`aws.preflight` (what must hold before a start), `aws.starting` (start, watch, end; `aws.signals`),
`aws.things` (what runs, by its tags), `aws.stopping` (end it) and `aws.ledger` (the record here).

May import: facts, course, cost. Used by: cli, labs, lesson 15.
"""

from utils.launch.plans import Plan, plan
from utils.launch.review import review

__all__ = ["Plan", "plan", "review"]
