"""The engine without torch: schedules, blocks, prefixes, sampling, on a cache of plain numbers."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from utils.serving import engine
from utils.serving.engine import BlockPool, Engine, Overloaded, Request, Sampling, Settings
from utils.serving.engine.sampling import choose, probabilities, sample

VOCABULARY = 5


def cell_of(before: list[int], token: int) -> int:
    """What stands for the keys and values of a token: they depend on all tokens before it."""
    return hash((tuple(before), token))


def logits_of(cells: list[int]) -> np.ndarray:
    return np.random.default_rng(abs(hash(tuple(cells)))).normal(size=VOCABULARY)


class Cells:
    """A runner whose cache has one number for each place. It reads through the blocks that it is
    given, so that a block of somebody else's, or one not written yet, changes the tokens.
    """

    vocabulary = VOCABULARY

    def __init__(self, shapes: Settings) -> None:
        self.settings = shapes
        self.cells: list[int | None] = [None] * (shapes.blocks * shapes.block_size)
        self.pool: BlockPool | None = None

    def prefill(self, tokens, start, blocks):
        assert len(tokens) <= self.settings.buckets[-1]
        for place, token in enumerate(tokens, start):
            result = self._one(token, place, blocks)
        return result

    def decode(self, rows):
        assert len(rows) == self.settings.slots
        empty = np.full(VOCABULARY, np.nan)
        return np.stack([self._one(*row) if row else empty for row in rows])

    def _one(self, token, place, blocks):
        size = self.settings.block_size
        block = blocks[place // size]
        assert block != 0 and self.pool.users[block] == 1 and not self.pool.known(block)
        before = [self.cells[blocks[at // size] * size + at % size] for at in range(place)]
        assert None not in before
        cell = self.cells[block * size + place % size] = cell_of(before, token)
        return logits_of([*before, cell])


def plain(request: Request) -> list[int]:
    """The tokens of a request that is served alone and without any cache."""
    tokens, cells = [*request.prompt], []
    answer: list[int] = []
    while len(answer) < request.max_tokens and not ends(answer, request):
        for token in tokens[len(cells) :]:
            cells.append(cell_of(cells, token))
        answer.append(sample(logits_of(cells), request.sampling, len(tokens)))
        tokens.append(answer[-1])
    return answer


def ends(answer: list[int], request: Request) -> bool:
    return any(answer[-len(run) :] == [*run] for run in request.stop)


def make(shapes: Settings) -> Engine:
    runner = Cells(shapes)
    result = Engine(runner)
    runner.pool = result.scheduler.pool
    return result


@dataclass(frozen=True)
class Traffic:
    """Requests with the step before which they arrive, and who is cancelled before which step."""

    shapes: Settings
    arrivals: tuple[tuple[int, Request], ...]
    cancels: tuple[tuple[int, int], ...]


@st.composite
def requests(draw: st.DrawFn, context: int) -> Request:
    # Few beginnings, so that prompts share them.
    head = [draw(st.integers(0, 1))] * draw(st.integers(0, context - 2))
    tail = draw(st.lists(st.integers(0, VOCABULARY - 1), max_size=3))
    prompt = (head + tail)[: context - 1] or [0]
    stop = draw(st.sampled_from([(), (), ((0,),), ((1,), (2, 3))]))
    warm = Sampling(0.8, draw(st.integers(0, 3)), draw(st.sampled_from([0.7, 1.0])), seed=7)
    sampling = draw(st.sampled_from([Sampling(), warm]))
    return Request(prompt, draw(st.integers(1, context - len(prompt))), sampling, stop)


@st.composite
def traffic(draw: st.DrawFn, largest: int = 24) -> Traffic:
    context, size, slots = draw(st.integers(4, largest)), draw(st.integers(1, 5)), draw(
        st.integers(1, 4)
    )  # fmt: skip
    buckets = draw(st.sampled_from([(1,), (3,), (2, 5), (4, 8, 16)]))
    least = -(-context // size) + 1
    shapes = Settings(
        context, slots, size, least + draw(st.sampled_from([0, 1, 2 * least])), buckets,
        slots + draw(st.integers(1, 12)), draw(st.booleans()),
    )  # fmt: skip
    when = st.integers(0, 12)
    arrivals = draw(st.lists(st.tuples(when, requests(context)), min_size=1, max_size=7))
    cancels = draw(st.lists(st.tuples(when, st.integers(0, 6)), max_size=2))
    return Traffic(shapes, tuple(sorted(arrivals, key=lambda item: item[0])), tuple(cancels))


def serve(plan: Traffic, made_by=make, check=lambda before, server: None):
    """All sequences of the traffic, served to the end, and the engine."""
    server, sequences, now = made_by(plan.shapes), [], 0
    arrivals = [*plan.arrivals]
    while arrivals or server.busy:
        while arrivals and arrivals[0][0] <= now:
            sequences.append(server.submit(arrivals.pop(0)[1]))
        for when, number in plan.cancels:
            if when == now and number < len(sequences):
                server.cancel(sequences[number])
        if server.busy:
            before = replace(server.counts)
            server.step()
            check(before, server)
        now += 1
    return sequences, server


def check_step(before: engine.Counts, server: Engine) -> None:
    """What holds after every step, and how much a step may do."""
    scheduler, shapes, after = server.scheduler, server.settings, server.counts
    work = after.prefill_tokens + after.decode_tokens
    assert 0 < work - before.prefill_tokens - before.decode_tokens <= shapes.tokens_per_step
    assert after.decodes - before.decodes <= 1
    held = Counter(block for item in scheduler.running for block in item.blocks)
    assert [*map(held.__getitem__, range(shapes.blocks))] == scheduler.pool.users
    assert scheduler.pool.free == shapes.blocks - 1 - len(held) and 0 not in held
    assert len(scheduler.running) <= shapes.slots
    slots = [item.slot for item in scheduler.running]
    assert len({*slots}) == len(slots) and {*slots} <= {*range(shapes.slots)}
    assert all(item.slot is None and not item.blocks for item in scheduler.waiting)
    order = [item.number for item in (*scheduler.running, *scheduler.waiting)]
    assert order == sorted(order)


def check_answers(plan: Traffic, sequences, answer_of=plain) -> None:
    """Every sequence has the tokens of a plain loop, or their beginning if it was cancelled."""
    assert len(sequences) == len(plan.arrivals)
    for sequence in sequences:
        wanted = answer_of(sequence.request)
        if sequence.finish == "cancelled":
            assert sequence.generated == wanted[: len(sequence.generated)]
            assert len(sequence.generated) < len(wanted)
        else:
            assert sequence.generated == wanted
            stopped = ends(wanted, sequence.request)
            assert sequence.finish == ("stop" if stopped else "length")


@settings(max_examples=150)
@given(traffic())
def test_every_schedule_gives_the_tokens_of_a_plain_loop_and_loses_no_block(plan: Traffic) -> None:
    sequences, server = serve(plan, check=check_step)
    check_answers(plan, sequences)
    assert server.scheduler.pool.free == plan.shapes.blocks - 1
    counts = server.counts
    if not counts.preemptions and not plan.cancels:  # then nothing is computed twice
        needed = sum(len(sequence.tokens) - 1 for sequence in sequences)
        assert counts.prefill_tokens + counts.decode_tokens + counts.cached_tokens == needed


@pytest.mark.exhaustive
@settings(max_examples=4000)
@given(traffic(48))
def test_many_more_schedules(plan: Traffic) -> None:
    check_answers(plan, serve(plan, check=check_step)[0])


# Counts that can be worked out by hand


def test_a_batch_that_is_continuous_computes_as_many_steps_as_its_longest_queue() -> None:
    """Answers of 2 and 8 tokens in two slots: static batches take 8 + 8 steps, this one 10."""
    server = make(Settings(context=16, slots=2, buckets=(4,)))
    for count in (2, 8, 8, 2):
        server.submit(Request([1, 2], count))
    server.run()
    counts = server.counts
    # Each first token comes from its prompt's own execution, the others from the shared one.
    assert (counts.chunks, counts.prefill_tokens, counts.prefill_rows) == (4, 8, 16)
    assert counts.decode_tokens == 1 + 7 + 7 + 1
    assert (counts.steps, counts.decodes, counts.decode_rows) == (10, 9, 18)


def test_a_long_prompt_in_pieces_holds_up_no_running_answer() -> None:
    shapes = Settings(context=64, slots=2, buckets=(8,), tokens_per_step=9)
    server, arrived = make(shapes), []
    first = server.submit(Request([1], 30))
    server.step()
    second = server.submit(Request([2] * 40, 1), on_token=arrived.append)
    for step in range(2, 7):
        server.step()
        assert len(first.generated) == step and len(arrived) == (step == 6)
    assert second.finish == "length" and server.counts.chunks == 5


def test_a_prompt_that_is_known_is_computed_but_for_its_last_block() -> None:
    server = make(Settings(context=32, slots=2, block_size=4, buckets=(16,)))
    [*_] = server.stream(Request([1, 2, 3] * 5 + [4], 1))  # 16 tokens: 4 full blocks
    assert (server.counts.prefill_tokens, server.counts.cached_tokens) == (16, 0)
    again = Request([1, 2, 3] * 5 + [4], 4)
    assert [*server.stream(again)] == plain(again)
    assert (server.counts.prefill_tokens, server.counts.cached_tokens) == (16 + 4, 12)
    [*_] = server.stream(Request([1, 2, 3, 1, 2, 3, 1, 9 % VOCABULARY], 1))
    assert server.counts.cached_tokens == 12 + 4  # one block is equal, the second is not
    [*_] = server.stream(Request([2, 3, 1, 2] * 3, 1))  # its blocks lie elsewhere in a text
    assert server.counts.cached_tokens == 12 + 4


def test_the_youngest_gives_way_and_computes_its_tokens_again() -> None:
    """5 blocks of 2 for two answers of 7 tokens, which need 4 each."""
    shapes = Settings(8, slots=2, block_size=2, blocks=6, buckets=(8,), share_prefixes=False)
    server = make(shapes)
    sequences = [server.submit(Request([token], 7)) for token in (1, 2)]
    server.run()
    assert server.counts.preemptions == 1
    assert [sequence.generated for sequence in sequences] == [
        plain(sequence.request) for sequence in sequences
    ]
    assert server.counts.steps == 4 + 3 + 3


def test_a_callback_may_cancel_others_and_a_loop_that_is_left_cancels_its_own() -> None:
    server = make(Settings(context=16, slots=3, buckets=(4,)))
    others = []
    first = server.submit(Request([1], 5), on_token=lambda _: [*map(server.cancel, others)])
    others += [server.submit(Request([2], 5)), server.submit(Request([3], 5))]
    server.run()
    assert len(first.generated) == 5 and [other.generated for other in others] == [[], []]
    assert {other.finish for other in others} == {"cancelled"}
    tokens = server.stream(Request([1], 9))
    assert next(tokens) == plain(Request([1], 1))[0] and server.busy
    tokens.close()
    assert not server.busy and server.scheduler.pool.free == server.settings.blocks - 1
    server.cancel(first)
    assert first.finish == "length"


def test_a_callback_that_fails_ends_its_own_request_and_no_other() -> None:
    server, got = make(Settings(context=16, slots=3, buckets=(4,))), []

    def hang_up(token: int) -> None:
        raise ConnectionError("the client has gone")

    gone = server.submit(Request([1], 5), hang_up)
    other = server.submit(Request([2], 5), got.append)
    with pytest.raises(ConnectionError):
        server.step()
    server.run()
    assert (gone.finish, len(gone.generated)) == ("cancelled", 1)
    assert got == other.generated == plain(other.request)


@pytest.mark.parametrize("failing", range(1, 8))
def test_a_step_in_which_the_device_failed_can_be_run_again(failing: int, monkeypatch) -> None:
    server = make(Settings(8, slots=2, block_size=2, blocks=6, buckets=(2,)))
    asked = [server.submit(Request(prompt, 4)) for prompt in ([1, 2, 3, 4], [1, 2, 3], [1])]
    one, calls = server.runner._one, iter(range(100))

    def sometimes(*row):
        if next(calls) == failing:
            raise RuntimeError("the device is lost")
        return one(*row)

    monkeypatch.setattr(server.runner, "_one", sometimes)
    with pytest.raises(RuntimeError, match="the device is lost"):
        server.run()
    server.run()
    assert [item.generated for item in asked] == [plain(item.request) for item in asked]
    assert server.scheduler.pool.free == 5


def test_what_cannot_be_served_is_refused_at_once() -> None:
    server = make(Settings(context=16, max_waiting=1))
    for request, message in (
        (Request([], 1), "found 0 and 1"),
        (Request([1], 0), "found 1 and 0"),
        (Request([1] * 10, 7), "are 17, but the context holds 16"),
        (Request([1, 5], 1), "has the token 5, but ids are 0 to 4"),
        (Request([1], 1, stop=((),)), "a stop has no token"),
    ):
        with pytest.raises(ValueError, match=message):
            server.submit(request)
    server.submit(Request([1], 1))
    with pytest.raises(Overloaded, match="1 requests wait already"):
        server.submit(Request([1], 1))
    for wrong, message in (
        (dict(context=16, blocks=2), "2 blocks of 8 tokens do not hold one sequence of 16"),
        (dict(context=16, tokens_per_step=4), "allow 5 or more"),
        (dict(context=16, buckets=(8, 8)), "ascending; found"),
        (dict(context=0), "1 or more"),
    ):
        with pytest.raises(ValueError, match=message):
            Settings(**wrong)
    with pytest.raises(ValueError, match="block 1 is released, but nobody uses it"):
        BlockPool(3, 1).release([1])


# Blocks


@settings(max_examples=80)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=30), st.integers(2, 7))
def test_a_pool_gives_no_block_to_two_and_finds_only_what_was_stored(moves, blocks: int) -> None:
    pool, held = BlockPool(blocks, 1), []
    content: dict[int, tuple[int, ...]] = {}  # the text up to and with each block
    for take, number in moves:
        if take:
            text = [number % 2, number // 2 % 2, number // 4 % 2]
            shared, prefix = pool.cached(text)
            assert [content[block] for block in shared] == [
                tuple(text[: end + 1]) for end in range(len(shared))
            ]
            free = pool.free - sum(not pool.users[block] for block in shared)
            taken = pool.take(len(text) - len(shared), shared)
            assert (taken is None) == (len(text) - len(shared) > free)
            if taken is not None:
                for place in range(len(shared), len(text)):
                    assert pool.users[taken[place]] == 1
                    content[taken[place]] = tuple(text[: place + 1])
                    prefix = pool.store(taken[place], prefix, (text[place],))
                held.append(taken)
        elif held:
            pool.release(held.pop(number % len(held)))
        assert pool.users == [sum(block in item for item in held) for block in range(blocks)]
        assert pool.free == sum(not users for users in pool.users[1:])


# Sampling


@given(st.lists(st.integers(0, 4), min_size=64, max_size=64))
def test_every_token_is_chosen_for_exactly_its_share_of_the_numbers(shares: list[int]) -> None:
    counts = np.bincount(shares, minlength=5)
    chosen = [choose(counts / 64, number / 64) for number in range(64)]
    assert np.bincount(chosen, minlength=5).tolist() == counts.tolist()


def test_a_thousand_seeds_and_places_draw_from_the_distribution() -> None:
    logits, sampling = np.array([0.3, -1.0, 2.0, 0.0, 1.0]), Sampling(0.7, top_k=4, top_p=0.95)
    wanted = probabilities(logits, sampling)
    assert wanted[1] == 0 and wanted.sum() == pytest.approx(1)
    for draws in (
        [sample(logits, replace(sampling, seed=seed), 3) for seed in range(1000)],
        [sample(logits, sampling, place) for place in range(1000)],
    ):
        counts = np.bincount(draws, minlength=5)
        kept = wanted > 0
        assert counts[~kept].sum() == 0
        assert stats.chisquare(counts[kept], 1000 * wanted[kept]).pvalue > 0.01


def test_a_tiny_temperature_is_greedy_and_wrong_values_are_refused() -> None:
    logits = np.array([1.0, 3.0, 3.0, -900.0])
    assert probabilities(logits, Sampling(1e-300)).tolist() == [0, 0.5, 0.5, 0]
    assert probabilities(logits, Sampling()).tolist() == [0, 1, 0, 0]
    for wrong in (dict(temperature=-1), dict(top_k=-1), dict(top_p=0), dict(seed=-1)):
        with pytest.raises(ValueError, match="allowed is"):
            Sampling(**wrong)
