"""How a tool call reads on one line, at every stage: `row` of its Node."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assembler.engine.assembler import Assembler
from assembler.engine.patches import TextOp
from assembler.engine.values import Text
from definitions import catalog
from definitions.arguments import PartialArguments
from definitions.families import FAMILIES
from definitions.rows import LOOK_MAX, SUMMARY_MAX, RowReader
from definitions.rows.wording import Wording, command, line, patch, path
from tests.definitions.support import delta, event

OPENING = [event(1, "turn/start", turn=1), event(2, "step/start", turn=1, step=1)]


class Call:
    """One call in a conversation, and its row."""

    def __init__(self, name: str) -> None:
        self.chat = Assembler(catalog(), strict=True)
        self.chat.load(OPENING)
        self.name, self.number, self.seq = name, 0, 2
        self.ops: list[Any] = []

    def write(self, text: str) -> Any:
        """Another piece of its arguments."""
        self.number += 1
        data = {"block": 0, "call_id": "c", "name": self.name, "arguments": text}
        self.chat.emit(delta(self.number, "tool-call", after=2, **data))
        return self.row()

    def dispatch(self, text: str) -> Any:
        data = {"turn": 1, "step": 1, "call_id": "c", "name": self.name, "arguments": text}
        self.seq += 1
        self.chat.append(event(self.seq, "tool/call", **data))
        return self.row()

    def end(self, text: str = "", **data: Any) -> Any:
        content = [{"type": "text", "text": text}] if text else []
        self.seq += 1
        self.chat.append(event(self.seq, "tool/result", call_id="c", content=content, **data))
        return self.row()

    def row(self) -> Any:
        patch = self.chat.flush().get("chat")
        self.ops = list(patch.ops) if patch else []
        return self.chat.view("chat")["tool:c"].to_json()["data"]["row"]


READINGS: list[tuple[str, str, dict[str, Any], str]] = [
    # family, a name of it, arguments, summary
    ("read", "Read", {"file_path": "src/a.py", "limit": 4}, "src/a.py"),
    ("read", "read_many_files", {"paths": ["a.py", "./b.py"]}, "a.py, b.py"),
    ("read", "read_file", {"path": "file:///home/a.py"}, "/home/a.py"),
    ("read", "read_file", {"path": "./a.py"}, "a.py"),
    ("read-image", "view_image", {"path": "a.png"}, "a.png"),
    ("write", "write_to_file", {"path": "a.py", "content": "x = 1\n"}, "a.py"),
    ("edit", "MultiEdit", {"file_path": "a.py", "edits": [{"old_string": "x"}]}, "a.py"),
    ("edit", "str_replace_editor", {"command": "str_replace", "path": "a.py"}, "a.py"),
    ("search", "Grep", {"pattern": "x  y"}, "x y"),
    ("search", "list_dir", {"path": "."}, "."),
    ("search", "list_directory", {"path": "src"}, "src"),
    ("web-search", "google_web_search", {"query": "how far is the moon"}, "how far is the moon"),
    ("web-fetch", "WebFetch", {"url": "https://a.example", "prompt": "p"}, "https://a.example"),
    ("todo", "TodoWrite", {"todos": [{"content": "one"}, {"content": "two"}]}, "one"),
    (
        "question",
        "AskUserQuestion",
        {"questions": [{"question": "Which?", "header": "W"}]},
        "Which?",
    ),
    ("details", "show_details", {"title": "The plan"}, "The plan"),
    ("bash", "Bash", {"command": "ls -la", "description": "Lists files"}, "ls -la"),
    ("bash", "shell", {"command": ["bash", "-lc", "cd a\nls"]}, "cd a …"),
    ("bash", "exec_command", {"cmd": ["ls", "-l", "a"]}, "ls -l a"),
    ("bash", "run_shell_command", {"command": "python - <<E\nprint(1)\nE"}, "python - <<E …"),
    ("bash", "BashOutput", {"bash_id": "b1"}, "b1"),
    ("code", "execute_ipython_cell", {"code": "import a\n"}, "import a"),
    ("skill", "Skill", {"skill": "pdf", "args": "a.pdf"}, "pdf"),
    ("present", "present_file", {"path": "out.html"}, "out.html"),
    ("subagent", "Task", {"description": "Find it", "prompt": "Look for x"}, "Find it"),
    ("subagent", "spawn_agent", {"message": "Look for x"}, "Look for x"),
    ("plan", "ExitPlanMode", {"plan": "# First\n\nthen"}, "# First then"),
    ("generic", "get_weather", {"city": "Paris", "days": 3}, "get_weather Paris"),
    ("generic", "double", {"value": 21}, "double 21"),
    ("generic", "mcp__server__tool", {"deep": {"title": "x"}}, "mcp__server__tool x"),
    ("generic", "noop", {}, "noop"),
]


def test_every_family_is_in_the_table() -> None:
    names = [family for family, *_ in READINGS]
    assert list(dict.fromkeys(names)) == [family.name for family in FAMILIES]


@pytest.mark.parametrize(("family", "name", "arguments", "summary"), READINGS)
def test_a_call_reads_the_same_at_every_stage(
    family: str, name: str, arguments: dict[str, Any], summary: str
) -> None:
    known = {each.name: each for each in FAMILIES}[family]
    looks = {"icon": known.icon, "title": known.title, "summary": summary}
    text = json.dumps(arguments)
    call = Call(name)
    assert call.write("")["expandable"] is False
    assert call.write(text) == {**looks, "expandable": False, "stage": "preparing"}
    expandable = bool(arguments)
    assert call.dispatch(text) == {**looks, "expandable": expandable, "stage": "start"}
    assert call.end() == {**looks, "expandable": expandable, "stage": "result"}


@pytest.mark.parametrize(
    ("name", "arguments", "preparing", "start"),
    [
        ("Grep", {"path": "src", "pattern": "x"}, "x", "x in src"),
        ("Bash", {"description": "Lists files", "command": "ls"}, "ls", "ls"),
        ("job_output", {"wait": True, "job_id": "b1"}, "b1", "b1"),
        ("str_replace_editor", {"command": "view", "path": "a.py"}, "a.py", "view a.py"),
        (
            "TodoWrite",
            {
                "todos": [
                    {"content": "one", "status": "completed"},
                    {"content": "two", "status": "in_progress"},
                ]
            },
            "one",
            "1 of 2 done: two",
        ),
        ("get_goal", {}, "get_goal", "get_goal"),
    ],
)
def test_what_is_dispatched_may_say_more(
    name: str, arguments: dict[str, Any], preparing: str, start: str
) -> None:
    call, text = Call(name), json.dumps(arguments)
    assert call.write(text)["summary"] == preparing
    assert call.dispatch(text)["summary"] == start


PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** End Patch"


@pytest.mark.parametrize("text", [PATCH, json.dumps({"input": PATCH})])
def test_a_patch_reads_by_the_file_that_it_changes(text: str) -> None:
    call = Call("apply_patch")
    assert call.write(text)["summary"] == "src/a.py"
    assert call.dispatch(text)["summary"] == "src/a.py"


@pytest.mark.parametrize(
    ("name", "text", "summary"),
    [
        ("read", '{"path": "a.py", "content": "x', "a.py"),
        ("read", "[1,\n 2]", "[1, 2]"),
        ("read", "{oops", "{oops"),
        ("read", "", ""),
        ("weather", "in Paris", "weather in Paris"),
    ],
)
def test_a_text_that_is_no_object_reads_by_its_beginning(
    name: str, text: str, summary: str
) -> None:
    call = Call(name)
    row = call.dispatch(text)
    assert (row["summary"], row["expandable"]) == (summary or "read", bool(text))


def test_what_runs_is_what_reads() -> None:
    call = Call("write")
    call.dispatch('{"path": "asked.txt"}')
    place = {"call_id": "c", "request_id": "q"}
    call.chat.append(event(4, "permission/request", **place, input={}))
    allowed = {"decision": "allow", "updated_input": {"path": "runs.txt"}}
    call.chat.append(event(5, "permission/answer", **place, **allowed))
    assert call.row()["summary"] == "runs.txt"


def test_a_result_whose_call_is_not_loaded_reads_by_what_it_says() -> None:
    chat = Assembler(catalog(), strict=True)
    content = [{"type": "file", "url": "u"}, {"type": "text", "text": "it\nrains"}]
    chat.load([event(9, "tool/result", call_id="c", content=content)], has_more=True)
    chat.flush()
    row = chat.view("chat")["tool:c"].to_json()["data"]["row"]
    looks = {"icon": "tool", "title": "Tool", "summary": "it rains"}
    assert row == {**looks, "expandable": True, "stage": "result"}


def test_a_result_beside_pieces_of_its_call_reads_by_them() -> None:
    call = Call("read")
    call.write('{"path": "a.')
    assert call.end("done")["summary"] == "a."
    row = call.write('py", "limit": 4')
    looks = {"icon": "file", "title": "Read", "summary": "a.py"}
    assert row == {**looks, "expandable": True, "stage": "result"}


@pytest.mark.parametrize(
    ("arguments", "result", "expandable"),
    [("{}", "", False), ("{}", "done", True), ('{"a": 1}', "", True), ("", "", False)],
)
def test_there_is_something_to_open(arguments: str, result: str, expandable: bool) -> None:
    call = Call("weather")
    call.dispatch(arguments)
    assert call.end(result)["expandable"] is expandable


def test_an_error_can_be_opened() -> None:
    call = Call("weather")
    assert call.dispatch("{}")["expandable"] is False
    assert call.end(error={"name": "E"})["expandable"] is True


# While it is written.


def test_a_growing_summary_is_sent_as_text() -> None:
    call = Call("Bash")
    call.write('{"command":"')
    for piece, summary in (("ls", "ls"), (" -", "ls -"), ("l", "ls -l"), ("a\\n", "ls -la")):
        assert call.write(piece)["summary"] == summary
        assert [type(op) for op in call.ops] == [TextOp, TextOp]
    assert call.write("pwd")["summary"] == "ls -la …"
    call.write("and more")
    assert [op.path for op in call.ops] == [("data", "arguments_text")]


LONG = "ab " * 1_000


@pytest.mark.parametrize(
    ("name", "text", "summary"),
    [
        ("write", '{"path":"a.py","content":"' + LONG, "a.py"),
        ("Task", '{"prompt":"' + LONG, ("ab " * 100)[: SUMMARY_MAX - 1] + "…"),
        ("write", '{"content":"' + "x" * LOOK_MAX, ""),
        ("weather", '{"a":1,"path":"' + LONG, "weather 1"),
        ("read", '{"path":"a","path":"b' + LONG, "a"),
        ("read", '{"path":"","file_path":"b","path":"c' + LONG, "b"),
    ],
)
def test_a_row_is_not_made_again_once_its_field_is_closed(
    name: str, text: str, summary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, growing = RowReader(), Text(text)
    row = reader.row(growing, name)
    assert str(row["summary"]) == summary

    def read(*_: Any) -> None:
        pytest.fail("read again")

    monkeypatch.setattr(PartialArguments, "feed", read)
    monkeypatch.setattr(PartialArguments, "value", property(read))
    for piece in ("more", '"', ',"path":"other.py"', "}"):
        growing = growing.append(piece)
        assert reader.row(growing, name) is row


def test_a_command_in_words_waits_for_what_the_shell_runs() -> None:
    call = Call("shell")
    for piece, summary in (('{"command":["bash"', ""), (', "-lc"', ""), (', "l', "l"), ("s", "ls")):
        assert call.write(piece)["summary"] == summary


def test_a_long_argument_costs_nothing_but_its_text() -> None:
    call = Call("write")
    call.write('{"path":"a.py",')
    call.write('"content":"')
    row = call.chat.view("chat")["tool:c"].data["row"]
    for _ in range(50):
        call.write("word " * 100)
        assert [op.path for op in call.ops] == [("data", "arguments_text")]
        assert call.chat.view("chat")["tool:c"].data["row"] is row


def test_what_lies_behind_the_first_characters_is_not_read() -> None:
    text = '{"content":"' + "x" * LOOK_MAX + '","path":"a.py"}'
    call = Call("write")
    assert call.write(text)["summary"] == ""
    assert call.dispatch(text)["summary"] == "a.py"


def test_a_later_name_is_another_row() -> None:
    text = Text('{"path":"a.py"}')
    reader = RowReader()
    assert reader.row(text, "rea")["title"] == "Tool"
    assert str(reader.row(text, "read")["summary"]) == "a.py"


def test_readers_say_nothing_about_their_text() -> None:
    reader = RowReader()
    reader.row(Text("{"), "read")
    assert reader == RowReader()
    assert hash(reader) == hash(RowReader())


# Whatever the text, however it is cut.

LINES = [
    "./a/b c.py",
    "./",
    ".",
    "file:///a.py",
    "  a \t b\n c \n",
    "ls …\nls",
    "*** Begin Patch\n*** Add File: ./a.py\n+x",
    "*** Begin Patch\n*** End Patch",
    "*** no patch\nat all",
    *("x" * count + "\ny z" for count in range(SUMMARY_MAX - 4, SUMMARY_MAX + 3)),
    "x " * SUMMARY_MAX,
]


@pytest.mark.parametrize("word", [command, line, patch, path])
@pytest.mark.parametrize("text", LINES)
def test_a_line_grows_at_its_end_alone(word: Wording, text: str) -> None:
    after, _ = word(text, True)
    assert len(after) <= SUMMARY_MAX
    said = [word(text[:cut], False) for cut in range(len(text) + 1)]
    for earlier, is_full in said:
        assert after.startswith(earlier)
        assert after == earlier or not is_full


NAMES = st.sampled_from([name for _, name, *_ in READINGS])
KEYS = st.sampled_from(
    ["path", "file_path", "command", "pattern", "todos", "description", "content", "input", "x"]
)
TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["./", "file://a", "a\nb", PATCH, "…", "-lc", "é" * 210, " \n\t ", "👍🏽" * 120]
    ),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=6,
)


@st.composite
def argument_texts(draw: st.DrawFn) -> str:
    """Arguments, with equal keys now and then; or what is no object at all."""
    if draw(st.integers(0, 5)) == 0:
        return draw(st.text(max_size=30))
    members = draw(st.lists(st.tuples(KEYS, VALUES), max_size=4))
    spelled = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in members]
    text = "{" + ", ".join(spelled) + "}"
    return text + draw(st.sampled_from(["", " ", "}", "x"]))


def cut_at(text: str, cuts: list[int]) -> list[str]:
    ends = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    return [text[start:end] for start, end in zip(ends, ends[1:], strict=False)]


def plain(row: Any) -> dict[str, Any]:
    return {key: str(value) if type(value) is Text else value for key, value in row.items()}


@given(NAMES, argument_texts(), st.lists(st.integers(0, 200), max_size=6))
def test_where_the_text_is_cut_makes_no_difference(name: str, text: str, cuts: list[int]) -> None:
    reader, growing, upto = RowReader(), Text(), ""
    for piece in cut_at(text, cuts):
        growing, upto = growing.append(piece), upto + piece
        row = plain(reader.row(growing, name))
        assert row == plain(RowReader().row(Text(upto), name))
        assert (row["stage"], row["expandable"]) == ("preparing", False)
        assert len(row["summary"]) <= SUMMARY_MAX
        assert row["summary"].splitlines() in ([], [row["summary"]])


@given(NAMES, argument_texts(), st.lists(st.integers(0, 200), max_size=4))
def test_a_call_reads_as_after_a_reload(name: str, text: str, cuts: list[int]) -> None:
    call = Call(name)
    for piece in cut_at(text, cuts):
        assert call.write(piece)["expandable"] is False
    row = call.dispatch(text)
    again = Call(name)
    assert again.dispatch(text) == row
    assert len(row["summary"]) <= SUMMARY_MAX


@given(argument_texts(), st.integers(0, 200))
def test_an_older_text_of_one_reader_reads_as_it_did(text: str, cut: int) -> None:
    older = Text(text[:cut])
    newer = older.append(text[cut:])
    reader = RowReader()
    reader.row(newer, "read")
    assert plain(reader.row(older, "read")) == plain(RowReader().row(Text(text[:cut]), "read"))
