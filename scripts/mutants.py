#!/usr/bin/env python3
"""Changes code in small ways, one at a time: do the tests of its module notice?

scripts/mutants.py [PATH...]   modules of scripts/mutants.toml: all, or below PATH

A mutant that no test kills is printed, unless mutants.toml lists it as equivalent: then
nothing that can be observed differs. See docs/developing.md.

A mutant costs no process start: this process has imported and collected the tests, a
child of it exchanges the code of the functions concerned and runs them. What is not in
a function needs a fresh import; such children are forked before anything was imported.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FunctionType

import pytest

ROOT = Path(__file__).resolve().parents[1]
LISTED = Path(__file__).with_name("mutants.toml")
QUIET = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0")
KILLED, SURVIVED = 1, 0
MEMORY_BYTES = 4 << 30

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """One change: ``name`` finds it again when lines have moved.

    ``where`` and ``index`` are the field that holds the node, None if it is no list.
    """

    name: str
    line: int
    in_function: bool
    parent: ast.AST
    where: str
    index: int | None
    node: ast.AST
    instead: ast.AST

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """The tree has the change inside the context."""
        self._put(self.instead)
        try:
            yield
        finally:
            self._put(self.node)

    def _put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.where, node)
        else:
            getattr(self.parent, self.where)[self.index] = node


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand instead of ``node``."""
    match node:
        case ast.Compare(left, ops, comparators):
            for i, op in enumerate(ops):
                other = [*ops[:i], COMPARISONS[type(op)](), *ops[i + 1 :]]
                yield ast.Compare(left, other, comparators)
        case ast.BoolOp(ast.And(), values):
            yield ast.BoolOp(ast.Or(), values)
        case ast.BoolOp(ast.Or(), values):
            yield ast.BoolOp(ast.And(), values)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield operand
        case ast.BinOp(left, op, right) if type(op) in ARITHMETIC:
            yield ast.BinOp(left, ARITHMETIC[type(op)](), right)
        case ast.AugAssign(target, op, value) if type(op) in ARITHMETIC:
            yield ast.AugAssign(target, ARITHMETIC[type(op)](), value)
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Call(ast.Name(name), arguments, keywords) if name in FUNCTIONS:
            yield ast.Call(ast.Name(FUNCTIONS[name], ast.Load()), arguments, keywords)
        case ast.Expr(ast.Call() | ast.Yield() | ast.YieldFrom()):
            yield ast.Expr(ast.Constant(None))
        case ast.Continue():
            yield ast.Break()
        case ast.Break():
            yield ast.Continue()


def negated(parent: ast.AST, where: str, node: ast.AST) -> Iterator[ast.AST]:
    """The contrary of a condition that has no operator of its own."""
    if where in ("test", "ifs", "guard") and not isinstance(
        node, ast.Compare | ast.BoolOp | ast.UnaryOp
    ):
        assert isinstance(node, ast.expr), (parent, where)
        yield ast.UnaryOp(ast.Not(), node)


NO_CODE = ("annotation", "returns", "decorator_list", "type_params", "format_spec")


def mutants_of(tree: ast.Module) -> Iterator[Mutant]:
    """All of them, in the order of the source."""
    names: Counter[str] = Counter()

    def of(parent: ast.AST, place: str, in_function: bool) -> Iterator[Mutant]:
        for where, value in ast.iter_fields(parent):
            if where in NO_CODE:
                continue
            # Defaults are computed where the function is defined.
            inside = in_function or (
                where == "body" and isinstance(parent, ast.FunctionDef | ast.Lambda)
            )
            for index, node in enumerate(value if isinstance(value, list) else [value]):
                if not isinstance(node, ast.AST) or _never_tested(node):
                    continue
                for instead in (*changed(node), *negated(parent, where, node)):
                    ast.copy_location(instead, node)
                    ast.fix_missing_locations(instead)
                    words = f"{place}: {_words(node)} -> {_words(instead)}"
                    names[words] += 1
                    again = f" #{names[words]}" if names[words] > 1 else ""
                    yield Mutant(
                        words + again,
                        getattr(node, "lineno", 0),
                        inside,
                        parent,
                        where,
                        index if isinstance(value, list) else None,
                        node,
                        instead,
                    )
                named = getattr(node, "name", None)
                below = place
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    below = f"{place}.{named}" if place else str(named)
                yield from of(node, below, inside)

    yield from of(tree, "", in_function=False)


