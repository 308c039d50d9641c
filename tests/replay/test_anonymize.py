"""`assembler anonymize`: the shape stays, the words go.

Shape: the rows, their kinds and stages, the groups, what is odd. Words: whatever anybody said.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assembler import codec, plugins
from assembler.cli import main
from assembler.cli.inputs import played, single
from assembler.engine.errors import AssemblerError
from assembler.recordings.format import Recording, read_lines
from assembler.recordings.lowering import Lowering
from assembler.sharing.anonymizing import anonymized
from assembler.sharing.masking import Masking
from definitions.anonymizing import HARMLESS

OURS = sorted((Path(__file__).parents[2] / "recordings").glob("*.jsonl"))
SEED = "only for tests"
MASKING = Masking(SEED.encode())
WORD = re.compile(r"[^\W\d_]{4,}")
KEPT = {field: set(values) for field, values in HARMLESS.words.items()}
SAMPLE_BYTES_MAX = 60_000

Anonymize = Callable[..., list[Any]]


@pytest.fixture
def anonymize(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Anonymize:
    """Give the lines of the anonymized file, which stands in `tmp_path`."""

    def run(file: Path, *options: str) -> list[Any]:
        output = tmp_path / "anonymous.jsonl"
        argv = ["anonymize", str(file), "--seed", SEED, "-o", str(output), *options]
        assert main(argv) == 0
        return [json.loads(line) for line in output.read_text("utf-8").splitlines()]

    return run


def shape(file: Path) -> Any:
    return shape_of(single(str(file)))


def shape_of(recording: Recording) -> Any:
    run = played(recording, plugins.catalog(), ["chat"])
    view = run.assembler.view("chat")
    names = ("stage", "status", "outcome", "decision", "parent_loaded")
    rows = [
        (node.kind, node.turn, node.step, *(node.data.get(name) for name in names))
        for node in view.nodes
    ]
    groups = [codec.plain(group.to_json()) for group in view.groups]
    told = [(len(each["members"]), each["status"], each["counts"]) for each in groups]
    return rows, told, sorted(odd.kind for odd in run.assembler.findings())


def texts(value: Any, field: str = "") -> Iterator[str]:
    """Every text that a line says; those that may stay are left out."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name not in HARMLESS.fields:
                yield name
            if name == "name" and {"call_id", "command_id"} & value.keys():
                continue  # of a tool, which stays
            yield from texts(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each, field)
    elif isinstance(value, str) and value not in KEPT.get(field, ()):
        try:
            inner = json.loads(value) if field == "arguments" else None
        except ValueError:
            inner = None
        if isinstance(inner, dict):
            yield from texts(inner)
        else:
            yield value


def words(lines: list[Any]) -> set[str]:
    """The words that are said in lines of the engine's operations, in whole texts."""
    said: set[str] = set()
    for line in lines:
        if line.get("op") == "delta" and line["type"] == "tool-call":
            continue  # pieces of JSON: the same stands in the call
        parts = [line.get("event", {}).get("data"), line.get("data")]
        parts += [event["data"] for event in line.get("events", ())]
        for text in texts([*parts, line.get("title"), line.get("about")]):
            said |= {word.casefold() for word in WORD.findall(text)}
    return said


def lowered(file: Path) -> list[Any]:
    recording = single(str(file))
    lowering = Lowering(recording, plugins.catalog())
    return [codec.plain(recording.header), *lowering.all(recording.operations)]


@pytest.mark.parametrize("file", OURS, ids=lambda path: path.stem)
def test_the_shape_stays_and_all_ways_agree(
    anonymize: Anonymize, tmp_path: Path, file: Path
) -> None:
    anonymize(file)
    result = tmp_path / "anonymous.jsonl"
    assert shape(result) == shape(file)
    assert main(["verify", str(result)]) == 0
    assert main(["check", str(result)]) == 0


@pytest.mark.parametrize("file", OURS, ids=lambda path: path.stem)
def test_no_word_that_was_said_is_left(anonymize: Anonymize, file: Path) -> None:
    before = words(lowered(file))
    assert before
    assert before & words(anonymize(file)) == set()


def test_streams_of_others_keep_their_shape_too(shared: Path) -> None:
    looked = 0
    for folder in sorted((shared / "streams").iterdir()):
        files = sorted(folder.rglob("*")) if folder.is_dir() else []
        for file in [each for each in files if each.is_file()][:8]:
            if file.stat().st_size > SAMPLE_BYTES_MAX:
                continue
            try:
                single(str(file))
            except AssemblerError:
                continue
            looked += 1
            assert shape_of(replaced(file)) == shape(file), file.name
            break
    assert looked > 10


