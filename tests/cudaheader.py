"""cuda.h as data: every prototype with its parameters, and what is reachable through the structures they point to.

Read from the header alone, by the preprocessor and pycparser, so that it can judge the call table: it knows nothing of the table.
"""
import dataclasses
import functools
import pathlib
import re
import subprocess

from pycparser import c_ast, c_generator, c_parser

# GNU spellings in the system headers that cuda.h includes and pycparser does not read.
DEFINES = ["-D__attribute__(x)=", "-D__extension__=", "-D__restrict=", "-D__asm__(x)=", "-D__inline=inline", "-D__builtin_va_list=int"]
SIBLING_SUFFIXES = {"_ptds": "PTDS", "_ptsz": "PTSZ"}


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter: its name and its type, as a tree and as text without the name."""
    name: str
    text: str
    node: object = dataclasses.field(compare=False, repr=False)


class Header:
    """One cuda.h, in the folder `include`. `functions` maps every declared symbol, old versions and siblings included, to its parameters."""

    def __init__(self, include):
        self.include = pathlib.Path(include)
        self.text = (self.include / "cuda.h").read_text(encoding="utf-8", errors="replace")
        self.version = int(re.search(r"#define CUDA_VERSION (\d+)", self.text).group(1))
        source = "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n"
        self.source = subprocess.run(["gcc", "-E", "-P", "-std=gnu11", "-xc", "-isystem", str(self.include), *DEFINES, "-"], input=source,
                                     capture_output=True, text=True, check=True).stdout
        self.typedefs, self.structs, self.functions = {}, {}, {}
        for declaration in c_parser.CParser().parse(self.source).ext:
            self._declare(declaration)

    def _declare(self, declaration):
        for node in _aggregates(declaration):
            self.structs[(type(node).__name__, node.name)] = node
        if isinstance(declaration, c_ast.Typedef):
            self.typedefs[declaration.name] = declaration.type
        elif isinstance(declaration, c_ast.Decl) and isinstance(declaration.type, c_ast.FuncDecl) and declaration.name.startswith("cu"):
            self.functions[declaration.name] = parameters_of(declaration.type)

    @functools.cached_property
    def calls(self):
        """The functions without their siblings."""
        return {name: parameters for name, parameters in self.functions.items() if name[-5:] not in SIBLING_SUFFIXES}

    @functools.cached_property
    def macro_siblings(self):
        """Symbol to PTDS or PTSZ, as the macros say it that choose the per-thread variant."""
        return {symbol: "PT" + kind for kind, symbol in re.findall(r"__CUDA_API_PT(DS|SZ)\((cu\w+)\)", self.text)}

    @functools.cached_property
    def on_default_stream(self):
        """The calls, without their version, that work on the default stream implicitly."""
        return {unversioned(name) for name in self.calls if self.sibling(name) == "PTDS"}

    @functools.cached_property
    def comments(self):
        """Call without its version to what the comments before any version say of each parameter."""
        found = {}
        for comment, name in re.findall(r"/\*\*((?:(?!\*/).)*)\*/\s*CUresult CUDAAPI (\w+)\(", self.text, re.S):
            found.setdefault(unversioned(name), {}).update(re.findall(r"\\param (\w+)\s*-?([^\n]*)", comment))
        return found

    def sibling(self, name):
        """ONE, PTDS or PTSZ, from the declared symbols."""
        found = [kind for suffix, kind in SIBLING_SUFFIXES.items() if name + suffix in self.functions]
        assert len(found) < 2, f"{name} has both siblings"
        return found[0] if found else "ONE"

    def parameters(self, text):
        """Parses a parameter list written with the header's types."""
        # The types' names are enough for parsing; what they stand for does not matter here.
        types = "\n".join(f"typedef int {name};" for name in set(re.findall(r"\w+", text)) & set(self.typedefs))
        tree = c_parser.CParser().parse(f"{types}\nint f{text};")
        return parameters_of(tree.ext[-1].type)

    def reaches(self, node, handles, seen=frozenset()):
        """How one of the `handles` (typedef names) is reached from a type: the path of members, "" for the type itself; None if it is not."""
        if isinstance(node, c_ast.TypeDecl):
            return self.reaches(node.type, handles, seen)
        if isinstance(node, (c_ast.PtrDecl, c_ast.ArrayDecl)):
            return self.reaches(node.type, handles, seen)
        if isinstance(node, c_ast.IdentifierType):
            name = node.names[-1]
            if name in handles:
                return ""
            return self.reaches(self.typedefs[name], handles, seen) if name in self.typedefs and name not in seen else None
        if isinstance(node, (c_ast.Struct, c_ast.Union)):
            return self._reaches_member(node, handles, seen)
        return None

    def _reaches_member(self, node, handles, seen):
        key = (type(node).__name__, node.name)
        if node.name and key in seen:
            return None
        body = node if node.decls else self.structs.get(key)
        for member in (body.decls if body is not None and body.decls else ()):
            path = self.reaches(member.type, handles, seen | {key})
            if path is not None:
                return ".".join(p for p in (member.name, path) if p)
        return None

    def members(self, parameter):
        """Names and type texts of the members of the structure that a parameter points to; empty for anything else."""
        node = parameter.node
        while not isinstance(node, (c_ast.Struct, c_ast.Union)):
            if isinstance(node, c_ast.IdentifierType):
                node = self.typedefs.get(node.names[-1])
            elif isinstance(node, (c_ast.PtrDecl, c_ast.TypeDecl)):
                node = node.type
            else:
                return {}
        body = node if node.decls else self.structs.get((type(node).__name__, node.name))
        return {m.name: type_text(m.type) for m in (body.decls or ()) if m.name} if body is not None else {}


def unversioned(name):
    """A call's name without its version."""
    return re.sub(r"_v\d+$", "", name)


def parameters_of(function):
    """The parameters of a function's type; (void) has none."""
    declared = function.args.params if function.args else []
    found = [Parameter(p.name or "", type_text(p.type), p.type) for p in declared]
    return [] if [p.text for p in found] == ["void"] else found


def type_text(node):
    """A type as C text, without the name that it declares."""
    name = c_ast.Typename(None, [], None, _without_name(node))
    return re.sub(r"\s+", " ", c_generator.CGenerator().visit(name)).strip()


def _without_name(node):
    if isinstance(node, c_ast.TypeDecl):
        return c_ast.TypeDecl(None, node.quals, None, node.type)
    if isinstance(node, c_ast.PtrDecl):
        return c_ast.PtrDecl(node.quals, _without_name(node.type))
    if isinstance(node, c_ast.ArrayDecl):
        return c_ast.ArrayDecl(_without_name(node.type), node.dim, node.dim_quals)
    return node


def _aggregates(node):
    """Structures and unions with a name and members, anywhere inside a declaration."""
    if isinstance(node, (c_ast.Struct, c_ast.Union)) and node.name and node.decls:
        yield node
    for _, child in node.children():
        yield from _aggregates(child)


def exported(library):
    """The symbols that a shared library exports."""
    listing = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in listing.splitlines() if line}
