"""What the expectations of a recording mean: `expect`, `raises` and `converges`.

Each gives the differences it found. Not here: expectations that speak of business (they are
plugged in) and how values are compared (`matching`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assembler.engine.errors import AssemblerError, GapError
from assembler.engine.views import View
from assembler.recordings.arriving import disagreement
from assembler.recordings.format import Fields, Operation
from assembler.recordings.matching import Difference, missing_from
from assembler.recordings.running import Run

__all__ = ["differences", "is_expectation"]


def is_expectation(operation: Operation) -> bool:
    """Whether it asks and changes nothing."""
    return operation.name in _ASKED


def differences(run: Run, operation: Operation) -> list[Difference]:
    """Where an expectation does not hold; empty when it does."""
    return _ASKED[operation.name](run, operation.fields)


def _expect(run: Run, fields: Fields) -> list[Difference]:
    run.flush()
    view = fields.get("view", run.views[0])
    if view not in run.views:
        return [Difference("view", f"one of {', '.join(run.views)}", view)]
    found: list[Difference] = []
    for name, value in fields.items():
        if name in _EXPECTED:
            found += _EXPECTED[name](run, fields)
        elif name in run.plugged.expectations:
            plugged = run.plugged.expectations[name](run, value)
            found += [Difference(f"{name}.{path}", want, got) for path, want, got in plugged]
    return found


def _view(run: Run, fields: Fields) -> View:
    """The view that the line names; without a name the usual one."""
    return run.assembler.view(fields.get("view", run.views[0]))


def _expect_nodes(run: Run, fields: Fields) -> list[Difference]:
    without = run.recording.without
    visible = [node.to_json() for node in _view(run, fields) if node.kind not in without]
    return list(missing_from(visible, fields["nodes"], "nodes"))


def _expect_node(run: Run, fields: Fields) -> list[Difference]:
    key = fields["node"]
    node = _view(run, fields).get(key)
    if node is None:
        return [Difference("node", key, _keys(run, fields))]
    return list(missing_from(node.to_json(), fields["is"], key))


def _expect_absent(run: Run, fields: Fields) -> list[Difference]:
    keys = set(_keys(run, fields))
    return [Difference(str(key), "@absent", "visible") for key in fields["absent"] if key in keys]


def _keys(run: Run, fields: Fields) -> list[str]:
    return [node.key for node in _view(run, fields)]


def _expect_groups(run: Run, fields: Fields) -> list[Difference]:
    groups = [group.to_json() for group in _view(run, fields).groups]
    return list(missing_from(groups, fields["groups"], "groups"))


def _expect_anomalies(run: Run, fields: Fields) -> list[Difference]:
    anomalies = run.assembler.anomalies
    fresh = anomalies.total - run.anomalies_seen
    run.anomalies_seen = anomalies.total
    kept = [odd.to_json() for odd in anomalies]
    newest = kept[len(kept) - min(fresh, len(kept)) :]
    return list(missing_from(newest, fields["anomalies"], "anomalies"))


_EXPECTED: Mapping[str, Callable[[Run, Fields], list[Difference]]] = {
    "nodes": _expect_nodes,
    "node": _expect_node,
    "absent": _expect_absent,
    "groups": _expect_groups,
    "anomalies": _expect_anomalies,
}


def _raises(run: Run, fields: Fields) -> list[Difference]:
    run.flush()
    before = _picture(run)
    wanted = fields["error"]
    try:
        run.apply(fields["of"])
    except AssemblerError as fault:
        found = _raised(fault, fields)
    else:
        return [Difference("error", wanted, None)]
    run.flush()
    changed = [
        Difference(f"after the error: {name}", old, new)
        for (name, old), new in zip(before.items(), _picture(run).values(), strict=True)
        if old != new
    ]
    return found + changed


def _raised(fault: AssemblerError, fields: Fields) -> list[Difference]:
    names = [kind.__name__ for kind in type(fault).__mro__ if issubclass(kind, AssemblerError)]
    if fields["error"] not in names:
        return [Difference("error", fields["error"], names[0])]
    missing = fields.get("missing")
    if missing is None:
        return []
    got = [fault.first, fault.last] if isinstance(fault, GapError) else None
    return list(missing_from(got, missing, "missing"))


def _picture(run: Run) -> dict[str, Any]:
    """All that an operation could have changed."""
    assembler = run.assembler
    return {
        **{view: assembler.view(view).snapshot().to_json() for view in run.views},
        "window": assembler.window.to_json(),
        "anomalies": assembler.anomalies.total,
        "findings": [odd.to_json() for odd in assembler.findings()],
        "deltas held": run.held,
    }


def _converges(run: Run, _fields: Fields) -> list[Difference]:
    run.flush()
    if run.held:
        return [Difference("converges", "nothing held", f"{run.held} deltas")]
    found = disagreement(run.assembler, run.facts(), run.definitions, run.views)
    if found is None:
        return []
    path, difference = found
    return [Difference(f"{path}: {difference.path}", difference.expected, difference.got)]


_ASKED: Mapping[str, Callable[[Run, Fields], list[Difference]]] = {
    "expect": _expect,
    "raises": _raises,
    "converges": _converges,
}
