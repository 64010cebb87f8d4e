"""Which lines of the library the tests run, at next to no cost.

On Python 3.11 coverage's tracer makes everything slower by half, other libraries too. Here each
statement of ours notes that it was reached, in a global of its module; coverage makes the report.
A global that is set and never read costs PyTorch's compiler little; of a list it would watch every
item, which makes compiling three times as slow. Kernels that Triton interprets are written anew
from their source, and note it too.
"""

import ast
import marshal
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import cache_from_source
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from coverage import Coverage, CoverageData

PACKAGE = "gnn_vpa"
_THIS = Path(__file__).read_bytes()
_found: dict[str, dict[str, Any]] = {}  # the globals of each file's module
_NOTE = re.compile(r"__line_(\d+)_\d+__")  # of the statement at this line and column
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
        for path, names in _found.items():
            data.add_lines({path: reached(names)})
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
        """Compile the source, with a note before each statement, or take what was kept of that."""
        source = self.get_data(self.path)
        mark = sha256(b"\0".join([_THIS, self.path.encode(), source])).digest()
        kept = Path(cache_from_source(self.path, optimization="lines"))  # its name has Python's tag
        with suppress(OSError):
            content = kept.read_bytes()
            if content.startswith(mark):
                code: CodeType = marshal.loads(content[len(mark) :])
                return code
        tree = noted(ast.parse(source, self.path))
        code = compile(tree, self.path, "exec", dont_inherit=True)
        if not sys.dont_write_bytecode:
            self.set_data(str(kept), mark + marshal.dumps(code))  # whole, or not at all
        return code

    def exec_module(self, module: ModuleType) -> None:
        _found[self.path] = vars(module)
        super().exec_module(module)
        _note_interpreted()


def reached(names: dict[str, Any]) -> set[int]:
    """Return the lines that were reached, from the globals of a module."""
    return {int(found[1]) for found in map(_NOTE.fullmatch, names) if found is not None}


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
        yield from _note(parent.pattern if isinstance(parent, ast.match_case) else parent)
    for number, statement in enumerate(statements):
        text = statement.value if isinstance(statement, ast.Expr) else None
        is_text = isinstance(text, ast.Constant) and isinstance(text.value, str)
        is_docstring = number == 0 and field == "body" and is_text
        if is_docstring:
            yield statement
            continue
        parts = (*getattr(statement, "decorator_list", ()), statement)
        notes = [note for part in parts for note in _note(part)]
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        yield from [statement, *notes] if is_future else [*notes, statement]


def _note(at: Any) -> Iterator[ast.stmt]:
    """Yield ``global __line_5_0__`` and ``__line_5_0__ = True``, for something at line 5."""
    name = f"__line_{at.lineno}_{at.col_offset}__"
    for note in (ast.Global([name]), ast.Assign([ast.Name(name, ast.Store())], ast.Constant(True))):
        yield ast.fix_missing_locations(ast.copy_location(note, at))


def _note_interpreted() -> None:
    """Let Triton's interpreter, once it is there, put notes into the kernels that it rewrites."""
    interpreter = sys.modules.get("triton.runtime.interpreter")
    rewriter: Any = getattr(interpreter, "FunctionRewriter", None)
    if rewriter is None or hasattr(rewriter, "notes"):
        return
    rewrite = rewriter._transform_ast

    def transform(self: Any, source: str) -> ast.AST:
        tree: ast.AST = rewrite(self, source)
        return noted(tree) if self.fn.__globals__.get("__file__") in _found else tree

    rewriter._transform_ast = transform
    rewriter.notes = True
