"""Providers in: one adapter for each wire format of model answers.

`adapter(name)` gives a new one for one response; what it is fed and gives stands at `Adapter`.
Agents, which run their calls by themselves, have an adapter for all that they say (`Agent`).
Adapters see event payloads, ids and arguments, and none of them another one. Not here: which events
follow from a response (`definitions.answering`), I/O of any kind.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from definitions.providers.acp_agent import AcpAgent
from definitions.providers.adapter import Adapter
from definitions.providers.agent import Agent, AgentDelta, AgentEvent, AgentPiece, AgentSettle
from definitions.providers.agent_lines import AgentLines
from definitions.providers.anthropic import Anthropic
from definitions.providers.bedrock import Bedrock
from definitions.providers.claude_code import ClaudeCode
from definitions.providers.claude_code_agent import ClaudeCodeAgent
from definitions.providers.cohere import Cohere
from definitions.providers.gemini import Gemini
from definitions.providers.gemini_interactions import GeminiInteractions
from definitions.providers.ollama import Ollama
from definitions.providers.openai_chat import OpenAIChat
from definitions.providers.openai_responses import OpenAIResponses
from definitions.providers.outcome import Call, Hint, Incident, Piece, Ran, Response, Why
from definitions.providers.settling import call_data, message_data

__all__ = [
    "ADAPTERS",
    "AcpAgent",
    "Adapter",
    "Agent",
    "AgentDelta",
    "AgentEvent",
    "AgentLines",
    "AgentPiece",
    "AgentSettle",
    "Anthropic",
    "Bedrock",
    "Call",
    "ClaudeCode",
    "ClaudeCodeAgent",
    "Cohere",
    "Gemini",
    "GeminiInteractions",
    "Hint",
    "Incident",
    "Ollama",
    "OpenAIChat",
    "OpenAIResponses",
    "Piece",
    "Ran",
    "Response",
    "Why",
    "adapter",
    "call_data",
    "message_data",
]

ADAPTERS: Mapping[str, type[Adapter]] = {
    kind.provider: kind
    for kind in (
        Anthropic,
        Bedrock,
        ClaudeCode,
        Cohere,
        Gemini,
        GeminiInteractions,
        Ollama,
        OpenAIChat,
        OpenAIResponses,
    )
}
"""The adapters by the name of their format."""


def adapter(
    name: str, *, conversation: str = "", attempt: str = "", in_use: Container[str] = ()
) -> Adapter:
    """Give a new adapter for one response in the format `name`.

    Ids that it mints depend on `conversation` and `attempt`; `in_use` answers, with `in`, whether a
    call id belongs to a call outside this attempt. `ValueError` for a name that nobody has.
    """
    kind = ADAPTERS.get(name)
    if kind is None:
        msg = f"provider: expected one of {', '.join(sorted(ADAPTERS))}, got {name!r}"
        raise ValueError(msg)
    return kind(conversation=conversation, attempt=attempt, in_use=in_use)
