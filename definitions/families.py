"""Families of tools: one table, from the names that products give their tools to a family.

Data and its look-up. Icon, title and the category that groups count all come from the family;
there is no second list. Not here: how a call reads on one line (`rows`).
"""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from assembler.engine.values import Object

__all__ = [
    "CATEGORIES",
    "FAMILIES",
    "GENERIC",
    "Family",
    "category_of",
    "family_of",
    "files_of",
]


class Family(Struct, frozen=True):
    """Tools that do one kind of thing: how groups count them, and how people see them.

    `icon` is a word that a client has a picture for, `title` a word or two for people. `fields`
    are the arguments that a row shows, the most telling first; `others` those that it shows when
    a call has none of them. Neither: any argument. `tools` are names, compared without case, `_`,
    `-`, `.`, `/` and blanks.
    """

    name: str
    category: str
    icon: str
    title: str
    fields: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


def _family(name: str, category: str, *, icon: str, title: str, **words: str) -> Family:
    return Family(
        name, category, icon, title, **{field: tuple(text.split()) for field, text in words.items()}
    )


_PATHS = "path file_path filePath target_file notebook_path absolute_path filename file"
_MANY_PATHS = "paths file_paths files"
_TASK = "description title prompt task message objective"

GENERIC = _family("generic", "tool", icon="tool", title="Tool")

