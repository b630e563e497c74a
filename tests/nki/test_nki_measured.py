"""Records of `nki measure`: what is taken in, what is refused, and that made ones stay made."""

import json
from pathlib import Path

import pytest

from utils.nki.tool import measured, measuring
from utils.nki.tool.__main__ import main

ROW = "exp-4-all"
MADE = {
    "nki_measure": 1,
    "made": True,
    "day": "2026-11-24",
    "instance": "trn2.3xlarge",
    "target": "trn2",
    "packages": {"nki": "0.7.0", "neuronx-cc": "2.26.1+abc"},
    "rows": [{"id": ROW, "seconds": [3e-6, 1e-6, 2e-6]}],
}
TRUE = MADE | {"made": False}


def test_a_made_record_is_never_a_measurement() -> None:
    record = measured.decode(json.dumps(MADE))
    with pytest.raises(measured.MadeUp, match="made: true"):
        measured.times(record)
    shown = "\n".join(measuring.comparison(record))
    assert "made up, measures nothing" in shown and "measured here" not in shown
    assert "%" not in shown


def test_a_record_gives_the_middle_of_its_times() -> None:
    record = measured.decode(json.dumps(TRUE))
    assert measured.times(record) == {ROW: 2e-6}
    assert "measured here" in "\n".join(measuring.comparison(record))


@pytest.mark.parametrize(("change", "message"), [
    ({"made": None}, "made"),
    ({"host": "box"}, "host"),
    ({"nki_measure": 2}, "nki_measure"),
    ({"instance": "ip-10-0-0-1.internal"}, "instance"),
    ({"instance": "/home/somebody"}, "instance"),
    ({"packages": {"nki": "0.7 from /home/somebody"}}, "packages"),
    ({"packages": {"somebody": "1.0"}}, "somebody"),
    ({"target": "trn1"}, "is for trn2, not trn1"),
    ({"rows": []}, "rows"),
    ({"rows": [{"id": "cake", "seconds": [1.0]}]}, "'cake' is unknown"),
    ({"rows": TRUE["rows"] * 2}, "there twice"),
    ({"rows": [{"id": ROW, "seconds": []}]}, "seconds"),
    ({"rows": [{"id": ROW, "seconds": [-1.0]}]}, "seconds"),
    ({"rows": [{"id": ROW, "seconds": [1.0], "path": "/tmp"}]}, "path"),
])  # fmt: skip
def test_what_is_wrong_or_private_is_refused(change: dict, message: str) -> None:
    with pytest.raises(measured.BadRecord, match=message):
        measured.decode(json.dumps(TRUE | change))


def test_made_is_no_default() -> None:
    with pytest.raises(measured.BadRecord, match="made"):
        measured.decode(json.dumps({key: TRUE[key] for key in TRUE if key != "made"}))


def test_a_machine_without_a_neuron_core_says_so(tmp_path, capsys, monkeypatch) -> None:
    asked = measuring.missing
    monkeypatch.setattr(measuring, "missing", lambda: asked(str(tmp_path)))
    assert main(["measure", "--to", str(tmp_path / "r.json")]) == 2
    assert "no NeuronCore" in capsys.readouterr().err and not (tmp_path / "r.json").exists()


def test_a_device_without_awss_package_is_not_enough(tmp_path) -> None:
    (tmp_path / "neuron0").touch()
    assert "AWS's package nki is not installed" in measuring.missing(str(tmp_path))


def test_what_a_device_gives_becomes_a_record(tmp_path, capsys, monkeypatch) -> None:
    """The device is played; the record says made only where somebody marks it so."""
    monkeypatch.setattr(measuring, "missing", lambda: "")
    monkeypatch.setattr(measuring, "measure", lambda it: [1e-6, 2e-6])
    monkeypatch.setattr(measuring, "PRODUCT", Path(tmp_path / "product"))
    monkeypatch.setattr(measuring, "versions", lambda: {"nki": "0.7.0"})
    (tmp_path / "product").write_text("trn2.48xlarge\n")
    to = tmp_path / "r.json"
    assert main(["measure", "--row", ROW, "--to", str(to)]) == 0
    record = measured.read(to)
    assert record.instance == "trn2.48xlarge" and record.rows[0].id == ROW
    assert main(["measure", "--read", str(to)]) == 0
    assert ROW in capsys.readouterr().out
