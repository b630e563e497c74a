"""What Prometheus reads: the engine's counts, its queue and blocks, graphs, times of answers."""

from collections.abc import Iterator
from dataclasses import fields

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from utils.serving.endpoint.driver import Driver

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics(Collector):
    """responses: by HTTP status. tokens: of prompts and of answers. first_token, next_token:
    seconds of answers, on this machine.
    """

    def __init__(self, driver: Driver) -> None:
        self.registry, self._driver = (own := CollectorRegistry()), driver
        self.responses = Counter(
            "course_responses", "Responses by status", ["status"], registry=own
        )
        self.tokens = Counter(
            "course_tokens", "Tokens of prompts and answers", ["of"], registry=own
        )
        self.first_token, self.next_token = (
            Histogram(f"course_{name}_token_seconds", text, buckets=_SECONDS, registry=own)
            for name, text in (("first", "From a request to its first token"),
                               ("next", "From a token to the next"))
        )  # fmt: skip
        own.register(self)

    def describe(self) -> list[Metric]:
        """Nothing beforehand: there is no engine yet when this is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The engine's own counts, read when they are asked for."""
        served = self._driver.served
        counts, scheduler = served.engine.counts, served.engine.scheduler
        for field in fields(counts):
            name = f"course_engine_{field.name}"
            text = f"See utils.serving.engine.Counts: {field.name.replace('_', ' ')}"
            yield CounterMetricFamily(name, text, value=getattr(counts, field.name))
        graphs = CounterMetricFamily("course_graphs", "Graphs compiled", labels=["when"])
        graphs.add_metric(["start"], served.graphs)
        graphs.add_metric(["later"], served.later())
        yield graphs
        gauges = {
            "course_running": ("Requests in slots", len(scheduler.running)),
            "course_waiting": ("Requests that wait for a slot", len(scheduler.waiting)),
            "course_blocks": ("Blocks of the cache", scheduler.pool.blocks - 1),
            "course_blocks_free": ("Blocks of the cache that nobody uses", scheduler.pool.free),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(name, text, value=value)
