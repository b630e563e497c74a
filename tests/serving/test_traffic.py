"""The engine on a virtual clock: seconds by hand, static against continuous, service levels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utils import serving
from utils.chip.hardware import machine
from utils.cost.planner.architecture import architecture
from utils.serving import traffic
from utils.serving.engine import Engine, Request, Settings
from utils.serving.traffic import Served, Timed


def steps(**shapes: object) -> Engine:
    """An engine whose pieces of prompts take 10 s each and whose decodes take 1 s."""
    made = Settings(**{"context": 32, "slots": 2, "share_prefixes": False} | shapes)
    return Engine(Timed(made, lambda tokens, start: 10.0, lambda lengths: 1.0))


def test_a_request_alone_waits_for_its_pieces_and_then_for_each_decode():
    (one,) = traffic.serve(steps(buckets=(4,)), [(5.0, Request([1] * 7, 4))])
    # Two pieces of a step of at most six tokens: four and, in the same step, two more wait.
    assert one.times_s == (25.0, 26.0, 27.0, 28.0)
    assert (one.first_token_s, one.per_token_s, one.longest_gap_s) == (20.0, 1.0, 1.0)


def test_a_prompt_stalls_a_running_answer_and_pieces_shorten_the_stall():
    asked = [(0.0, Request([1, 1], 6)), (2.5, Request([1] * 16, 2))]
    by_piece = {
        piece: traffic.serve(
            Engine(
                Timed(
                    Settings(32, 2, buckets=(2, piece), tokens_per_step=2 + piece),
                    lambda tokens, start: float(tokens),
                    lambda lengths: 1.0,
                )
            ),
            asked,
        )
        for piece in (4, 16)
    }
    assert by_piece[16][0].longest_gap_s == 17.0 and by_piece[4][0].longest_gap_s < 7
    assert by_piece[4][1].times_s[0] > by_piece[16][1].times_s[0]


@st.composite
def arrivals(draw: st.DrawFn) -> list[tuple[float, Request]]:
    gaps = draw(st.lists(st.integers(0, 30), min_size=1, max_size=8))
    sizes = st.tuples(st.integers(2, 16), st.integers(1, 16))
    times = np.cumsum(gaps).tolist()
    return [
        (float(t), Request([1] * n, most)) for t, (n, most) in ((t, draw(sizes)) for t in times)
    ]


@settings(max_examples=60)
@given(arrivals(), st.integers(1, 4), st.booleans())
def test_every_token_comes_in_order_and_none_is_lost(asked, slots, join):
    server = steps(slots=slots)
    served = traffic.serve(server, asked, join)
    for (due, request), one in zip(asked, served, strict=True):
        assert len(one.times_s) == request.max_tokens and one.due_s == due < one.times_s[0]
        assert list(one.times_s) == sorted(set(one.times_s))
    counts, clock = server.counts, server.runner
    # A last piece of one token is computed in the decode batch, so only both together are known.
    computed = sum(len(request.prompt) + request.max_tokens - 1 for _, request in asked)
    assert counts.prefill_tokens + counts.decode_tokens == computed
    filled = [place for places in clock.decodes for place in places if place is not None]
    assert (len(clock.decodes), len(filled)) == (counts.decodes, counts.decode_tokens)
    busy_s = 10 * counts.chunks + counts.decodes
    assert busy_s <= clock.now_s <= asked[-1][0] + busy_s


@settings(max_examples=40)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=12), st.integers(1, 4))
def test_static_batches_decode_as_long_as_their_longest_answers(lengths, slots):
    asked = [(0.0, Request([1, 1], most)) for most in lengths]
    static, joined = steps(slots=slots), steps(slots=slots)
    traffic.serve(static, asked, join=False)
    traffic.serve(joined, asked)
    groups = [lengths[at : at + slots] for at in range(0, len(lengths), slots)]
    assert static.counts.decodes == sum(max(group) - 1 for group in groups)
    least = -(-sum(most - 1 for most in lengths) // slots)
    assert least <= joined.counts.decodes <= sum(most - 1 for most in lengths)
    # Not always fewer than static ones: of 1, 2, 2 and 2 tokens in two slots, the second and third
    # fall out of step, and three decodes take the place of two.


@pytest.mark.parametrize(
    ("lengths", "decodes"), [([12, 2, 2, 12], (22, 15)), ([1, 2, 2, 2], (2, 3))]
)
def test_continuous_batches_usually_need_fewer_decodes(lengths, decodes):
    counted = []
    for join in (False, True):
        traffic.serve(server := steps(), [(0.0, Request([1, 1], most)) for most in lengths], join)
        counted.append(server.counts.decodes)
    assert tuple(counted) == decodes


def test_static_batches_take_only_who_has_come():
    asked = [(0.0, Request([1, 1], 3)), (1.0, Request([1, 1], 1)), (1.0, Request([1, 1], 1))]
    static = traffic.serve(steps(slots=4), asked, join=False)
    assert [one.times_s[0] for one in static] == [10.0, 32.0, 32.0]
    joined = traffic.serve(steps(slots=4), asked)
    assert [one.times_s[0] for one in joined] == [10.0, 31.0, 31.0]


def test_apart_a_prompt_queues_once_and_travels_before_it_decodes():
    decoder = Engine(Timed(Settings(32, 2, buckets=(32,)), lambda *piece: 0.0, lambda lengths: 1.0))
    asked = [(0.0, Request([1] * 4, 3)), (1.0, Request([1] * 2, 1)), (1.0, Request([1] * 2, 2))]
    served = traffic.serve_apart(asked, lambda n: 2.0 * n, lambda n: 0.5 * n, decoder)
    # The token in hand travels with the cache; only those after it are decoded, two and one.
    assert [one.times_s for one in served] == [(8.0, 10.0, 11.0), (12.0,), (16.0, 17.0)]


def test_what_keeps_a_level_and_what_does_not():
    fast, late, slow = (
        Served(0.0, (1.0, 1.5, 2.0)), Served(1.0, (3.0,)), Served(2.0, (3.0, 3.5, 8.0)),
    )  # fmt: skip
    assert traffic.attainment([fast, late, slow], first_s=1.0, token_s=0.5) == pytest.approx(1 / 3)
    assert traffic.goodput_per_s([fast, late, slow], 2.0, 0.5) == 2 / 8
    assert (slow.longest_gap_s, late.per_token_s, late.longest_gap_s) == (4.5, 0.0, 0.0)


def test_bounds_are_those_of_one_prompt_and_one_decode():
    model, chip = architecture("llama-3.1-8b"), machine("trainium2")
    prefill_s, decode_s = traffic.bounds(model, chip)
    assert prefill_s(512, 0) == serving.prefill(model, chip, 512).seconds
    later = serving.prefill(model, chip, 512, start=1024).work
    assert prefill_s(512, 1024) == serving.prefill(model, chip, 512, start=1024).seconds
    row = 2 * 2 * 32 * 8 * 128
    first = serving.prefill(model, chip, 512).work
    assert later.bytes - first.bytes == 1024 * row
    assert later.flops - first.flops == 4 * 512 * 1024 * 32 * 4096
    assert decode_s([100, 300]) == serving.decode(model, chip, 200, 2).seconds


def test_what_cannot_be_served_is_refused():
    with pytest.raises(ValueError, match="sort them by time"):
        traffic.serve(steps(), [(2.0, Request([1, 1])), (1.0, Request([1, 1]))])
    untimed = Engine(steps().runner)
    untimed.runner = object()
    with pytest.raises(ValueError, match="runner is a object: serve needs a Timed"):
        traffic.serve(untimed, [])
