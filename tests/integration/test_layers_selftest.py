#!/usr/bin/env python3
"""The check of the include direction fails when it should."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, case, contains, equal, main, write

CHECK = os.path.join(ROOT, "tests", "support", "check_layers.py")

# (file, line planted at its end, what the message says)
PLANTED = [
    ("proto/planted.c", '#include "daemon/base/why.h"', "proto must not include daemon/base"),
    ("daemon/base/planted.c", '#include "daemon/io/reader.h"', "daemon/base must not include daemon/io"),
    ("daemon/io/planted.c", '#include "daemon/decode/decode.h"', "daemon/io must not include daemon/decode"),
    ("daemon/data/planted.h", '#  include  "daemon/pipeline/job.h"', "daemon/data must not include daemon/pipeline"),
    ("daemon/pipeline/planted.c", '#include "daemon/ctl/server.h"', "daemon/pipeline must not include daemon/ctl"),
    ("daemon/ctl/planted.c", '#include "client/include/dlclient.h"', "daemon/ctl must not include client/include"),
    ("daemon/ring/planted.c", '#include "reader.h"', "not below the root"),
    ("client/lib/planted.c", '#include "daemon/base/cleanup.h"', "client/lib must not include daemon/base"),
    ("client/lib/planted.c", '#include "client/dlctl/command.h"', "client/lib must not include client/dlctl"),
    ("client/examples/planted.c", '#include "proto/ring.h"', "client/examples must not include proto"),
    ("daemon/base/planted.c", '#include "tests/support/vectors.h"', "daemon/base must not include tests/support"),
    ("daemon/pipeline/planted.c", '#include "daemon/staging/tree/tree.h"',
     "daemon/pipeline must not include daemon/staging/tree"),
    ("daemon/core/planted.c", '#include "daemon/staging/origin/origin.h"',
     "daemon/core must not include daemon/staging/origin"),
    ("daemon/main.c", '#include "daemon/staging/run/run.h"', "daemon/main.c must not include daemon/staging/run"),
    ("daemon/io/planted.c", '#include "daemon/staging/record/stamp.h"', "daemon/io must not include daemon/staging/record"),
    ("daemon/staging/record/planted.h", '#include "daemon/staging/plan/plan.h"',
     "daemon/staging/record must not include daemon/staging/plan"),
    ("daemon/staging/fetch/planted.c", '#include "daemon/staging/tree/tree.h"',
     "daemon/staging/fetch must not include daemon/staging/tree"),
    ("daemon/staging/prepare/planted.c", '#include "daemon/staging/plan/plan.h"',
     "daemon/staging/prepare must not include daemon/staging/plan"),
    ("daemon/staging/attic/planted.c", "int planted;", "no rule knows daemon/staging/attic"),
    ("daemon/attic/planted.c", "int planted;", "no rule knows daemon/attic"),
]


def check(root):
    done = subprocess.run([sys.executable, CHECK, root], check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, timeout=300)
    return done.returncode, done.stdout


def copy_tree(box):
    root = box.path("tree")
    for name in ("proto", "daemon", "client", "tests/support"):
        shutil.copytree(os.path.join(ROOT, name), os.path.join(root, name))
    return root


@case("the tree as it is keeps to its floors")
def _(box):
    status, output = check(ROOT)
    equal(status, 0, output)


@case("each kind of violation is found, with file and line")
def _(box):
    root = copy_tree(box)
    for path, line, message in PLANTED:
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        write(os.path.join(root, path), b"/* planted */\n" + line.encode() + b"\n")
        status, output = check(root)
        equal(status, 1, f"{path}: {line}: {output}")
        contains(output, f"{path}:{'1' if 'attic' in path else '2'}: ", message)
        os.unlink(os.path.join(root, path))
        if "attic" in path:
            os.rmdir(os.path.dirname(os.path.join(root, path)))


@case("generated headers and the standard library are nobody's floor")
def _(box):
    root = copy_tree(box)
    write(os.path.join(root, "daemon/base/planted.c"),
          b'#include <stdio.h>\n#include "proto/dataloader.pb-c.h"\n#include <event2/event.h>\n')
    status, output = check(root)
    equal(status, 0, output)


@case("a tree without sources is no good tree")
def _(box):
    os.makedirs(box.path("nothing"))
    equal(check(box.path("nothing"))[0], 1, "exit status")


main()