def replaced(file: Path) -> Recording:
    header, *lines = lowered(file)
    made = anonymized(header, lines, HARMLESS, SEED.encode(), names=False)
    return next(read_lines((codec.encode(line) + b"\n" for line in made), file.name))


def test_operations_of_the_engine_stay_one_for_one(anonymize: Anonymize) -> None:
    file = OURS[0].with_name("parallel-writes.jsonl")
    told = [json.loads(line) for line in file.read_text("utf-8").splitlines()[1:]]
    kept = [line["op"] for line in told if line["op"] != "expect"]
    assert "settle" in kept
    assert [line["op"] for line in anonymize(file)[1:]] == kept


def written(deltas: list[Any]) -> list[str]:
    """The arguments of the calls, in the order in which they began."""
    found: dict[str, str] = {}
    for each in deltas:
        if each["type"] == "tool-call":
            name = each["data"]["call_id"]
            found[name] = found.get(name, "") + each["data"]["arguments"]
    return list(found.values())


def test_pieces_are_cut_at_the_same_places(anonymize: Anonymize) -> None:
    file = OURS[0].with_name("parallel-writes.jsonl")
    before = [line for line in lowered(file) if line.get("op") == "delta"]
    after = [line for line in anonymize(file) if line.get("op") == "delta"]
    assert len(before) == len(after) > 300
    for old, new in zip(before, after, strict=True):
        for field in ("text", "arguments"):
            assert len(old["data"].get(field, "")) == len(new["data"].get(field, ""))
    names = [list(json.loads(text)) for text in written(after)]
    assert names == [list(json.loads(text)) for text in written(before)]
    assert ["path", "content"] in names


def test_the_same_seed_gives_the_same_and_none_gives_another(
    anonymize: Anonymize, tmp_path: Path
) -> None:
    file = OURS[0]
    assert anonymize(file) == anonymize(file)
    outputs = []
    for number in range(2):
        output = tmp_path / f"{number}.jsonl"
        assert main(["anonymize", str(file), "-o", str(output)]) == 0
        outputs.append(output.read_bytes())
    assert outputs[0] != outputs[1]


def made(tmp_path: Path, *events: dict[str, Any], **header: Any) -> Path:
    file = tmp_path / "made.jsonl"
    lines = [{"recording": 1, "title": "t", **header}]
    lines += [{"op": "append", "event": event} for event in events]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return file


def call(given_: Any, **data: Any) -> dict[str, Any]:
    told = {"turn": 1, "step": 1, "call_id": "call_ab12", "name": "mcp__office__find"}
    return {"type": "tool/call", "data": {**told, "arguments": json.dumps(given_), **data}}


def data_of(line: Any) -> Any:
    return line["event"]["data"]


def test_arguments_stay_valid_with_the_names_of_known_fields(
    anonymize: Anonymize, tmp_path: Path
) -> None:
    given_ = {"path": "/home/ada/notes.md", "patients": {"Ada": 41}, "replace_all": True}
    (_, line) = anonymize(made(tmp_path, call(given_)))
    found = json.loads(data_of(line)["arguments"])
    assert next(iter(found)) == "path"
    assert re.fullmatch(r"/[a-z]{4}/[a-z]{3}/[a-z]{5}\.[a-z]{2}", found["path"])
    assert "patients" not in found
    assert found["replace_all"] is True
    (inner,) = [value for value in found.values() if isinstance(value, dict)]
    assert "Ada" not in inner
    assert 10 <= next(iter(inner.values())) <= 99


def test_what_agreed_before_agrees_however_it_is_spelled(
    anonymize: Anonymize, tmp_path: Path
) -> None:
    asked = {"path": "é/ü.md", "text": 'one "two"\n\tthree 中文 😀', "n": -12.5, "big": 10**15}
    request = {
        "type": "permission/request",
        "data": {"call_id": "call_ab12", "request_id": 7, "input": asked},
    }
    plain = call(asked)
    spelled = json.dumps(asked, ensure_ascii=False, indent=1)
    _, one, two, three = anonymize(
        made(tmp_path, plain, call(asked, arguments=spelled, call_id="c2"), request)
    )
    found = data_of(three)["input"]
    assert json.loads(data_of(one)["arguments"]) == found
    assert json.loads(data_of(two)["arguments"]) == found
    assert data_of(three)["call_id"] == data_of(one)["call_id"] != "call_ab12"
    assert data_of(three)["request_id"] == 7


