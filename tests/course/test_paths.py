"""The table of the ways to put a model on Trainium: complete, sourced, and linked to lessons."""

from utils.course import catalog
from utils.course.paths import Paths, State, paths


def test_every_path_has_a_state_with_a_source_and_a_lesson_that_exists() -> None:
    numbers = {lesson.number for lesson in catalog.lessons(catalog.ROOT)}
    assert len({path.name for path in paths()}) == len(paths()) >= 7
    for path in paths():
        assert path.states and path.machines and path.lessons
        assert set(path.lessons) <= numbers
        for state in path.states:
            assert state.source.status == "primary"
            assert state.source.source in Paths()._repr_markdown_()


def test_no_number_of_a_lesson_counts_twice_and_names_of_machines_are_known() -> None:
    for path in paths():
        assert len(set(path.lessons)) == len(path.lessons)
        assert set(path.machines) <= {"Trn1", "Trn2", "Trn3", "Inf2"}


def test_a_state_says_since_when_and_what_is_to_come() -> None:
    state = State("beta since {2.33}, ends with {2.99}", "torchneuron-status")
    assert str(state) == "beta since SDK 2.33 (2026-10-19), ends with SDK 2.99 (to come)"
    assert "{" not in repr(Paths())


def test_the_table_links_lessons_and_says_dates() -> None:
    table = Paths()._repr_markdown_()
    assert "[15](15_torchneuron.ipynb)" in table and "2026-10-19" in table
    assert len(table.splitlines()) == len(paths()) + 2
