"""Running on Trainium: a plan that costs nothing, and a start that ends what it began.

Pure, without boto3 and network: `launch_plans` fills an order into `places.yaml` and `templates/`,
with what `known` says of places, images, quotas and prices and with the names and tags of `names`;
`review` looks for mistakes in a plan.

Talking to AWS, and only when asked to: `aws.aws_session` (calls, errors in plain words),
`aws.preflight` (what must hold before a start), `aws.running` (what runs, by its tags, and its
end), `aws.starting` (start, watch, end) and `aws.run_record` (the record here).

May import: facts, course, cost. Used by: cli, labs, lesson 15.
"""

from utils.launch.launch_plans import Order, Plan, plan, plan_order
from utils.launch.review import review
