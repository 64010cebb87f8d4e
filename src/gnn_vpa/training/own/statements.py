"""The statements of a script or a notebook that a model needs; all others may change."""

import ast
import symtable
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_INNER = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_PLAIN = (*_INNER, ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom)
_CELL = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # of a notebook


@lru_cache(maxsize=1 << 12)
def plain(text: str) -> str:
    r"""Return a text in Python without comments and docstrings, in one format.

    Example:
        >>> plain("def f( x ):  # a remark\n  'A docstring.'\n  return  x")
        'def f(x):\n    return x'
    """
    tree: ast.Module = compile(text, "", "exec", _CELL, dont_inherit=True)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body[:1] = [ast.Pass()] if len(node.body) == 1 else []
    return ast.unparse(tree)


def needed(texts: Iterable[str], names: Iterable[str]) -> str:
    """Return the statements that give names their values, and those that these need in turn.

    Args:
        texts: Of a script, or of the cells of a notebook in the order in which they were run.
        names: What is needed.

    Example:
        >>> print(needed(["width, depth = 8, 2", "x = 3", "def make(): return width"], ["make"]))
        def make():
            return width
        width, depth = (8, 2)
    """
    statements = [each for text in texts for each in _statements(text)]
    modules = {name for each in statements if each.is_import for name in each.binds}
    wanted, seen, taken = ["*", *names], set[str](), dict[int, _Statement]()
    while wanted:
        if (name := wanted.pop()) in seen:
            continue
        seen.add(name)
        for place, each in reversed([*enumerate(statements)]):
            if name in each.binds or (name in each.calls and name not in modules):
                taken[place] = each
                wanted += each.reads
            if name in each.replaces:
                break
    # A cell that is run again moves to the end of the notebook's history.
    ordered = [each for _, each in sorted(taken.items())]
    first = sorted(each.text for each in ordered if each.replaces)
    return "\n".join([*first, *(each.text for each in ordered if not each.replaces)])


class _Statement(NamedTuple):
    text: str
    is_import: bool
    binds: set[str]  # names that it gives a value, or whose value it changes
    calls: set[str]  # names that it calls a method of, which may change their value
    reads: set[str]
    replaces: set[str]  # names whose value before does not matter


@lru_cache(maxsize=1 << 12)
def _statements(text: str) -> list[_Statement]:
    return [*map(_statement, compile(text, "", "exec", _CELL, dont_inherit=True).body)]


def _statement(node: ast.stmt) -> _Statement:
    text = ast.unparse(node)
    table = symtable.symtable(text, "", "exec")
    symbols = table.get_symbols()
    given = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
    now = {s.get_name() for s in symbols if s.is_referenced()}
    here = [*_here(node)]
    calls = {
        _root(each.value)
        for each in here
        if isinstance(each, ast.Expr)
        and isinstance(each.value, ast.Call)
        and isinstance(each.value.func, ast.Attribute)
    }
    changed = {
        _root(each)
        for each in here
        if isinstance(each, ast.Attribute | ast.Subscript) and not isinstance(each.ctx, ast.Load)
    }
    is_import = isinstance(node, ast.Import | ast.ImportFrom)
    if is_import and text.endswith("import *"):
        given.add("*")
    replaces = given - now if isinstance(node, _PLAIN) else set[str]()
    return _Statement(text, is_import, given | changed, calls, now | {*_globals(table)}, replaces)


def _here(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is run with a statement, and not when a function is called."""
    yield node
    if not isinstance(node, _INNER):
        for inner in ast.iter_child_nodes(node):
            yield from _here(inner)


def _root(node: ast.AST) -> str:
    """Return the name that an expression such as ``name.of[3].this()`` begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    for inner in table.get_children():
        yield from (symbol.get_name() for symbol in inner.get_symbols() if symbol.is_global())
        yield from _globals(inner)
