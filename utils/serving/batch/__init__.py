"""Batch inference that loses nothing: a table of items in, exactly one result for each out.

    from utils.serving import batch
    made = batch.Made("letters", batch=16, buckets=(32, 64, 128))
    print(batch.run(batch.Job("items.csv", "out", made), batch.Inline(made), say=print))

`table` reads items and sets aside what is none. `job` cuts them into shards of one bucket each and
has them computed; a shard is written whole once all its items are done, so a run that is killed
goes on with the same call. `pools` compute: this process, several, or the workers of a Dask
scheduler. `places` are folders, buckets of S3 and what fsspec opens. `models` holds the course's
model and loads others. `overnight` gives the cost model's overnight scenario its throughput.
"""

from utils.serving.batch.job import Job, Report, run
from utils.serving.batch.pools import Inline, Made, Processes, connect
from utils.serving.batch.table import Item, Table
