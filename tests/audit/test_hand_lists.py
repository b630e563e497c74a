"""The audit against lists that a person made from public repositories before it ran on them.

COURSE_AUDIT_REPOS names a folder that holds checkouts, at the commits given in hand_lists.json,
under names such as pytorch+serve. Only the files of the list are audited, as they were then.
"""

import json
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from utils.audit import RULES, audit

ROOT = Path(__file__).parents[2]
DATA = json.loads(Path(__file__).with_name("hand_lists.json").read_text())
LISTS = DATA["repositories"]


def counts(repository: dict) -> dict[str, dict[str, int]]:
    """What was listed, found, right besides the list, and false, for both kinds of findings."""
    listed = Counter(row[3] for row in repository["hand"])
    result = Counter(row[3] for row in repository["hand"] if row[6])
    besides = Counter((row[3], row[5]) for row in repository["besides"])
    return {
        kind: {
            "listed": listed[kind],
            "found": result[kind],
            "right besides": besides[kind, "right"],
            "false": besides[kind, "false"],
        }
        for kind in ("api", "hazard")
    }


def test_lists_name_rules_that_are_there_and_files_that_were_read() -> None:
    for repository in LISTS:
        rules = {row[4] for row in repository["hand"]} | {row[4] for row in repository["besides"]}
        assert rules <= {*RULES, "no rule"}
        files = {row[0] for row in repository["hand"]} | {row[0] for row in repository["besides"]}
        assert files <= set(repository["files"])
        assert counts(repository) == repository["counts"], repository["repository"]


def test_lists_cover_three_kinds_of_at_least_four_repositories() -> None:
    kinds = Counter(repository["kind"] for repository in LISTS)
    assert len(kinds) == 3 and min(kinds.values()) >= 4


def test_the_page_of_the_audit_shows_the_last_draw() -> None:
    page = (ROOT / "utils" / "cli" / "trn-audit.md").read_text()
    last = [item for item in LISTS if item["part"] == LISTS[-1]["part"]]
    for item in last:
        cells = (f"{c['listed']}, {c['found']}, {c['false']}" for c in item["counts"].values())
        assert f"| {' | '.join([item['repository'], *cells])} |" in page
    for kind, cell in zip(
        ("api", "hazard"), page.split("| all: ")[1].split(" | ")[1:3], strict=True
    ):
        listed, found = (
            sum(item["counts"][kind][key] for item in last) for key in ("listed", "found")
        )
        assert cell.startswith(f"{100 * found / listed:.0f} %, ")


def test_the_page_of_the_audit_shows_the_last_five_draws_together() -> None:
    page = (ROOT / "utils" / "cli" / "trn-audit.md").read_text()
    parts = list(dict.fromkeys(item["part"] for item in LISTS))[-5:]
    words = []
    for kind, names in (("api", "names"), ("hazard", "hazards")):
        totals = []
        for part in parts:
            counted = [item["counts"][kind] for item in LISTS if item["part"] == part]
            totals.append([sum(one[key] for one in counted) for key in ("listed", "found")])
        shares = [f"{100 * found / listed:.0f}" for listed, found in totals]
        before = f"{', '.join(shares[:3])} and {shares[3]} % of the {names}"
        listed, found = (sum(column) for column in zip(*totals, strict=True))
        words += [before, f"{100 * found / listed:.0f} % of {listed:,} {names}"]
    assert [one for one in words if one not in page] == []


@pytest.mark.parametrize("wanted", LISTS, ids=lambda item: item["repository"])
def test_what_was_found_is_still_found(wanted: dict, tmp_path: Path) -> None:
    checkouts = os.environ.get("COURSE_AUDIT_REPOS")
    folder = Path(checkouts or "") / wanted["repository"].replace("/", "+")
    if not checkouts or not folder.is_dir():
        pytest.skip(f"COURSE_AUDIT_REPOS holds no checkout of {wanted['repository']}")
    for name in wanted["files"]:
        copy = tmp_path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / name, copy)
    findings = audit(tmp_path).findings
    results = {(item.path, item.cell or 0, item.line, item.rule) for item in findings}
    matches = {(path, cell, *row) for path, cell, _, _, _, _, row in wanted["hand"] if row}
    right = {(*row[:3], row[4]) for row in wanted["besides"] if row[5] == "right"}
    false = {(*row[:3], row[4]) for row in wanted["besides"] if row[5] == "false"}
    missed = {tuple(row[:3]) for row in wanted["hand"] if not row[6]}
    new = {row for row in results - matches - right - false if row[:3] not in missed}
    print(
        f"{folder.name}: {len(results & matches)} of {len(wanted['hand'])} listed, {len(new)} new"
    )
    given_up = {
        tuple(row) for repository, *row in DATA["given_up"] if repository == wanted["repository"]
    }
    assert matches - results <= given_up
    assert len(new) <= max(2, len(results) / 20), f"judge these by hand: {sorted(new)}"
