#!/usr/bin/env python3
"""The Python client's types: strict for who checks them, and in the syntax of the oldest Python that is promised. The
examples of its documentation run."""
import ast
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, Skip, case, contains, equal, main
from private import Home
from pyclient import PACKAGE, environment_of, need, trainer

SOURCES = sorted(glob.glob(os.path.join(PACKAGE, "dlclient", "**", "*.py"), recursive=True))
OLDEST = (3, 9)

USER = """
import dlclient
from typing import Any, Dict, List

def train(state: Dict[str, Any]) -> List[int]:
    with dlclient.Loader("photos", batch_size=64, state=state, ranks=None, max_errors=0.01) as loader:
        loader.set_epoch(3)
        for batch in loader:
            reveal_type(batch["image"])
        reveal_type(loader.stats().wait_share)
        reveal_type(loader.state_dict())
        reveal_type(len(loader))
    return [loader.epoch]

@dlclient.once
def unpack(archive: str) -> str:
    return archive

@dlclient.once(name="other", scope="cluster", inputs=["a"])
def other() -> Dict[str, int]:
    return {}

reveal_type(unpack("a"))
reveal_type(other())
reveal_type(dlclient.once(len, "abc", name="len", timeout=3.5))
"""


def mypy(box, *arguments):
    done = subprocess.run([sys.executable, "-m", "mypy", "--version"], check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Skip("mypy is not installed")
    return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--python-version", "%d.%d" % OLDEST, "--cache-dir",
                           box.path("cache")] + list(arguments), check=False, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, cwd=PACKAGE, env=environment_of(MYPYPATH=PACKAGE), timeout=300)


@case("mypy --strict has nothing to say about the package, nor about a program that uses it; a wrong one is found")
def _(box):
    need("numpy")
    done = mypy(box, "-p", "dlclient")
    equal(done.returncode, 0, done.stdout)
    program = box.path("user.py")
    with open(program, "w", encoding="utf-8") as file:
        file.write(USER)
    done = mypy(box, program)
    equal(done.returncode, 0, done.stdout)
    equal(re.findall(r'Revealed type is "([^"]*)"', done.stdout),
          ["Any", "builtins.float", "builtins.dict[builtins.str, Any]", "builtins.int", "builtins.str",
           "builtins.dict[builtins.str, builtins.int]", "builtins.int"], done.stdout)
    with open(program, "w", encoding="utf-8") as file:
        file.write('import dlclient\ndlclient.Loader("d", batch_size="4")\ndlclient.Loader("d", bach_size=4)\n')
    done = mypy(box, program)
    contains(done.stdout, "user.py:2", "batch_size", "user.py:3", "bach_size", "Found 2 errors")


@case("every file is in the syntax of the oldest Python that pyproject.toml promises")
def _(box):
    with open(os.path.join(PACKAGE, "pyproject.toml"), encoding="utf-8") as file:
        contains(file.read(), 'requires-python = ">=%d.%d"' % OLDEST)
    for path in SOURCES:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        ast.parse(text, path, feature_version=OLDEST)
        equal("from __future__ import annotations" in text or os.path.basename(path) in ("__init__.py", "_version.py"), True,
              f"{path}: annotations are not evaluated")
        equal([line for line in text.splitlines() if len(line) > 120], [], f"{path}: long lines")


@case("whatever is public has a docstring, and every keyword of Loader stands in its own")
def _(box):
    trainer(box, None, """
        import inspect
        for name in dlclient.__all__:
            thing = getattr(dlclient, name)
            if not inspect.isclass(thing): continue
            assert thing.__doc__, name
            for member, value in vars(thing).items():
                if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                    assert value.__doc__ or member == "errno", f"{name}.{member}"
        for keyword in list(inspect.signature(dlclient.Loader.__init__).parameters)[1:]:
            assert keyword in dlclient.Loader.__doc__, keyword
    """)


def examples():
    """Python blocks of the package's pages: README's fences, and the indented ones of the docstrings that open loaders."""
    with open(os.path.join(PACKAGE, "README.md"), encoding="utf-8") as file:
        yield from re.findall(r"```python\n(.*?)```", file.read(), re.S)
    sys.path.insert(0, PACKAGE)
    import inspect
    import dlclient
    for thing in (dlclient, dlclient.Loader):
        text = inspect.getdoc(thing)
        for block in re.findall(r"(?:^    .*\n?|^\n)+", text, re.M):
            if "Loader(" in block:
                yield inspect.cleandoc(block)


@case("the examples of README and docstrings run as they stand")
def _(box):
    need("numpy")
    need("torch")
    home, folder = Home(box), box.folder_of_pictures("photos", 70, width=40, height=30)
    found = list(examples())
    equal(len(found), 4, f"examples: {found}")
    for example in found:
        example = re.sub("/data/photos(/train)?", folder, example.replace("range(90)", "range(2)"))
        trainer(box, None, example + "\nassert batch.n_samples == 6\n", **home.variables())


@case("importing the package loads neither the library nor a framework")
def _(box):
    lines = trainer(box, None, """
        from dlclient import _library
        out([_library._loaded is None, [name for name in ("torch", "jax", "tensorflow") if name in sys.modules]])
    """)
    equal(lines, [[True, []]], "what was loaded")


main()
