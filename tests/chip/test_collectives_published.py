"""The model of collectives beside what was measured, and what the articles say of the wires."""

import datetime
import statistics

import pytest

from utils.chip.collectives import KINDS, fabric, lines, published, seconds
from utils.chip.collectives.published import compare, error, quality, series
from utils.facts import claim, figure
from utils.facts.records import content

EVERY = [*series().values()]


def test_there_are_enough_points_of_enough_sources():
    assert sum(len(item.points) for item in EVERY) >= 90
    assert len({item.source for item in EVERY}) >= 7
    on_trainium = [item for item in EVERY if item.name.startswith("trn")]
    assert sum(len(item.points) for item in on_trainium) >= 60


def test_every_source_is_used_and_dated():
    sources = content("collectives.yaml")["sources"]
    assert set(sources) == {item.source for item in EVERY}
    for source in sources.values():
        assert source["url"].startswith("https://")
        assert datetime.date(2024, 1, 1) < source["date"] <= datetime.date(2026, 11, 21)


@pytest.mark.parametrize("element", EVERY, ids=lambda item: item.name)
def test_a_series_says_what_it_is(element):
    assert element.status in published.STATUSES
    assert element.kind in KINDS
    assert element.where
    assert len(element.members) == len(element.fabric.tiers)
    sizes = [size for size, _ in element.points]
    assert sizes == sorted(set(sizes))
    times = [time for _, time in element.points]
    # A table with a shorter time for a larger message would be a mistake of copying.
    assert all(b > 0.95 * a for a, b in zip(times, times[1:], strict=False))


def test_published_numbers_are_turned_into_seconds():
    points = dict(series()["p5-two-nodes-all-reduce"].points)
    assert points[1073741824] == pytest.approx(1073741824 / 232.08e9)
    points = dict(series()["h200-node-all-reduce"].points)
    assert points[1073741824] == pytest.approx(1.75 * 1073741824 / 464e9)


def test_large_messages_on_trainium_take_about_as_long_as_the_model_says():
    """One number is taken from Trainium1, the rate inside a chip; none from Trainium2."""
    large = [
        item
        for item in compare()
        if item.series.name.startswith("trn") and item.size_bytes >= 2**25
    ]
    assert not any(item.series.calibrates for item in large)
    result = quality(item.ratio_started for item in large)
    assert result.points >= 25
    assert 0.85 < result.ratio < 1.05
    assert result.median < 1.2
    assert result.worst < 3
    alone = [item for item in large if item.series.members[1:] == (1, 1)]
    assert quality(item.ratio for item in alone).median < 1.15


def test_small_messages_take_what_the_software_takes_to_start():
    """The model does not know it: it is off by a factor of hundreds, and right once it is added."""
    small = [
        item
        for item in compare()
        if item.series.name.startswith("trn2-chip") and item.size_bytes <= 2**22
    ]
    assert quality(item.ratio for item in small).worst > 100
    assert quality(e.ratio_started for e in small if e.started_s is not None).worst < 1.25


def test_what_calibrates_the_model_is_named_and_not_compared():
    (chip,) = (item for item in EVERY if item.calibrates)
    size, measured = chip.points[-1]
    rate = figure("trainium1.collectives.chip_rate").to("B/s")
    assert size / measured == pytest.approx(rate, rel=1e-3)
    assert chip.kind == "all-reduce" and chip.ranks == 2, "their bus bandwidth is size over time"
    assert not any(item.series.calibrates for item in compare())


def test_the_model_is_near_what_gpus_on_efa_do():
    large = [
        item.ratio
        for item in compare()
        if item.series.name.startswith("p5-") and item.size_bytes >= 2**30
    ]
    result = quality(large)
    assert result.points >= 12
    assert result.median < 1.25
    assert result.worst < 1.3
    assert 0.8 < result.ratio < 1.25


