"""What the text of a module says that its names are: other values came later, or from elsewhere."""

import ast
from collections import defaultdict
from collections.abc import Sequence
from types import FunctionType
from typing import Any

UNSAID: Any = object()

_CONSTANT = (
    ast.Constant, ast.UnaryOp, ast.BinOp, ast.unaryop, ast.operator, ast.expr_context,
    ast.Tuple, ast.List, ast.Set, ast.Dict,
)  # fmt: skip
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_OWN_SCOPE = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Said:
    """The names that a module binds, and those of its classes.

    Example:
        >>> said = Said(ast.parse("WIDTH = 4 * 2; DEPTH = int('3')"))
        >>> said.constant("WIDTH"), said.constant("DEPTH") is UNSAID
        (8, True)
    """

    def __init__(self, tree: ast.Module) -> None:
        self._bound: dict[str, list[ast.AST | None]] = defaultdict(list)
        self._imports: dict[str, tuple[ast.Import | ast.ImportFrom, ast.alias]] = {}
        self._defaults: dict[str, list[ast.expr]] = {}
        for node in tree.body:
            self._read(node, "")

    def constant(self, name: str) -> Any:
        """Return the value of a name that is bound once, to a constant; ``UNSAID`` for others."""
        bound = self._bound.get(name, [])
        return _value(bound[0]) if len(bound) == 1 else UNSAID

    def is_defined(self, name: str) -> bool:
        """Say whether a name is a function or a class, decorated or not, and nothing else."""
        bound = self._bound.get(name, [])
        return len(bound) == 1 and isinstance(bound[0], (*_FUNCTION, ast.ClassDef))

    def imported(self, name: str) -> tuple[ast.Import | ast.ImportFrom, ast.alias] | None:
        """Return the import that binds a name, if nothing else does."""
        return self._imports.get(name) if len(self._bound.get(name, [])) == 1 else None

    def defaults(self, function: FunctionType) -> list[Any]:
        """Return the defaults of a function's arguments, ``UNSAID`` for what is no constant."""
        return [_value(node) for node in self._defaults.get(function.__qualname__, [])]

    def _read(self, node: ast.AST, scope: str) -> None:
        parts: Sequence[ast.AST] = list(ast.iter_child_nodes(node))
        if isinstance(node, _FUNCTION):
            self._bound[scope + node.name].append(node)
            given = [d for d in node.args.kw_defaults if d is not None]
            self._defaults[scope + node.name] = [*node.args.defaults, *given]
            return
        if isinstance(node, ast.ClassDef):
            self._bound[scope + node.name].append(node)
            scope, parts = f"{scope}{node.name}.", node.body
        elif isinstance(node, _OWN_SCOPE):
            return
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                self._bound[scope + name].append(node)
                self._imports[scope + name] = node, alias
        elif (target := _target(node)) is not None:
            value = node.value  # type: ignore[attr-defined]
            self._bound[scope + target].append(value)
            parts = [value]
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            self._bound[scope + node.id].append(None)
        for part in parts:
            self._read(part, scope)


def _target(node: ast.AST) -> str | None:
    """Return the name that a statement gives a value, if it is one name."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return name
    return None


def _value(node: ast.AST | None) -> Any:
    if not isinstance(node, ast.expr):
        return UNSAID
    if not all(isinstance(part, _CONSTANT) for part in ast.walk(node)):
        return UNSAID
    try:
        return eval(compile(ast.Expression(node), "<constant>", "eval"), {"__builtins__": {}})
    except Exception:
        return UNSAID