def _never_tested(node: ast.AST) -> bool:
    """Whether its result is the same whatever stands there, or it is never run."""
    match node:
        case ast.If(ast.Name("TYPE_CHECKING")):
            return True
        case ast.keyword("strict" | "frozen"):
            return True
    return False


def _words(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:100]


class _ChangedLoader(SourceFileLoader):
    """Loads a module from a tree instead of its file."""

    code: CodeType

    def get_code(self, _fullname: str) -> CodeType:
        return self.code


@dataclass(frozen=True)
class Module:
    """One that is mutated, and the tests that have to notice."""

    path: Path
    tests: Sequence[str]
    equivalent: frozenset[str]

    @property
    def name(self) -> str:
        """As it is imported."""
        parts = self.path.relative_to(ROOT / "src").with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def run_tests(self, *more: str) -> int:
        """Their exit code; nothing is printed."""
        here = Path(tempfile.mkdtemp(prefix="mutant-"))
        try:
            return int(
                pytest.main([*QUIET, *more, "--basetemp", str(here / "t"), *self.tests])
            )
        finally:
            shutil.rmtree(here, ignore_errors=True)

    def code_of(self, tree: ast.Module) -> CodeType:
        """Compiled as if it stood in the file."""
        code = compile(tree, str(self.path), "exec", dont_inherit=True)
        assert isinstance(code, CodeType)
        return code

    def import_as(self, code: CodeType) -> None:
        """Whoever imports it from now on gets ``code``."""

        class Finder:
            @staticmethod
            def find_spec(
                fullname: str, _path: object, _target: object = None
            ) -> object:
                if fullname != self.name:
                    return None
                loader = _ChangedLoader(fullname, str(self.path))
                loader.code = code
                return spec_from_file_location(
                    fullname,
                    self.path,
                    loader=loader,
                    submodule_search_locations=(
                        [str(self.path.parent)]
                        if self.path.name == "__init__.py"
                        else None
                    ),
                )

        sys.meta_path.insert(0, Finder)  # type: ignore[arg-type]

    def exchange(self, code: CodeType) -> None:
        """The functions that are there already do what ``code`` says."""
        new: dict[tuple[str, int], list[CodeType]] = {}
        for each in _codes(code):
            new.setdefault((each.co_qualname, each.co_firstlineno), []).append(each)
        for function in gc.get_objects():
            if not isinstance(function, FunctionType):
                continue
            old = function.__code__
            if old.co_filename != str(self.path):
                continue
            for each in new.get((old.co_qualname, old.co_firstlineno), []):
                if each.co_freevars == old.co_freevars and len(new) > 0:
                    function.__code__ = each
                    break


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


class Children:
    """Runs work in forked processes, a few at once."""

    def __init__(self, at_once: int, patience_s: float) -> None:
        self.at_once = at_once
        self.patience_s = patience_s
        self.survivors: list[Mutant] = []
        self._running: dict[int, Mutant] = {}

    def start(self, mutant: Mutant, work: Callable[[], int]) -> None:
        """Runs ``work``, which returns the exit code of the tests."""
        while len(self._running) >= self.at_once:
            self._wait()
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            self._running[pid] = mutant
            return
        code = KILLED
        try:
            _silence()
            signal.setitimer(signal.ITIMER_REAL, self.patience_s)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            code = SURVIVED if work() == 0 else KILLED
        except BaseException:  # noqa: BLE001 - whatever it is, somebody noticed
            code = KILLED
        finally:
            os._exit(code)

    def _wait(self) -> None:
        pid, status = os.wait()
        mutant = self._running.pop(pid)
        if os.waitstatus_to_exitcode(status) == SURVIVED:
            self.survivors.append(mutant)

    def wait_for_all(self) -> None:
        """Returns when none is left."""
        while self._running:
            self._wait()