def test_the_order_of_sizes_and_of_fabrics_is_that_of_the_measurements():
    """Twice as large, twice as long; and more nodes take longer: the model ranks them alike."""
    for item in EVERY:
        model = [
            seconds(item.kind, size, item.fabric, item.members).seconds for size, _ in item.points
        ]
        assert model == sorted(model)
    size = 8589934592
    measured, modelled = [], []
    for nodes in ("two", "four", "sixteen", "thirty-two"):
        item = series()[f"p5-{nodes}-nodes-all-reduce"]
        measured.append(dict(item.points)[size])
        modelled.append(seconds(item.kind, size, item.fabric, item.members).seconds)
    assert measured == sorted(measured)
    assert modelled == sorted(modelled)


def test_the_start_of_the_software_is_left_out_of_the_comparison():
    (chip,) = (item for item in EVERY if item.name == "trn1-chip-all-reduce")
    first, *others = compare([chip])
    assert first.started_s is None
    start = first.measured_s - first.modelled_s
    assert [other.started_s - other.modelled_s for other in others] == pytest.approx(
        [start] * len(others)
    )
    (large,) = (item for item in EVERY if item.name == "p5-two-nodes-all-reduce")
    assert all(item.started_s == item.modelled_s for item in compare([large]))


def test_the_quality_is_that_of_the_ratios():
    result = quality([0.5, 1.0, 4.0])
    assert (result.points, result.ratio, result.median, result.worst) == (3, 1.0, 2.0, 4.0)
    assert result.median == statistics.median(map(error, [0.5, 1.0, 4.0]))


def test_the_model_changes_its_algorithm_where_aws_does():
    """AWS: mesh below 1 MB, KangaRing above 56 MB, another in between; the model knows no other
    for the torus, and changes between the two.
    """
    instance = fabric("trn2.48xlarge")
    known = lines("all-reduce", instance)
    mesh = next(line for line in known if line.steps == 4)
    ring = next(line for line in known if line.steps == 32)
    change = (ring.latency_s - mesh.latency_s) / (mesh.seconds_per_byte - ring.seconds_per_byte)
    low = figure("trainium2.collectives.mesh_below").to("B")
    high = figure("trainium2.collectives.ring_above").to("B")
    assert low < change < high


def test_what_the_articles_say_of_the_wires_agrees_with_the_fabrics():
    """Each of these claims names a figure; the fabrics are built from the same."""
    scale_up = {
        "A-020": ("trainium3.link.bandwidth", "2.56 TB/s"),
        "A-027": ("trainium2.link.bandwidth", "1.28 TB/s"),
        "A-054": ("trn1.32xlarge.neuronlink.per_chip", "384 GB/s"),
        "B-051": ("trn2.48xlarge.network", "3,200 Gbps"),
        "B-023": ("trn1.32xlarge.network", "800 Gbps"),
    }
    for identity, (key, words) in scale_up.items():
        assert words in claim(identity).correct
        number, unit = words.replace(",", "").split()
        assert figure(key).to(unit) == pytest.approx(float(number))
    # Beyond 64 or 144 chips traffic uses EFA.
    assert claim("A-021").verdict == "wrong"
    for name, chips in (("trn3-ultraserver-gen1", 64), ("trn3-ultraserver-gen2", 144)):
        *inside, network = fabric(name).tiers
        assert str(chips) in claim("A-021").correct
        assert inside[-1].ranks == chips
        assert "EFA" in network.name
    # NeuronLink is inside, EFA between; four instances of 16 chips are an UltraServer.
    assert claim("A-026").verdict == "wrong"
    assert [tier.ranks for tier in fabric("trn2-ultraserver").tiers[1:3]] == [16, 4]
    assert "64 chips" in claim("B-028").correct
    for old, new in (("trn1.32xlarge", "A-089"), ("trn1.32xlarge", "A-138")):
        assert figure(f"{old}.neuronlink.version").value == "NeuronLink-v2"
        assert claim(new).verdict == "wrong"