FAMILIES: tuple[Family, ...] = (
    _family(
        "read",
        "read",
        icon="file",
        title="Read",
        fields=_PATHS,
        others=f"{_MANY_PATHS} line_number",
        tools="""
        read read_file read_files read_many_files read_text_file file_read fs_read view view_file
        open open_file cat notebook_read get_file_contents fs/read_text_file
        goto scroll_up scroll_down
        """,
    ),
    _family(
        "read-image",
        "read-image",
        icon="image",
        title="Read image",
        fields=_PATHS,
        others="url",
        tools="read_image view_image open_image read_media_file",
    ),
    _family(
        "write",
        "write",
        icon="file-plus",
        title="Write",
        fields=_PATHS,
        others=_MANY_PATHS,
        tools="""
        write write_file write_to_file create create_file new_file save_file file_write fs_write
        fs/write_text_file
        """,
    ),
    _family(
        "edit",
        "edit",
        icon="pencil",
        title="Edit",
        fields=f"{_PATHS} patch diff input",
        others=_MANY_PATHS,
        tools="""
        edit edit_file multi_edit reapply str_replace str_replace_editor str_replace_based_edit_tool
        search_replace replace replace_in_file insert insert_edit_into_file undo_edit
        apply_patch apply_diff patch notebook_edit edit_notebook edit_notebook_file
        delete delete_file remove_file move_file rename_file
        """,
    ),
    _family(
        "search",
        "search",
        icon="search",
        title="Search",
        fields="pattern query regex glob glob_pattern search_term symbol operation",
        others=f"{_PATHS} relative_workspace_path directory dir_path {_MANY_PATHS}",
        tools="""
        search grep glob find ls list list_dir list_directory list_files directory_tree rg ripgrep
        grep_search glob_search glob_file_search file_search find_file find_files search_file
        search_files search_dir search_file_content search_code codebase_search code_search
        semantic_search lsp list_code_definition_names list_code_usages
        """,
    ),
    _family(
        "web-search",
        "web-search",
        icon="globe",
        title="Web search",
        fields="query q search_query search_term",
        others="queries prompt",
        tools="""
        web_search search_web google_web_search google_search brave_web_search internet_search
        web_search_preview tavily_search tavily_search_results_json exa_search
        """,
    ),
    _family(
        "web-fetch",
        "web-fetch",
        icon="link",
        title="Fetch",
        fields="url uri",
        others="urls prompt",
        tools="""
        web_fetch fetch fetch_url url_fetch fetch_webpage open_url read_url read_url_content
        url_context browse
        """,
    ),
    _family(
        "todo",
        "plan",
        icon="list",
        title="To-do",
        fields="todos plan items tasks task_list objective subject description title",
        others="explanation goal_id task_id id action",
        tools="""
        todo todo_list todo_write todo_read write_todos read_todos update_todos manage_todo_list
        task_tracker update_plan create_goal update_goal get_goal task_create task_update task_list
        task_get
        """,
    ),
    _family(
        "question",
        "question",
        icon="question",
        title="Ask",
        fields="question questions prompt message",
        others="title",
        tools="""
        question ask ask_question ask_user ask_user_question ask_followup_question ask_human
        request_user_input elicit
        """,
    ),
    _family(
        "details",
        "tool",
        icon="info",
        title="Details",
        fields="title summary text",
        tools="details show_details",
    ),
    _family(
        "bash",
        "command",
        icon="terminal",
        title="Run",
        fields="command cmd script commands",
        others="chars input bash_id shell_id job_id task_id session_id process_id pid description",
        tools="""
        bash sh zsh shell pwsh powershell execute_pwsh cmd terminal command execute execute_bash
        execute_command exec exec_command run run_command run_shell_command run_terminal_cmd
        run_terminal_command run_in_terminal get_terminal_output shell_command local_shell
        unified_exec write_stdin bash_tool bash_output kill_bash kill_shell task_output task_stop
        job_output job_list job_kill read_background_output list_background_processes
        """,
    ),
    _family(
        "code",
        "code",
        icon="code",
        title="Run code",
        fields="description code script source input",
        tools="""
        code run_code execute_code code_execution code_interpreter code_mode python run_python
        execute_python ipython execute_ipython_cell jupyter repl js_repl node_repl
        """,
    ),
    _family(
        "skill",
        "tool",
        icon="book",
        title="Skill",
        fields="skill skill_name name command",
        tools="skill use_skill activate_skill load_skill",
    ),
    _family(
        "present",
        "tool",
        icon="eye",
        title="Present",
        fields=f"{_PATHS} title",
        others=f"{_MANY_PATHS} description",
        tools="present present_file present_files",
    ),
    _family(
        "subagent",
        "subagent",
        icon="agent",
        title="Agent",
        fields=_TASK,
        others="instructions input meta script name subagent_id agent_id agent_name id",
        tools="""
        agent subagent sub_agent subagent_fork run_subagent invoke_subagent invoke_agent spawn_agent
        dispatch_agent delegate delegate_task delegate_to_agent codebase_investigator task new_task
        agent_swarm workflow send_message send_input wait_agent list_agents interrupt_agent
        """,
    ),
    _family(
        "plan",
        "plan",
        icon="map",
        title="Plan",
        fields="plan title response summary",
        tools="plan create_plan submit_plan enter_plan_mode exit_plan_mode plan_mode_respond",
    ),
    GENERIC,
)

CATEGORIES = frozenset(family.category for family in FAMILIES)

_IGNORED = str.maketrans("", "", "_-. /")


def _bare(name: str) -> str:
    return name.casefold().translate(_IGNORED)


_BY_NAME = {_bare(tool): family for family in FAMILIES for tool in family.tools}


@lru_cache(maxsize=1024)
def family_of(name: str) -> Family:
    """Give the family of a tool by its name alone. O(1).

    A tool of an MCP server (`mcp__server__tool`) is what its own name says.
    """
    known = _BY_NAME.get(_bare(name))
    if known is None and name.startswith("mcp__"):
        known = _BY_NAME.get(_bare(name.rpartition("__")[2]))
    return known or GENERIC


def category_of(name: str) -> str:
    """Give the category under which groups count a tool. O(1)."""
    return family_of(name).category


_WRITES = frozenset({"write", "edit"})


def files_of(name: str, arguments: Object | None) -> tuple[str, ...]:
    """Give the files that a call writes or changes, by its family and its arguments. O(1)."""
    if arguments is None or family_of(name).name not in _WRITES:
        return ()
    if arguments.get("command") == "view":  # editors that can look as well
        return ()
    told = (arguments.get(field) for field in _PATHS.split())
    return tuple([path for path in told if type(path) is str and path][:1])
