"""`python -m tests.mutation [FILE ...]` changes code in small ways, which quick tests should see.

The changes are mutmut's, and those of properties besides, which it leaves out. Running them is
ours: pytest collects once; each mutant is a fork of that process in which one function got other
code; the tests that call this function run, those first that found its neighbours. So a mutant
that is found costs milliseconds, and no call goes through a trampoline. Nothing is written.

Not here: what stands of the mutants that nobody finds (`tests/README.md`).
"""

from __future__ import annotations

import argparse
import difflib
import gc
import json
import os
import random
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import libcst
import pytest
from _pytest.runner import runtestprotocol
from mutmut.mutation.file_mutation import MutationVisitor, deep_replace
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

from assembler.engine import registry, values

TOP = Path(__file__).resolve().parent.parent
EDGES = {"answering.py", "clients.py", "driving.py", "ids.py"}
"""What stands between Definitions and providers or clients."""
FILES = [
    *sorted(TOP.glob("assembler/engine/*.py")),
    *(path for path in sorted(TOP.glob("definitions/*.py")) if path.name not in EDGES),
]
TESTS = [
    "tests/engine",
    "tests/definitions",
    "tests/convergence/test_law.py",
    "tests/replay/test_recordings.py",
]
OTHERS = [
    "tests/definitions/protocols",
    "tests/definitions/providers",
    "tests/definitions/test_clients.py",
    "tests/definitions/test_answering.py",
    "tests/definitions/test_driving.py",
    "tests/definitions/test_import_dsh_session.py",
    "tests/definitions/test_readmes.py",
]
SLOW = [
    "tests/definitions/test_arguments.py::test_reading_after_every_fragment_is_linear",
    "tests/definitions/test_arguments.py::test_equality_survives_any_depth",
]
SECONDS = 2
"""CPU time that one test may take on a mutant, beside ten times its usual one."""
LONG = 0.1
"""Tests that take longer come last."""
MEMORY = 4 * 2**30


class Mutant(NamedTuple):
    """One change of one function."""

    file: str
    function: str
    number: int
    default: bool
    """Whether it changes a default, which is no part of the code."""
    module: libcst.Module
    before: libcst.CSTNode
    after: libcst.CSTNode

    @property
    def name(self) -> str:
        return f"{self.file}:{self.function}:{self.number}"

    @property
    def source(self) -> str:
        """The whole module, changed."""
        return str(deep_replace(self.module, self.before, self.after).code)


class Result(NamedTuple):
    mutant: Mutant
    found: bool
    by: str
    """The test that found it, or what else ended it."""


class _Changes(MutationVisitor):
    """mutmut's changes; those of properties as well."""

    def _skip_node_and_children(self, node: libcst.CSTNode) -> bool:
        if isinstance(node, libcst.FunctionDef) and [
            getattr(each.decorator, "value", None) for each in node.decorators
        ] == ["property"]:
            return False
        if type(node) is libcst.Decorator:
            return True
        return bool(super()._skip_node_and_children(node))


def mutants_of(path: Path) -> Iterator[Mutant]:
    """All mutants of one file, function by function."""
    file = str(path.relative_to(TOP))
    code = path.read_text(encoding="utf-8")
    wrapper = libcst.MetadataWrapper(libcst.parse_module(code))
    visitor = _Changes(mutation_operators, IgnoredCode(set(), set(), set()))
    module = wrapper.visit(visitor)
    names = {
        function: name
        for name, function in _functions(module.body)
        if isinstance(function, libcst.FunctionDef)
    }
    numbers: Counter[str] = Counter()
    for change in visitor.mutations:
        name = names.get(change.contained_by_top_level_function)
        if name is None:
            continue
        numbers[name] += 1
        default = any(
            _holds(each.default, change.original_node)
            for each in _parameters(change.contained_by_top_level_function.params)
            if each.default is not None
        )
        before, after = change.original_node, change.mutated_node
        yield Mutant(file, name, numbers[name], default, module, before, after)


