"""Error codes: complete, sourced, and found in logs as the documentation prints them."""

import io
import subprocess
import sys

import pytest

from utils.cli.commands import symptoms as verb
from utils.course import catalog
from utils.facts import fact
from utils.facts.errors import by_words, errors, in_log, unknown_codes

# Lines as nrt-troubleshoot.rst and deploy/troubleshooting.rst print them, with what they mean.
LINES = {
    "ERROR   NRT:nrt_allocate_neuron_cores  NeuronCore(s) not available - Requested:nc1-nc1"
    " Available:0": ["cores-in-use"],
    "Failure: NRT_EXEC_SW_NQ_OVERFLOW in nrt_execute()": ["NRT_EXEC_SW_NQ_OVERFLOW"],
    "NMGR:dlr_infer  Inference completed with err: 5": ["NRT_TIMEOUT"],
    "neuron:mc_alloc: device mempool [0:0] total 1073741568 occupied 960539030 needed 1272"
    " available 768": ["device-memory"],
    "Uncorrectable HBM memory error is detected. Execution results may be invalid. Please reload"
    " the neuron driver or reboot your EC2 instance": ["NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE"],
    "Uncorrectable HBM memory error is detected. Execution results may be invalid. Please terminate"
    " this instance": ["NRT_EXEC_HW_ERR_HBM_UE"],
    "\x1b[31m[NCC_EVRF009] The combined memory needed for the model's activation tensors exceeds"
    " the high-bandwidth memory limit\x1b[0m": ["NCC_EVRF009"],
    "TDRV:tdrv_init_mla_phase1  Could not open the nd1": ["device-not-there"],
    "make: *** [all] Error 1": [],
    "step 1004: loss 1.2, error 0.5, NEURON_RT_VISIBLE_CORES=0-3, exit status 1": [],
    "2024-Jun-26 15 input tensors were dumped": [],
    "1006": ["NRT_EXEC_OOB"],
}


def test_every_error_says_cause_action_source_and_a_lesson_that_exists() -> None:
    lessons = {lesson.number for lesson in catalog.lessons()} | {"17"}
    assert len(errors()) == 113
    assert sum(code.startswith("NCC_") for code in errors()) == 60
    numbers = [error.number for error in errors().values() if error.number]
    assert len(numbers) == len(set(numbers)) == 27
    for error in errors().values():
        assert error.cause and error.action and error.source.endswith(".rst"), error.code
        assert error.messages or error.number, error.code
        assert error.lesson in lessons, error.code
        assert error.date == fact("neuron-error-codes").date


@pytest.mark.parametrize("line", LINES)
def test_a_line_names_what_it_means_and_nothing_else(line: str) -> None:
    assert [hit.error.code for hit in in_log(line)] == LINES[line]


def test_every_message_of_the_table_finds_its_entry() -> None:
    for error in errors().values():
        for message in error.messages:
            assert error in [hit.error for hit in in_log(message.replace("…", " 7 "))], message


def test_a_log_gives_its_entries_in_its_order_each_once() -> None:
    log = "\n".join([*LINES, *LINES])
    codes = [hit.error.code for hit in in_log(log)]
    assert codes == [
        code for expected in LINES.values() for code in expected if code != "NRT_EXEC_OOB"
    ]
    assert unknown_codes("NCC_EXYZ123 EVRF004 NRT_SUCCESS NRT_NEW") == ["NCC_EXYZ123", "NRT_NEW"]


def test_words_are_ranked() -> None:
    texts = {"a": "a core in use", "b": "cores-in-use by a process", "c": "no such thing"}
    assert by_words("cores in use", texts) == ["b", "a"]
    assert by_words("zebra", texts) == by_words("", texts) == []


def test_the_verb_finds_logs_and_words_and_says_when_it_does_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def output(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = verb.main(list(arguments))
        return status, *capsys.readouterr()

    status, text, _ = output("loader", "waits")
    assert status == 0 and text.startswith("starved\n") and "lesson   lesson 06, section 8" in text
    status, text, _ = output("EVRF004")
    assert (status, text.splitlines()[0]) == (0, "NCC_EVRF004")
    assert "lesson   02 of this course" in text and "EVRF004.rst" in text
    log = b"\xff\nrank 3: NRT_TIMEOUT\nNCC_EXYZ123\nRX, connection closed by remote peer"
    status, text, _ = output(stdin=log)
    assert status == 0 and "NCC_EXYZ123 has no entry" in text and "In the order of the log" in text
    assert text.index("NRT_TIMEOUT (5)") < text.index("rank-gone")
    assert output("zebra")[::2] == (1, output("zebra")[2]) and "Nothing here" in output("zebra")[2]
    status, _, text = output("-", stdin=b"Traceback\nValueError: x")
    assert status == 1 and "No documented code or message" in text
    assert output("NCC_EXYZ123")[0] == 1
    assert output(stdin=b" \n")[0] == 2


def test_searching_imports_neither_torch_nor_notebooks() -> None:
    code = (
        "import sys; from utils.cli.commands import symptoms; symptoms.main(['NRT_TIMEOUT']);"
        "print({'torch', 'IPython', 'numpy'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.endswith("set()\n")
