"""Which lines of the library the tests run, at next to no cost.

On Python 3.11 coverage's tracer makes everything slower by half, other libraries too. Here each
statement of ours notes that it was reached, in a list of its module; coverage makes the report.
Kernels that Triton interprets are written anew from their source, and note it too.
"""

import ast
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from coverage import Coverage, CoverageData

PACKAGE = "gnn_vpa"
NOTES = "__lines__"  # of a module: for each of its lines, whether it was reached
_found: dict[str, list[bool]] = {}  # by file
# Functions that never run: the code of others is compared with theirs.
_COMPARED = {"_feature", "_weighted_feature", "_feature_maybe_weighted", "_gin"}


def start(name: str) -> Callable[[], None]:
    """Count from now on; to be called before anything imports the library.

    Returns:
        What writes a data file of coverage with this ending, to be called in the end.
    """
    assert PACKAGE not in sys.modules, "it was imported before lines are counted"
    sys.meta_path.insert(0, _Finder())
    place = Path(str(Coverage().get_option("run:data_file"))).resolve()
    data = CoverageData(str(place), suffix=name)

    def write() -> None:
        if not _found:
            return  # the process that only hands tests out
        for path, notes in _found.items():
            data.add_lines({path: [line for line, reached in enumerate(notes) if reached]})
        for package in (path for path in _found if path.endswith(f"{PACKAGE}/__init__.py")):
            # What was never imported counts too.
            data.touch_files([str(path) for path in Path(package).parent.rglob("*.py")])
        data.write()

    return write


class _Finder(MetaPathFinder):
    """Finds the library's modules, and has each loaded with its notes."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] != PACKAGE:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        """Compile the source, with a note before each statement; compiled files have none."""
        source = self.get_data(self.path)
        _found[self.path] = [False] * (source.count(b"\n") + 2)
        tree = noted(ast.parse(source, self.path))
        return compile(tree, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        code = self.get_code(module.__name__)
        vars(module)[NOTES] = _found[self.path]
        exec(code, vars(module))
        _note_interpreted()


def noted(tree: Any) -> Any:
    """Put a note before every statement of a syntax tree."""
    for node in list(_walk(tree)):
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):  # the body of a lambda is none
                setattr(node, field, list(_with_notes(node, field, statements)))
    return tree


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all of a tree, but for functions that are to stay as they are written."""
    if isinstance(node, ast.FunctionDef) and node.name in _COMPARED:
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _walk(child)


def _with_notes(parent: ast.AST, field: str, statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    if isinstance(parent, ast.ExceptHandler | ast.match_case) and field == "body":
        head = parent.pattern if isinstance(parent, ast.match_case) else parent
        yield _note(head.lineno, statements[0])
    for number, statement in enumerate(statements):
        text = statement.value if isinstance(statement, ast.Expr) else None
        is_text = isinstance(text, ast.Constant) and isinstance(text.value, str)
        is_docstring = number == 0 and field == "body" and is_text
        if is_docstring:
            yield statement
            continue
        parts = (*getattr(statement, "decorator_list", ()), statement)
        notes = [_note(part.lineno, statement) for part in parts]
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        yield from [statement, *notes] if is_future else [*notes, statement]


def _note(line: int, at: ast.stmt) -> ast.stmt:
    """Return ``__lines__[line] = True``."""
    notes = ast.Subscript(ast.Name(NOTES, ast.Load()), ast.Constant(line), ast.Store())
    return ast.fix_missing_locations(ast.copy_location(ast.Assign([notes], ast.Constant(True)), at))


def _note_interpreted() -> None:
    """Let Triton's interpreter, once it is there, put notes into the kernels that it rewrites."""
    interpreter = sys.modules.get("triton.runtime.interpreter")
    rewriter: Any = getattr(interpreter, "FunctionRewriter", None)
    if rewriter is None or hasattr(rewriter, NOTES):
        return
    rewrite = rewriter._transform_ast

    def transform(self: Any, source: str) -> ast.AST:
        tree: ast.AST = rewrite(self, source)
        return noted(tree) if NOTES in self.fn.__globals__ else tree

    rewriter._transform_ast = transform
    setattr(rewriter, NOTES, True)
