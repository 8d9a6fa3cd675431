#!/usr/bin/env python3
"""The checks of the include direction, of the epoch plan, of words, documents, comments, locks and of what is called fail when they should.
That the tree as it is passes is said by the checks themselves, which `make check-layers` and `make check` run beside this."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import ROOT, case, contains, equal, main, write

LAYERS = os.path.join(ROOT, "tests", "support", "check_layers.py")
PLAN = os.path.join(ROOT, "tests", "support", "check_epoch_plan.py")
WORDS = os.path.join(ROOT, "tests", "support", "check_words.py")
COMMENTS = os.path.join(ROOT, "tests", "support", "check_comments.py")
DOCUMENTS = os.path.join(ROOT, "tests", "support", "check_documents.py")
LOCKS = os.path.join(ROOT, "tests", "support", "check_locks.py")
UNUSED = os.path.join(ROOT, "tests", "support", "check_unused.py")
NAMES = os.path.join(ROOT, "tests", "support", "check_names.py")

# (file, line planted at its end, what the message says)
PLANTED = [
    ("proto/planted.c", '#include "daemon/base/log.h"', "proto must not include daemon/base"),
    ("daemon/base/machine/planted.c", '#include "daemon/base/log.h"', "daemon/base/machine must not include daemon/base"),
    ("daemon/base/planted.c", '#include "daemon/io/reader.h"', "daemon/base must not include daemon/io"),
    ("daemon/io/planted.c", '#include "daemon/decode/decode.h"', "daemon/io must not include daemon/decode"),
    ("daemon/data/planted.h", '#  include  "daemon/pipeline/jobs/job.h"', "daemon/data must not include daemon/pipeline"),
    ("daemon/pipeline/planted.c", '#include "daemon/ctl/ctl_server.h"', "daemon/pipeline must not include daemon/ctl"),
    ("daemon/ctl/planted.c", '#include "client/include/dlclient.h"', "daemon/ctl must not include client/include"),
    ("daemon/ring/planted.c", '#include "reader.h"', "not below the root"),
    ("client/lib/planted.c", '#include "daemon/base/log.h"', "client/lib must not include daemon/base"),
    ("client/lib/planted.c", '#include "client/dlctl/command.h"', "client/lib must not include client/dlctl"),
    ("client/cuda/planted.c", '#include "client/lib/client_ring.h"', "client/cuda must not include client/lib"),
    ("client/cuda/kernels/planted.cu", '#include "proto/layout.h"', "client/cuda/kernels must not include proto"),
    ("client/lib/planted.c", '#include "client/cuda/kernels/cpu.h"', "client/lib must not include client/cuda/kernels"),
    ("client/examples/planted.c", '#include "proto/ring.h"', "client/examples must not include proto"),
    ("daemon/base/planted.c", '#include "tests/support/vectors.h"', "daemon/base must not include tests/support"),
    ("daemon/pipeline/planted.c", '#include "daemon/store/tree/tree.h"',
     "daemon/pipeline must not include daemon/store/tree"),
    ("daemon/core/planted.c", '#include "daemon/fetch/origin/origin.h"',
     "daemon/core must not include daemon/fetch/origin"),
    ("daemon/main.c", '#include "daemon/staging/run/run.h"', "daemon/main.c must not include daemon/staging/run"),
    ("daemon/io/planted.c", '#include "daemon/store/record/stamp.h"', "daemon/io must not include daemon/store/record"),
    ("daemon/store/record/planted.h", '#include "daemon/store/plan/plan.h"',
     "daemon/store/record must not include daemon/store/plan"),
    ("daemon/fetch/planted.c", '#include "daemon/store/tree/tree.h"',
     "daemon/fetch must not include daemon/store/tree"),
    ("daemon/staging/prepare/planted.c", '#include "daemon/store/plan/plan.h"',
     "daemon/staging/prepare must not include daemon/store/plan"),
    ("daemon/staging/attic/planted.c", "int planted;", "no rule knows daemon/staging/attic"),
    ("daemon/attic/planted.c", "int planted;", "no rule knows daemon/attic"),
    ("daemon/data/formats/planted.c", "int fd = openat(root_fd, name, O_RDONLY);", "follows links out of a dataset's folder"),
    ("daemon/data/intake/planted.c", 'fd = open("more", O_RDONLY);', "follows links out of a dataset's folder"),
    ("daemon/data/view/planted.c", "if (fstatat(root_fd, name, &status, 0) < 0)", "follows links out of a dataset's folder"),
]


# (file, line planted at its end, what is found there; None: nothing)
COMPUTED = [
    ("daemon/pipeline/planted.c", "position = base + (step * terms->batch_size + i) * terms->world + rank;",
     "computes with batch_size"),
    ("daemon/pipeline/planted.c", "position = base + k * (uint64_t)stream->job->terms.world;", "computes with world"),
    ("daemon/ctl/planted.c", "n = n_samples /\n    options->world_size;", "computes with world_size"),
    ("daemon/data/planted.h", "if ((a - b) % job->terms.world == 0)", "computes with world"),
    ("client/lib/planted.c", "n_batches = info->epoch_samples / size;", "computes with epoch_samples"),
    ("client/dlctl/planted.c", "k = dlp_dealing_position(k, world, rank);", "calls dlp_dealing_position()"),
    ("client/python/dlclient/planted.py", "place = step * self.batch_size", "computes with batch_size"),
    ("client/python/dlclient/planted.py", "epoch, step = divmod(n, len(self) // loader.world_size)",
     "computes with world_size"),
    ("client/lib/client_batch.c", "n = n_slots * ring->control->batch_size;", None),
    ("client/lib/client_batch.c", "n = n_slots * ring->control->batch_size * info->world_size;", "computes with world_size"),
    ("daemon/pipeline/planted.c", 'log("step * world"); /* step * world */ f(uint32_t *world, world, -world);', None),
    ("client/python/dlclient/planted.py", "def f(*, world_size, batch_size=1): return [\"a * world\", *world]  # 2 * world",
     None),
]

# (file, text, line and what is found there; None: nothing)
WORDED = [
    ("README.md", "\nThis\nis no number.\n", '3: "is no number.'),
    ("README.md", "There is no number, and it is no longer there.\n", None),
    ("config/dataloaderd.conf", "# pages where they are to\n# be had\n", '1: "to be had'),
    ("client/include/dlclient.h", "/* the batches\n * behind it */\n", '2: "behind it'),
    ("client/include/dlclient.h", "/* what a killed daemon left behind, and the nodes furthest behind */\n", None),
    ("client/include/dlclient.h", 'puts("12x is "\n     "no number");\n', '1: "is no number'),
    ("daemon/io/planted.c", "int behind = 1; /* a name in code */\n", None),
    ("daemon/io/planted.c", "int a = 1; /* what\n            * is no number */\n", '2: "is no number'),
    ("docs/migration.md", "Ends. Who waits for a batch has to wait.\n", '1: "Who waits'),
    ("docs/migration.md", "Who waits for a batch?\n", None),
    ("client/man/dlctl.1", "it holds nothing but\n.B for\nthe rest\nit holds all, but for the rest\n", '4: "but for'),
]


def check(root, program=LAYERS):
    done = subprocess.run([sys.executable, program, root], check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, timeout=300)
    return done.returncode, done.stdout


@case("each kind of violation is found, with file and line")
def _(box):
    for i, (path, line, message) in enumerate(PLANTED):
        root = box.path(f"tree{i}")  # of these files alone: quicker than the whole tree again and again
        for included in re.findall(r'include *"(.*/.*)"', line):
            write(os.path.join(root, included), b"")
        write(os.path.join(root, path), b"/* planted */\n" + line.encode() + b"\n")
        status, output = check(root)
        equal(status, 1, f"{path}: {line}: {output}")
        contains(output, f"{path}:{'1' if 'attic' in path else '2'}: ", message)


@case("units that include each other in a large circle are found, and small circles are not")
def _(box):
    for n, status in ((4, 0), (5, 1)):
        root = box.path(f"circle{n}")
        for i in range(n):
            write(os.path.join(root, f"daemon/io/part{i}.h"), b"/* a part */\n")
            write(os.path.join(root, f"daemon/io/part{i}.c"), f'#include "daemon/io/part{(i + 1) % n}.h"\n'.encode())
        got, output = check(root)
        equal(got, status, output)
        if status:
            contains(output, "5 units include each other in a circle", "daemon/io/part0 daemon/io/part1")


@case("each way of computing a position beside the epoch plan is found, and what only looks like one is not")
def _(box):
    for i, (path, line, message) in enumerate(COMPUTED):
        root = box.path(f"tree{i}")
        write(os.path.join(root, path), b"\n" + line.encode() + b"\n")
        status, output = check(root, PLAN)
        equal(status, 0 if message is None else 1, f"{line}: {output}")
        if message is not None:
            contains(output, f"{path}:{line.count(chr(10)) + 2}: {message}")


# (file, text of it, another file, text of it, what is found there; None: nothing)
NAMED = [
    ("daemon/io/planted.c", "int a;", "daemon/data/planted.c", "int b;", "there is a "),
    ("daemon/io/planted.c", "int a;", "daemon/io/planted.h", "int b;", None),
    ("daemon/io/planted.c", "static int refuse(struct why *why) {", "proto/other.c", "static void refuse(void) {",
     "refuse() stands in "),
    ("daemon/io/planted.c", "struct why *refuse(int a,\n                   int b) {", "proto/other.c",
     "static int refuse(void);\n/* refuse() { */", None),
    ("daemon/io/planted.c", "static int plan(int a) {\n}\nstruct step step_a = { .plan = plan };", "proto/other.c",
     "static int plan(int a) {\n}\nstruct step step_b = { .plan = plan };", None),
    ("daemon/io/planted.c", "static int plan(int a) {\n}\nstruct step step_a = { .plan = plan };", "proto/other.c",
     "static int plan(int a) {\n}\nstruct step step_b = { .plan = planned };", None),
    ("daemon/io/planted_avx2.c", "static int add(int a) {", "proto/other.c", "static int add(int a) {", None),
]


@case("a file's name and a function's that stand twice are found, and families of kinds and alternatives are not")
def _(box):
    for i, (path, text, other, other_text, message) in enumerate(NAMED):
        root = box.path(f"tree{i}")
        write(os.path.join(root, path), b"\n" + text.encode() + b"\nint always(void) {\n")
        write(os.path.join(root, other), b"\n" + other_text.encode() + b"\n")
        status, output = check(root, NAMES)
        equal(status, 0 if message is None else 1, f"{text}: {output}")
        if message is not None:
            contains(output, message)


@case("a function that nothing but itself and comments names is found, and each kind of use is seen")
def _(box):
    root = box.path("tree")
    declaration = "/* Counts. */\nint planted_count(const struct planted *planted,\n                  int n);\n"
    definition = "/* planted_count() */\nint planted_count(const struct planted *planted, int n) {\n        return n;\n}\n"
    write(os.path.join(root, "daemon/io/planted.h"), declaration.encode())
    for use in ("", '        log("planted_count()");\n', "int planted_count(const struct planted *planted, int n);\n"):
        write(os.path.join(root, "daemon/io/planted.c"), (definition + use).encode())
        status, output = check(root, UNUSED)
        equal(status, 1, f"{use}: {output}")
        contains(output, "daemon/io/planted.h:2: nothing but tests calls planted_count()")
    for use in ("        n = planted_count(planted, 1);\n", "        .count = planted_count,\n",
                "        _cleanup_(planted_count) struct planted *planted;\n"):
        write(os.path.join(root, "daemon/ctl/planted.c"), use.encode())
        status, output = check(root, UNUSED)
        equal(status, 0, f"{use}: {output}")
    os.unlink(os.path.join(root, "daemon/ctl/planted.c"))
    write(os.path.join(root, "daemon/io/planted.h"), b"static inline int planted_twice(int n) {\n        return 2 * n;\n}\n")
    status, output = check(root, UNUSED)
    equal(status, 1, output)
    contains(output, "planted.h:1: nothing but tests calls planted_twice()")


@case("a phrase that is hard to read is found, also over the end of a line, and what only looks like one is not")
def _(box):
    for i, (path, text, message) in enumerate(WORDED):
        root = box.path(f"tree{i}")
        write(os.path.join(root, path), text.encode())
        status, output = check(root, WORDS)
        equal(status, 0 if message is None else 1, f"{text!r}: {output}")
        if message is not None:
            contains(output, f"{path}:{message}")


# (text of a source, line and what is found there; None: nothing)
COMMENTED = [
    ("/* Of a table:\n *\n *      one   the first\n *      two   the second, which\n *            goes on\n *\n * All. */\nint a;\n", None),
    ("/* Of a table:\n *\n *      one   the first\n * two   the second\n */\nint a;\n", "4: not indented"),
    ("/* Of a table:\n *\n * one the first two   the second\n */\nint a;\n", "3: columns within a line"),
    ("/* Of a bar: [||   61 %] and \"a   b\". */\nint a;\n", None),
    ("/* What a is. */\n/* What b is. */\nint b;\n", "2: right after another comment"),
    ("/* ---- files ---- */\n/* What b is. */\nint b;\n\n/* clang-format off */\n/* ---- */\nint c; /* c */\n/* d */\nint d;\n", None),
    ("#define A \\\n        1u /* what A is, at length  \\\n            */\n", "2: broken with backslashes"),
    ("/* As planted.h, io/planted.h and daemon/io/planted.h say (<stdio.h>). */\nint a;\n", None),
    ("/* As\n * io/gone.h says. */\nint a;\n", "2: io/gone.h is not in the tree"),
    ("const char *a = \"/*      b   c\";\nconst char *d = \"*/\";\n", None),
]

# (document, line, what is found there; None: nothing)
DOCUMENTED = [
    ("README.md", "in `daemon/io/planted.c` and `docs/NAME.md`", None),
    ("README.md", "in `daemon/io/gone.c`", "`daemon/io/gone.c` is not in the tree"),
    ("HACKING.md", "in `io/planted.c`, `planted.c`, `planted_count()` and `PLANTED_MAX`", None),
    ("HACKING.md", "in `io/gone.c`", "`io/gone.c` is not in the tree"),
    ("ARCHITECTURE.md", "`planted_gone()`", "`planted_gone()` stands in no source"),
    ("docs/internals/a.md", "`PLANTED_GONE`", "`PLANTED_GONE` stands in no source"),
    ("docs/a.md", "[a](internals/fuzzing.md#fuzzers-and-what-they-read), [b](https://example.org/x)", None),
    ("ARCHITECTURE.md", "\n## Threads\n\n| thread | number |\n|---|---|\n| gone | 1 |\n", "a thread 'gone', which nobody starts"),
    ("daemon/io/other.c", 'r = thread_start(&thread, "other", main, NULL);', "starts a thread 'other', which has no row"),
    ("docs/a.md", "see dlctl(1)", "dlctl.1 is not a manual page of ours"),
    ("client/man/dlctl.1", ".BR dlctl (1),", None),
    ("client/man/dlctl.1", "see\n.BR dataloaderd\\-gone (7).", "client/man/dlctl.1:2: dataloaderd-gone.7 is not a manual page of ours"),
    ("docs/a.md", "[a](internals/gone.md)", "the link to internals/gone.md leads nowhere"),
    ("docs/a.md", "[a](internals/fuzzing.md#gone)", "docs/internals/fuzzing.md has no heading #gone"),
    ("docs/internals/fields.md", "a task takes up to 64 samples, mixed in a stretch of 8 KiB", None),
    ("docs/internals/fields.md", "a task takes up to 63 samples, mixed in a stretch of 8 KiB", "but TASK_ROWS_MAX is [64]"),
    ("docs/internals/fields.md", "a task takes samples, mixed in a stretch of 8 KiB", "TASK_ROWS_MAX is not found"),
    ("README.md", "x" * (8 << 10), "bytes; at most 8192"),
    ("docs/internals/a.md", "x" * (10 << 10), "bytes; at most 10240"),
    ("docs/internals/fuzzing.md", "| `other` | texts |", "has a row for other, which is not a fuzzer"),
]

# (lines of two functions, what is found; None: nothing)
LOCKED = [
    ("pthread_mutex_lock(&a->lock);\n pthread_mutex_unlock(&a->lock);\n inner(b);", None),
    ("pthread_mutex_lock(&a->lock);\n inner(b);\n pthread_mutex_unlock(&a->lock);",
     "outer() through inner(): takes b.lock while it holds a.lock"),
    ("take(a);\n inner(b);\n give(a);", "outer() through inner(): takes b.lock while it holds a.lock"),
    ("take(a);\n give(a);\n inner(b);", None),
    ("pthread_mutex_lock(&a->lock);\n /* inner(b); */\n pthread_mutex_unlock(&a->lock);", None),
    ("pthread_mutex_lock(&a->lock);\n between(a, b);\n pthread_mutex_unlock(&a->lock);", None),
    ("pthread_mutex_lock(&b->lock);\n pthread_mutex_lock(&c->lock);\n pthread_mutex_unlock(&c->lock);\n pthread_mutex_unlock(&b->lock);",
     "outer(): takes c.lock while it holds b.lock"),
    ("pthread_mutex_lock(&b->lock);\n pthread_mutex_lock(&c->lock);\n pthread_mutex_unlock(&c->lock);\n pthread_mutex_unlock(&b->lock);",
     "b.lock is not a leaf: c.lock is taken under it"),
    ("pthread_mutex_lock(&d->lock);\n pthread_mutex_lock(&c->lock);\n pthread_mutex_unlock(&c->lock);\n pthread_mutex_unlock(&d->lock);",
     "c.lock is in a circle of locks"),
]


@case("a comment that a formatter has flowed together or moved away is found, and tables that are whole are not")
def _(box):
    for i, (text, message) in enumerate(COMMENTED):
        root = box.path(f"tree{i}")
        write(os.path.join(root, "daemon/io/planted.h"), text.encode())
        status, output = check(root, COMMENTS)
        equal(status, 0 if message is None else 1, f"{text}: {output}")
        if message is not None:
            contains(output, f"daemon/io/planted.h:{message}")


@case("a path, a name or a link of a document that leads nowhere, a page that is too long and a fuzzer without a row are found")
def _(box):
    for i, (path, line, message) in enumerate(DOCUMENTED):
        root = box.path(f"tree{i}")
        write(os.path.join(root, "daemon/io/planted.c"), b"#define PLANTED_MAX 1\n#define TASK_ROWS_MAX 64u\n#define STRETCH_BYTES (8u << 10)\nint planted_count(void);\n")
        write(os.path.join(root, "tests/fuzz/guided_planted.c"), b"int a;\n")
        texts = {"docs/internals/fuzzing.md": "## Fuzzers, and what they read\n| `planted` | texts |\n"}
        texts[path] = texts.get(path, "") + line + "\n"
        for name, text in texts.items():
            write(os.path.join(root, name), text.encode())
        status, output = check(root, DOCUMENTS)
        equal(status, 0 if message is None else 1, f"{path}: {line[:80]}: {output}")
        if message is not None:
            contains(output, message)


@case("a lock that is taken under another one and has no row is found, also through a function, and a circle of them")
def _(box):
    for i, (text, message) in enumerate(LOCKED):
        root = box.path(f"tree{i}")
        structs = "".join(f"struct {name} {{\n pthread_mutex_t lock;{' /* a leaf */' if name == 'b' else ''}\n}};\n" for name in "abcd")
        taking = "pthread_mutex_lock(&b->lock);\n pthread_mutex_unlock(&b->lock);"
        write(os.path.join(root, "daemon/io/planted.c"), f"""{structs}