def _functions(body: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    for each in body:
        if isinstance(each, libcst.FunctionDef):
            yield each.name.value, each
        elif isinstance(each, libcst.ClassDef) and isinstance(each.body, libcst.IndentedBlock):
            for name, function in _functions(each.body.body):
                yield f"{each.name.value}.{name}", function


def _parameters(params: libcst.Parameters) -> list[libcst.Param]:
    return [*params.posonly_params, *params.params, *params.kwonly_params]


def _holds(node: libcst.CSTNode, wanted: libcst.CSTNode) -> bool:
    return node is wanted or any(_holds(child, wanted) for child in node.children)


# -- changing a function that is loaded ------------------------------------------------------


def module_of(file: str) -> ModuleType:
    return sys.modules[file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")]


def function_of(owner: Any, name: str) -> FunctionType:
    for part in name.split("."):
        owner = vars(owner)[part]
    owner = getattr(owner, "__func__", owner)
    return owner.fget if isinstance(owner, property) else owner


def put_in(mutant: Mutant) -> None:
    """Give the loaded function the changed code."""
    module = module_of(mutant.file)
    function = function_of(module, mutant.function)
    compiled = compile(mutant.source, str(TOP / mutant.file), "exec", dont_inherit=True)
    function.__code__ = _codes(compiled)[mutant.function]
    if mutant.default:
        scratch = dict(vars(module))
        exec(compiled, scratch)  # noqa: S102 - our own code, changed
        changed = function_of(_Names(scratch), mutant.function)
        function.__defaults__ = changed.__defaults__
        function.__kwdefaults__ = changed.__kwdefaults__


def forget() -> None:
    """Forget what earlier tests left behind, which would answer in place of a mutant."""
    values._shapes.clear()
    registry._registries.clear()
    for name, module in list(sys.modules.items()):
        if name.startswith(("assembler.engine.", "definitions.")):
            for held in vars(module).values():
                if hasattr(held, "cache_clear"):
                    held.cache_clear()


class _Names:
    def __init__(self, names: dict[str, Any]) -> None:
        self.__dict__ = names


def _codes(code: CodeType) -> dict[str, CodeType]:
    """Codes by the name of their function; the last of one name, as Python does."""
    found = {}
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found[each.co_qualname] = each
            found.update(_codes(each))
    return found


# -- running ---------------------------------------------------------------------------------


class Trial:
    """A plugin: takes the collected tests, and runs mutants instead."""

    def __init__(
        self, mutants: Sequence[Mutant], *, workers: int, most: float, verbose: bool
    ) -> None:
        self.mutants = mutants
        self.most = most
        self.workers = workers
        self.verbose = verbose
        self.results: list[Result] = []
        self.seconds: dict[str, float] = {}
        self.examples: Counter[str] = Counter()
        self.turns: dict[str, int] = {}
        """Which example of its test an item is: the first of each come first."""
        self.callers: dict[CodeType, list[pytest.Item]] = defaultdict(list)
        self.finders: dict[str, Counter[str]] = defaultdict(Counter)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        started = time.monotonic()
        for item in session.items:
            self._learn(item)
        print(f"{len(session.items)} tests in {time.monotonic() - started:.0f} s")
        gc.collect()
        gc.freeze()  # a fork copies what the collector touches
        started = time.monotonic()
        running: dict[int, tuple[Mutant, int]] = {}
        for done, mutant in enumerate(self.mutants):
            while len(running) >= self.workers:
                self._reap(running)
            self._begin(mutant, running)
            if done and not done % 500:
                print(f"{done} mutants in {time.monotonic() - started:.0f} s", flush=True)
        while running:
            self._reap(running)
        print(f"{len(self.mutants)} mutants in {time.monotonic() - started:.0f} s")
        return True

    def _learn(self, item: pytest.Item) -> None:
        """Run one test as it is: which functions it calls, how long it takes, that it passes."""
        called: dict[CodeType, None] = {}
        folders = (str(TOP / "assembler" / "engine"), str(TOP / "definitions"))

        def note(frame: Any, event: str, _: Any) -> None:
            if event == "call" and frame.f_code.co_filename.startswith(folders):
                called[frame.f_code] = None

        started = time.process_time()
        sys.setprofile(note)
        try:
            reports = runtestprotocol(item, log=False, nextitem=None)
        finally:
            sys.setprofile(None)
        self.seconds[item.nodeid] = time.process_time() - started
        for report in reports:
            if report.failed:
                raise pytest.UsageError(f"fails without a mutant: {item.nodeid}\n{report.longrepr}")
        name = item.nodeid.partition("[")[0]
        self.turns[item.nodeid] = self.examples[name]
        self.examples[name] += 1
        for code in called:
            self.callers[code].append(item)

    def _begin(self, mutant: Mutant, running: dict[int, tuple[Mutant, int]]) -> None:
        items = self.callers.get(function_of(module_of(mutant.file), mutant.function).__code__)
        if not items:
            self._enter(mutant, found=False, by="no test calls it")
            return
        finders = self.finders[f"{mutant.file}:{mutant.function}"]
        file_finders = self.finders[mutant.file]
        items = sorted(
            items,
            key=lambda item: (
                -finders[item.nodeid],
                -file_finders[item.nodeid],
                self.seconds[item.nodeid] > LONG,
                item.path.stem != f"test_{Path(mutant.file).stem}",
                self.turns[item.nodeid],
                self.seconds[item.nodeid],
            ),
        )
        forget()
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            self._try(mutant, items, writing)
        os.close(writing)
        running[child] = (mutant, reading)

    def _try(self, mutant: Mutant, items: Sequence[pytest.Item], writing: int) -> None:
        """In the child: run the tests until one fails."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        by = ""
        try:
            put_in(mutant)
            started = time.process_time()
            for item in items:
                if time.process_time() - started > self.most:
                    by = ""
                    break
                by = item.nodeid
                signal.setitimer(signal.ITIMER_PROF, SECONDS + 10 * self.seconds[item.nodeid])
                if not _passes(item):
                    break
            else:
                by = ""
        except BaseException as error:  # whatever ends it has found it
            by = by or f"{type(error).__name__}: {error}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            os.write(writing, by.encode()[:4000])
            os._exit(0)

    def _reap(self, running: dict[int, tuple[Mutant, int]]) -> None:
        child, status = os.wait()
        mutant, reading = running.pop(child)
        by = os.read(reading, 4096).decode(errors="replace")
        os.close(reading)
        if status:
            by = f"signal {os.waitstatus_to_exitcode(status)}"
        self._enter(mutant, found=bool(by), by=by)

    def _enter(self, mutant: Mutant, *, found: bool, by: str) -> None:
        self.results.append(Result(mutant, found, by))
        if found:
            self.finders[f"{mutant.file}:{mutant.function}"][by] += 1
            self.finders[mutant.file][by] += 1
        elif self.verbose:
            print(difference(self.results[-1]), flush=True)


def _passes(item: pytest.Item) -> bool:
    """Run a test without the hooks that write a report, which would cost more than the test."""
    setup = item.session._setupstate
    try:
        item._initrequest()  # type: ignore[attr-defined]
        setup.setup(item)
        item.runtest()
        setup.teardown_exact(None)
    except pytest.skip.Exception:
        setup.teardown_exact(None)
    except Exception:
        return False
    return True


# -- saying it -------------------------------------------------------------------------------


def difference(result: Result) -> str:
    """What a mutant changes, as a diff of few lines."""
    mutant = result.mutant
    lines = difflib.unified_diff(
        mutant.module.code.splitlines(),
        mutant.source.splitlines(),
        lineterm="",
        n=1,
    )
    shown = [f"# {mutant.name} {result.by}".rstrip(), *list(lines)[2:], ""]
    return "\n".join(shown)


def table(results: Sequence[Result]) -> str:
    """Mutants and how many were found, by file."""
    tried = Counter(each.mutant.file for each in results)
    found = Counter(each.mutant.file for each in results if each.found)
    rows = ["| file | mutants | found |", "|---|---|---|"]
    rows += [f"| `{file}` | {tried[file]} | {found[file]} |" for file in sorted(tried)]
    share = 100 * sum(found.values()) / max(1, len(results))
    return "\n".join(
        [*rows, "", f"{sum(found.values())} of {len(results)}: {share:.1f} % of the mutants"]
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: all")
    parser.add_argument("--only", metavar="TEXT", help="mutants whose name holds TEXT")
    parser.add_argument("--again", type=Path, metavar="FILE", help="those that --json did not find")
    parser.add_argument("--sample", type=int, metavar="N", help="at most N mutants of each file")
    parser.add_argument("--seed", default="1", help="of the sample")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--most", type=float, default=3, help="CPU seconds for one mutant")
    parser.add_argument("--tests", nargs="*", default=TESTS, metavar="PATH", help="run these alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all results")
    arguments = parser.parse_args()
    again = None
    if arguments.again is not None:
        results = json.loads(arguments.again.read_text())
        again = {name for name, found, _ in results if not found}
    mutants: list[Mutant] = []
    for path in [each.resolve() for each in arguments.files] or FILES:
        own = [each for each in mutants_of(path) if (arguments.only or "") in each.name]
        if again is not None:
            own = [each for each in own if each.name in again]
        if arguments.sample is not None and arguments.sample < len(own):
            chance = random.Random(f"{arguments.seed}:{path.relative_to(TOP)}")  # noqa: S311
            own = sorted(chance.sample(own, arguments.sample), key=own.index)
        mutants += own
    print(f"{len(mutants)} mutants", flush=True)
    trial = Trial(mutants, workers=arguments.workers, most=arguments.most, verbose=True)
    options = ["-q", "-s", "--tb=native", "-p", "no:cacheprovider", "-m", "not deep", "-n", "0"]
    options += ["--hypothesis-profile=mutation", *(f"--ignore={each}" for each in OTHERS)]
    options += [f"--deselect={each}" for each in SLOW]
    status = pytest.main([*options, *arguments.tests], plugins=[trial])
    if arguments.json is not None:
        arguments.json.write_text(
            json.dumps([[each.mutant.name, each.found, each.by] for each in trial.results])
        )
    print(table(trial.results))
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