def _silence() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def examine(module: Module, at_once: int) -> list[Mutant]:
    """The mutants of ``module`` that no test notices. To be called in a fresh process.

    Raises:
        SystemExit: the tests fail without a mutant.
    """
    tree = ast.parse(module.path.read_text())
    mutants = list(mutants_of(tree))
    children = Children(at_once, 300)

    began = time.monotonic()
    unchanged = Mutant("unchanged", 0, False, tree, "body", None, tree, tree)
    children.start(unchanged, module.run_tests)
    children.wait_for_all()
    if not children.survivors:
        raise SystemExit(f"error: the tests of {module.path} fail without a mutant")
    children.survivors.clear()
    children.patience_s = 30 + 5 * (time.monotonic() - began)

    for mutant in mutants:
        if not mutant.in_function:
            with mutant.applied():
                code = module.code_of(tree)
            children.start(mutant, _imported(module, code))
    children.wait_for_all()

    output = os.dup(1)
    _silence()  # pytest lists what it collects
    module.run_tests("--collect-only")
    os.dup2(output, 1)
    gc.freeze()
    for mutant in mutants:
        if mutant.in_function:
            with mutant.applied():
                code = module.code_of(tree)
            children.start(mutant, _exchanged(module, code))
    children.wait_for_all()
    _tell(module, len(mutants), children.survivors)
    return children.survivors


def _imported(module: Module, code: CodeType) -> Callable[[], int]:
    def work() -> int:
        module.import_as(code)
        return module.run_tests()

    return work


def _exchanged(module: Module, code: CodeType) -> Callable[[], int]:
    def work() -> int:
        gc.unfreeze()
        module.exchange(code)
        return module.run_tests()

    return work


def _tell(module: Module, total: int, survivors: list[Mutant]) -> None:
    path = module.path.relative_to(ROOT)
    names = {mutant.name for mutant in survivors}
    known = names & module.equivalent
    print(
        f"{path}: {total} mutants, {total - len(names)} killed, "
        f"{len(known)} equivalent, {len(names) - len(known)} survived",
        flush=True,
    )
    for mutant in sorted(survivors, key=lambda m: m.line):
        if mutant.name not in module.equivalent:
            print(f"  {path}:{mutant.line}: {mutant.name}", flush=True)
    for name in sorted(module.equivalent - names):
        print(f"  listed as equivalent, but killed or gone: {name}", flush=True)


def listed() -> Iterator[Module]:
    """What mutants.toml lists."""
    for entry in tomllib.loads(LISTED.read_text())["module"]:
        yield Module(
            ROOT / entry["path"], entry["tests"], frozenset(entry.get("equivalent", []))
        )


def main() -> int:
    """Examine the modules one by one, each in a process of its own."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("paths", nargs="*", type=Path)
    arguments.add_argument("-j", type=int, default=os.cpu_count() or 1, dest="at_once")
    told = arguments.parse_args()
    os.chdir(ROOT)
    wanted = [path.resolve() for path in told.paths]
    unnoticed = False
    for module in listed():
        if wanted and not any(module.path.is_relative_to(path) for path in wanted):
            continue
        sys.stdout.flush()
        if (pid := os.fork()) == 0:
            survivors = examine(module, told.at_once)
            sys.stdout.flush()
            os._exit(any(m.name not in module.equivalent for m in survivors))
        unnoticed |= os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0
    return int(unnoticed)


if __name__ == "__main__":
    sys.exit(main())