static void inner(struct b *b) {{
 {taking}
}}
static void between(struct a *a, struct b *b) {{
 pthread_mutex_unlock(&a->lock);
 {taking}
 pthread_mutex_lock(&a->lock);
}}
static void take(struct a *a) {{
 pthread_mutex_lock(&a->lock);
}}
static void give(struct a *a) {{
 pthread_mutex_unlock(&a->lock);
}}
void outer(struct a *a, struct b *b, struct c *c, struct d *d) {{
 {text}
}}
""".encode())
        write(os.path.join(root, "ARCHITECTURE.md"), b"\n## Locks\n\n| held | taken under it | why |\n|---|---|---|\n"
              b"| `c.lock` | `d.lock` | callback: planted |\n")
        status, output = check(root, LOCKS)
        equal(status, 0 if message is None else 1, f"{text}: {output}")
        if message is not None:
            contains(output, message)


@case("generated headers and the standard library are nobody's floor")
def _(box):
    root = box.path("tree")
    write(os.path.join(root, "daemon/base/planted.c"),
          b'#include <stdio.h>\n#include "proto/dataloader.pb-c.h"\n#include <event2/event.h>\n')
    status, output = check(root)
    equal(status, 0, output)


@case("a tree without sources is no good tree")
def _(box):
    os.makedirs(box.path("nothing"))
    equal(check(box.path("nothing"))[0], 1, "exit status")
    equal(check(box.path("nothing"), WORDS)[0], 1, "exit status")


main()
