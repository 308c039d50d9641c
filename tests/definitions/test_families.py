"""Which family a tool belongs to, by its name alone."""

from __future__ import annotations

import pytest

from definitions.families import CATEGORIES, FAMILIES, GENERIC, category_of, family_of


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("Read", "read"),
        ("read_file", "read"),
        ("view", "read"),
        ("read_image", "read-image"),
        ("Write", "write"),
        ("create_file", "write"),
        ("str_replace_editor", "edit"),
        ("MultiEdit", "edit"),
        ("apply_patch", "edit"),
        ("Grep", "search"),
        ("Glob", "search"),
        ("LS", "search"),
        ("list_directory", "search"),
        ("codebase_search", "search"),
        ("Bash", "command"),
        ("shell", "command"),
        ("run_terminal_cmd", "command"),
        ("run_shell_command", "command"),
        ("execute_bash", "command"),
        ("run_code", "code"),
        ("WebSearch", "web-search"),
        ("google_web_search", "web-search"),
        ("web_fetch", "web-fetch"),
        ("Task", "subagent"),
        ("Agent", "subagent"),
        ("TodoWrite", "plan"),
        ("update_plan", "plan"),
        ("ExitPlanMode", "plan"),
        ("AskUserQuestion", "question"),
        ("mcp__acp__Read", "read"),
        ("mcp__github__create_issue", "tool"),
        ("mcp__server__tool", "tool"),
        ("mcp__", "tool"),
        ("skill", "tool"),
        ("weather", "tool"),
        ("", "tool"),
    ],
)
def test_names_of_real_products(name: str, category: str) -> None:
    assert category_of(name) == category


def test_the_categories_are_those_of_the_contract() -> None:
    reading = {"read", "read-image", "search", "web-search", "web-fetch"}
    doing = {"write", "edit", "command", "code", "subagent", "plan", "question", "tool"}
    assert reading | doing == CATEGORIES


def test_a_name_has_one_family() -> None:
    for family in FAMILIES:
        for tool in family.tools:
            assert family_of(tool) is family, tool
    assert family_of("weather") is GENERIC
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
