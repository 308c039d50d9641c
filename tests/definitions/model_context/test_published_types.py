"""What is sent is what the providers' own packages say that it may be.

Their types are looser than their servers (`valid` is not), but they know every field.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from assembler import Assembler
from definitions import catalog
from definitions.model_context import model_context
from tests.definitions.model_context import test_formats as examples
from tests.definitions.model_context.support import Log, call, reasoning, text
from tests.definitions.model_context.test_anything import logs

Check = Callable[[list[dict[str, Any]]], None]


def _iterated(value: Any) -> None:
    """Look at all of it: pydantic checks an `Iterable` only while it is iterated."""
    if isinstance(value, dict):
        value = value.values()
    elif isinstance(value, str) or not isinstance(value, Iterator | list | tuple):
        return
    for each in value:
        _iterated(each)


def _typed(import_type: Callable[[], Any]) -> Check:
    pydantic = pytest.importorskip("pydantic", reason="needs the extra `test`")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, while they are imported
        try:
            kind = import_type()
        except ImportError as error:
            pytest.skip(f"needs the extra `test`: {error}")
        adapter = pydantic.TypeAdapter(kind)

    def check(told: list[dict[str, Any]]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of tools that are newer than the package
            _iterated(adapter.validate_python(told))

    return check


def _anthropic() -> Any:
    from anthropic.types import MessageParam  # noqa: PLC0415 - may be missing

    return list[MessageParam]


def _openai_chat() -> Any:
    from openai.types.chat import ChatCompletionMessageParam  # noqa: PLC0415 - may be missing

    return list[ChatCompletionMessageParam]


def _openai_responses() -> Any:
    from openai.types.responses import ResponseInputItemParam  # noqa: PLC0415 - may be missing

    return list[ResponseInputItemParam]


def _gemini() -> Any:
    from google.genai.types import Content  # noqa: PLC0415 - may be missing

    return list[Content]


IMPORTS = {
    "anthropic": _anthropic,
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
    "gemini": _gemini,
}


@pytest.fixture(scope="module", params=sorted(IMPORTS))
def typed(request: pytest.FixtureRequest) -> tuple[str, Check]:
    return request.param, _typed(IMPORTS[request.param])


def told_by(log: Log, format: str) -> list[dict[str, Any]]:
    assembler = Assembler(catalog())
    assembler.load(log.events)
    return model_context(assembler, format)


def everything(provider: str) -> Log:
    """An answer with all that its provider may get back."""
    raws = {
        "anthropic": {"type": "tool_use", "caller": {"type": "direct"}},
        "openai_responses": {"type": "function_call", "id": "fc_1", "status": "completed"},
    }
    item = {"type": "reasoning", "id": "rs_1"}
    log = Log().starts("go", examples.PNG, examples.PDF, examples.file("audio/wav", data="aGk="))
    log.says(
        reasoning("I think", signature="c2ln", raw=item),
        text("So", raw={"type": "message", "id": "msg_1"}),
        call("c1", arguments='{"a":1}', raw=raws.get(provider, {}), signature="c2ln"),
        call("c2", arguments='{"a'),
        provider=provider,
    )
    log.results("c1", "x", examples.PNG, {"type": "json", "value": 1}).results("c2", is_error=True)
    return log.steps().says("Done", provider=provider).ends()


def test_the_packages_of_the_providers_take_it(typed: tuple[str, Check]) -> None:
    name, check = typed
    for provider in IMPORTS:
        check(told_by(everything(provider), name))
    if name == "anthropic":
        check(told_by(examples.searched(), name))


def test_the_check_can_fail(typed: tuple[str, Check]) -> None:
    name, check = typed
    odd = told_by(everything(name), name)
    for entry in odd:
        for inner in entry.get("content") or entry.get("parts") or ():
            if isinstance(inner, dict):
                inner.update(type="odd", text=7)
        entry.update(type="odd", tool_calls=7)
    with pytest.raises(ValueError, match="validation error"):
        check(odd)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(log=logs())
def test_they_take_whatever_a_log_holds(typed: tuple[str, Check], log: Log) -> None:
    name, check = typed
    check(told_by(log, name))
