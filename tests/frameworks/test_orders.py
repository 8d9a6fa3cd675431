#!/usr/bin/env python3
"""docs/orders.md says which options give the order of another program. Each line of it is tried: the program is run as it
is installed, and `dlctl order` with the options that stand there."""
import ast
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
from harness import DLCTL, ROOT, Skip, Table, case, equal, main
from their_samplers import ROWS, Given
from trainers import need, python_command, run, torchrun_command

N_ORDERS = 100      # that are compared for each line of the page, of ranks of all sizes of the world
N_ROUNDS_MAX = 1000  # of random numbers: for some of them the other program gives nothing

# The lines that need processes of the other program: script, arguments after its file.
TRAINER = "`Trainer` with `TrainingArguments(seed=S, per_device_train_batch_size=B)`"
TRAINER_DROP = "`Trainer` with `TrainingArguments(..., dataloader_drop_last=True)`"
LIGHTNING = "`seed_everything(S)`, `Trainer.fit()` over `DataLoader(d, B, shuffle=True)`"


def lines_of_page():
    """{first column: options, as text} of the tables "| this | is |"."""
    lines, in_table = {}, False
    with open(os.path.join(ROOT, "docs", "orders.md"), encoding="utf-8") as page:
        for line in page:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else None
            if cells is None:
                in_table = False
            elif cells == ["this", "is"]:
                in_table = True
            elif in_table and not cells[0].startswith("---"):
                assert cells[0] not in lines, f"twice: {cells[0]}"
                lines[cells[0]] = cells[1].split("`")[1]
    return lines


LINES = lines_of_page()


def keywords_of(text, names):
    """The keywords that stand there, with values for S, B, W and other names."""
    call = ast.parse(f"f({text})", mode="eval").body
    return {keyword.arg: eval(compile(ast.Expression(keyword.value), text, "eval"), {}, names) for keyword in call.keywords}


def column_options(box, columns):
    for name, values in columns.items():
        path = box.path(f"column_{name}")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{value!r}\n" for value in values)
        yield from ("--column", f"{name}={path}")


def order(box, n, world, rank, epoch, position, keywords, parts):
    """What dlctl says for these keywords of Loader, over a dataset of these parts, if there are any."""
    command = [DLCTL, "order", "--samples", n, "--world", world, "--rank", rank, "--epoch", epoch, "--position", position]
    for name, n_samples in parts.items():
        command += ["--part", f"{name}={n_samples}"]
    for name, value in keywords.items():
        if name == "shuffle":
            command += [] if value else ["--no-shuffle"]
        elif name == "drop_last":
            command += ["--drop-last"] if value else []
        elif name == "columns":
            command += column_options(box, value)
        else:
            command += ["--" + name.replace("batch_size", "batch").replace("_", "-"), value]
    done = subprocess.run([str(word) for word in command], check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=300)
    equal((done.returncode, done.stderr), (0, ""), " ".join(map(str, command)))
    return [int(line) for line in done.stdout.split()]


def ours(box, line, n, world, rank, batch, seed, epoch, position=0, parts=(), **names):
    keywords = keywords_of(LINES[line], dict(names, S=seed, B=batch, W=world))
    return order(box, n, world, rank, epoch, position, keywords, dict(parts))


def compare(box, line, chance):
    """Returns how many orders were compared."""
    theirs, modules, n_rounds = ROWS[line]
    need(*modules)
    n_compared = n_tried = 0
    while n_compared < N_ORDERS and n_tried < N_ROUNDS_MAX:
        n_tried += 1
        world, batch = chance.choice([1, 1, 2, 3, 5, 8]), chance.choice([1, 2, 3, 4, 6, 16])
        n = chance.choice([1 + chance.randrange(12), 1 + chance.randrange(300), world * batch * (1 + chance.randrange(4))])
        seed, epoch = chance.choice([0, chance.randrange(2**31)]), chance.randrange(3)
        for rank in range(world):
            terms = (n, world, rank, batch, seed, epoch)
            given = theirs(*terms)
            if given is not None:
                given = given if isinstance(given, Given) else Given(given)
                n_samples = given.names.pop("n", n)  # if another number was needed
                equal(ours(box, line, n_samples, *terms[1:], position=n_rounds * batch * world, **given.names), given.indices,
                      f"{line}\n(samples, world, rank, batch, seed, epoch) = {terms}, {given.names}")
                n_compared += 1
    return n_compared


@case("each line of docs/orders.md is tried here, and nothing is tried that does not stand there")
def _(box):
    equal(sorted(LINES), sorted([*ROWS, TRAINER, TRAINER_DROP, LIGHTNING]), "lines")


@case("what samplers of other programs give is what the line says, over numbers drawn at random")
def _(box):
    chance, table, skipped = random.Random(), Table(), []
    for line in ROWS:
        with table.row(line):
            try:
                n_compared = compare(box, line, chance)
                equal(n_compared > 20, True, f"{n_compared} orders were compared, enough")
                print(f"{n_compared:4} orders  {line}")
            except Skip as skip:
                skipped.append(str(skip))
    table.done()
    if len(skipped) == len(ROWS):
        raise Skip(skipped[0])


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return [[int(word) for word in line.split()] for line in file]


def compare_run(box, line, out, n, world, batch, seed, epochs):
    for rank in range(world):
        rows = rows_of(f"{out}.{rank}")
        for epoch in range(epochs):
            indices = [index for row in rows if row[0] == epoch for index in row[1:]]
            equal(indices, ours(box, line, n, world, rank, batch, seed, epoch), f"{line}, rank {rank}, epoch {epoch}")


@case("transformers' Trainer in two processes has the batches that the line says")
def _(box):
    need("transformers", "accelerate")
    for line, drop_last in ((TRAINER, 0), (TRAINER_DROP, 1)):
        out = box.path(f"out{drop_last}")
        run(box, torchrun_command(box, os.path.join(HERE, "their_trainer.py"), out, 37, 4, 11, 2, drop_last), seconds=300)
        compare_run(box, line, out, 37, 2, 4, 11, 2)


@case("Lightning's Trainer in two processes has the batches that the line says")
def _(box):
    need("lightning")
    out = box.path("out")
    run(box, python_command(os.path.join(HERE, "their_lightning.py"), out, 37, 4, 11, 2, 2), seconds=300)
    compare_run(box, LIGHTNING, out, 37, 2, 4, 11, 2)


main()
