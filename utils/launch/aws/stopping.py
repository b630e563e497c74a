"""Ending what runs, until AWS says that it is ended."""

import time
from collections.abc import Callable, Collection

from utils.launch.aws import ledger, things
from utils.launch.aws.session import Denied, Refused, Say, Session
from utils.launch.aws.things import Thing

ROUNDS = 60
PAUSE_SECONDS = 5.0
"""Studio takes some minutes to delete an app, a training job up to two to stop."""
UNSEEN_ROUNDS = 5
"""EC2 may not list a new instance for a moment: so often it is looked for before it is believed
that there is none."""

Sleep = Callable[[float], None]


def running(aws: Session, say: Say = lambda text: None) -> list[Thing]:
    """Everything of the course in the region. A place that the credentials may not look at is said
    and left out.
    """
    found: list[Thing] = []
    for place, find in things.FIND.items():
        try:
            found += find(aws)
        except Denied as error:
            say(f"{place}: not looked at, {error}")
    return found


def end_all(
    aws: Session,
    look: Callable[[], Collection[Thing]],
    say: Say,
    sleep: Sleep = time.sleep,
    *,
    unseen: bool = False,
    rounds: int = ROUNDS,
) -> list[Thing]:
    """End everything that `look` finds, and look again until it finds nothing.

    Args:
        unseen: whether a start may have reached AWS without its answer reaching us: then an empty
            list is believed only after `UNSEEN_ROUNDS` looks.

    Returns:
        What still runs after all rounds, or cannot be ended; empty if all is over. Raises nothing:
        a fault is said and tried again, and that of one thing keeps no other from its end.
    """
    told: set[str] = set()
    empty = 0
    left: list[Thing] = [UNKNOWN]
    for turn in range(rounds):
        if turn:
            sleep(PAUSE_SECONDS)
        try:
            left = list(look())
        except Exception as error:  # whatever it is, the next look may succeed
            say(f"cannot look now: {error}")
            empty, left = 0, left or [UNKNOWN]
            continue
        for thing in left:
            if thing.id not in told:
                say(f"ending {thing}")
                told.add(thing.id)
            try:
                things.end(aws, thing)
            except Exception as error:
                say(f"not ended yet: {thing.id}: {error}")
        empty = 0 if left else empty + 1
        if empty >= (UNSEEN_ROUNDS if unseen and not told else 1):
            return []
    return left


def stop(
    aws: Session, mine: Callable[[Thing], bool], say: Say, sleep: Sleep = time.sleep
) -> list[Thing]:
    """End everything in the region that is mine, place by place, so that trouble with one leaves
    the others ended. What is recorded as begun there is looked for with patience.

    Returns:
        What still runs, or may run where the credentials may not look.
    """
    begun = {run: it for run, it in ledger.unended().items() if it["region"] == aws.region}
    left: list[Thing] = []
    for place, find in things.FIND.items():
        waited_for = any(it["where"] == place for it in begun.values())

        def look(find: Callable = find) -> list[Thing]:
            return [each for each in find(aws) if mine(each)]

        try:
            look()
        except Denied as error:
            say(f"{place}: not looked at, {error}")
            left += [UNKNOWN] if waited_for else []
            continue
        except Refused as error:
            say(f"{place}: {error}")
        left += end_all(aws, look, say, sleep, unseen=waited_for)
    if not left:
        for run in begun:
            ledger.note(say, "ended", run, why="--stop finds nothing more of it")
    return left


UNKNOWN = Thing("", "something that could not be looked for", *["unknown"] * 6)