def test_names_of_tools_stay_unless_asked(anonymize: Anonymize, tmp_path: Path) -> None:
    file = made(tmp_path, call({}), hidden_tools=["mcp__office__find"])
    header, line = anonymize(file)
    assert data_of(line)["name"] == "mcp__office__find" == header["hidden_tools"][0]
    header, line = anonymize(file, "--names")
    assert re.fullmatch(r"[a-z]{3}__[a-z]{6}__[a-z]{4}", data_of(line)["name"])
    assert data_of(line)["name"] == header["hidden_tools"][0] != "mcp__office__find"


def test_what_nobody_knows_is_replaced(anonymize: Anonymize, tmp_path: Path) -> None:
    odd = {"type": "acme/login", "data": {"customer": "Ada", "at": 1234, "deep": [{"Ada": True}]}}
    text = json.dumps(anonymize(made(tmp_path, odd))[1])
    for word in ("acme", "login", "customer", "Ada", "1234", "deep"):
        assert word not in text


def test_a_foreign_record_without_a_row_stays_without_one(
    anonymize: Anonymize, tmp_path: Path
) -> None:
    _, line = anonymize(made(tmp_path, {"type": "codex/ada-settings", "data": {}}))
    assert re.fullmatch(r"codex/[a-z]{3}-[a-z]{8}", line["event"]["type"])
    assert "ada" not in line["event"]["type"]


def test_times_move_together(anonymize: Anonymize, tmp_path: Path) -> None:
    began = 1_767_225_600_123
    events = [{"type": "turn/start", "data": {"turn": 1}, "time": began + ms} for ms in (0, 1_500)]
    _, one, two = anonymize(made(tmp_path, *events))
    assert one["event"]["time"] == 978_307_200_000
    assert two["event"]["time"] - one["event"]["time"] == 1_500


def test_bad_input_is_one_line_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, output = tmp_path / "bad.jsonl", tmp_path / "out.jsonl"
    file.write_text('{"recording": 1}\n{"op": "nothing"}\n', "utf-8")
    assert main(["anonymize", str(file), "-o", str(output)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not output.exists()


# -- what a text becomes ----------------------------------------------------------------------


@given(st.text())
@example("Straße, 中文 «العربية» — 😀\r\n\te\u0301 \u200d_x 0x1F")
def test_every_letter_changes_and_nothing_else(text: str) -> None:
    masked = MASKING.text(text)
    assert len(masked) == len(text)
    for old, new in zip(text, masked, strict=True):
        assert len(old.encode("utf-16", "surrogatepass")) == len(
            new.encode("utf-16", "surrogatepass")
        )
        assert old.isspace() == new.isspace()
        if old in string.ascii_letters + string.digits:
            assert new != old
            assert (new.islower(), new.isupper(), new.isdigit()) == (
                old.islower(),
                old.isupper(),
                old.isdigit(),
            )
        elif old.isascii():
            assert new == old


@given(st.text(), st.text())
def test_a_beginning_becomes_the_beginning_of_the_whole(one: str, two: str) -> None:
    assert MASKING.text(one + two).startswith(MASKING.text(one))


@given(st.text(alphabet="ab1 /\né中"), st.text(alphabet="ab1 /\né中"))
def test_what_differs_differs_and_what_agrees_agrees(one: str, two: str) -> None:
    assert (MASKING.text(one) == MASKING.text(two)) == (one == two)


def test_one_word_in_two_places_becomes_two() -> None:
    assert len(set(MASKING.text("data " * 8).split())) > 4
    assert len(set(MASKING.text("a" * 30))) > 4
    first, second = MASKING.text("import one\nimport one\n").splitlines()
    assert first == second


@given(st.integers(-(2**63), 2**64 - 1))
@example(9_300_000_000_000_000_000)
def test_numbers_keep_their_digits_and_can_still_be_said(number: int) -> None:
    masked = MASKING.number(number)
    assert len(str(masked)) == len(str(number))
    assert -(2**63) <= masked < 2**64


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def kinds(value: Any) -> Any:
    if isinstance(value, dict):
        return [kinds(each) for each in value.values()]
    if isinstance(value, list):
        return [kinds(each) for each in value]
    return value if value is None or isinstance(value, bool) else type(value).__name__


@given(JSON, st.booleans(), st.sampled_from([None, 2]))
def test_json_stays_json_of_the_same_kinds(value: Any, is_ascii: bool, indent: Any) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    masked = MASKING.json_text(text, lambda *_: False)
    assert len(masked) == len(text)
    assert kinds(json.loads(masked)) == kinds(value)


@given(st.text(alphabet='{}[]",:\\ue01-abntf \n中'))
def test_what_is_no_json_keeps_its_length(text: str) -> None:
    assert len(MASKING.json_text(text, lambda *_: False)) == len(text)
