"""The facade that a chat backend embeds: turns, steps, attempts, dispatches.

The rules are generators that ask for what they need (`turns`, `attempts`, `dispatches`, over one
`desk`); two thin faces do what they ask for: `facade` in an event loop, `plain` without one. What
is stored when an answer ends is `definitions.answering`. Not here: calling a model, running a tool.
"""

from __future__ import annotations

from definitions.backend.desk import Question
from definitions.backend.facade import (
    AgentSource,
    Attempt,
    Conversation,
    Conversations,
    Dispatch,
    Step,
    Turn,
)
from definitions.backend.plain import (
    SyncAgentSource,
    SyncAttempt,
    SyncConversation,
    SyncConversations,
    SyncDispatch,
    SyncStep,
    SyncTurn,
)
from definitions.backend.values import Answer, AttemptLost
from definitions.providers import Call

__all__ = [
    "AgentSource",
    "Answer",
    "Attempt",
    "AttemptLost",
    "Call",
    "Conversation",
    "Conversations",
    "Dispatch",
    "Question",
    "Step",
    "SyncAgentSource",
    "SyncAttempt",
    "SyncConversation",
    "SyncConversations",
    "SyncDispatch",
    "SyncStep",
    "SyncTurn",
    "Turn",
]
