#!/usr/bin/env python3
"""Which rank a Python program is: what torch.distributed knows, what launchers leave in the environment, and what cannot
be meant. A rank that is wrong trains on the wrong samples, and nothing fails."""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, equal, expected_order, main, within
from pyclient import Trainer, need, trainer

# Ranks started as torch.multiprocessing.spawn() does it, or forked, which saves each of them the import; `work(rank)` runs in
# each, with torch.distributed initialised.
SPAWN = """
import torch.distributed, torch.multiprocessing
def start(rank, world, method, work):
    torch.distributed.init_process_group("gloo", init_method=method, rank=rank, world_size=world)
    work(rank)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
def spawn(world, work, method=None, how="fork"):
    if __name__ == "__main__":
        torch.multiprocessing.start_processes(start, (world, method or f"file://{sys.argv[1]}", work), world, start_method=how)
"""


def torch_trainer(box, daemon, source, **environment):
    need("torch")
    return trainer(box, daemon, SPAWN + source, box.path("rendezvous"), seconds=120, OMP_NUM_THREADS="1", **environment)


@case("ranks that only torch.distributed knows get their own samples, and find each other")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 40)})
    for method in ("file", "tcp"):
        lines = torch_trainer(box, daemon, """
def work(rank):
    first = dlclient.Loader("f", batch_size=5)
    second = dlclient.Loader("f", batch_size=5, seed=1, persistent=False)
    got = [[i for batch in loader for i in batch.indices.tolist()] for loader in (first, second, second)]
    jobs = [first.job, second.job]
    out([rank, first.rank, first.world_size, jobs, got])
def port():
    import socket
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
spawn(2, work, *((f"tcp://127.0.0.1:{port()}", "spawn") if "METHOD" == "tcp" else ()))
""".replace("METHOD", method))
        equal(sorted(line[:3] for line in lines), [[0, 0, 2], [1, 1, 2]], f"ranks, by {method}")
        equal(lines[0][3], lines[1][3], "both ranks name their jobs alike")
        equal(len(set(lines[0][3])), 2, "two loaders are two jobs")
        for rank, _, _, _, got in lines:
            wanted = [expected_order(40, world=2, rank=rank), expected_order(40, world=2, rank=rank, seed=1),
                      expected_order(40, world=2, rank=rank, seed=1, epoch=1)]
            equal(got, wanted, f"samples of rank {rank}, by {method}")
        os.unlink(box.path("rendezvous")) if os.path.exists(box.path("rendezvous")) else None


@case("DistributedDataParallel over gloo trains on every sample of an epoch once")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 24)})
    lines = torch_trainer(box, daemon, """
def work(rank):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(9 * 7 * 3, 2))
    loader = dlclient.Loader("p", batch_size=3, pipeline="decode", framework="torch")
    seen = []
    for batch in loader:
        loss = torch.nn.functional.cross_entropy(model(batch["image"].flatten(1).float() / 255), batch["label"])
        loss.backward()
        seen += batch.served.tolist()
    out([seen, float(loss)])
spawn(2, work)
""")
    equal(sorted(lines[0][0] + lines[1][0]), list(range(24)), "samples of both ranks")


@case("torch.distributed and an environment that disagree are refused with both; a world of one says nothing")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 40)})
    lines = torch_trainer(box, daemon, """
def work(rank):
    for variables in (dict(RANK=0, WORLD_SIZE=8), dict(RANK=1 - rank, WORLD_SIZE=2),
                      dict(SLURM_PROCID=0, SLURM_STEP_NUM_TASKS=4)):
        os.environ.update({name: str(value) for name, value in variables.items()})
        text = refused(dlclient.OptionError, lambda: dlclient.Loader("f"), f"rank {rank} of 2", "torch.distributed",
                       f"rank {list(variables.values())[0]} of {list(variables.values())[1]}", list(variables)[0])
        given = dlclient.Loader("f", rank=rank, world_size=2, job="given")
        assert (given.rank, given.world_size) == (rank, 2)
        given.close()
        for name in variables: del os.environ[name]
        torch.distributed.barrier()
    assert issubclass(dlclient.OptionError, ValueError)
    for variables in (dict(SLURM_PROCID=0, SLURM_STEP_NUM_TASKS=1, SLURM_NTASKS=1), dict(RANK=0, WORLD_SIZE=1),
                      dict(RANK=rank, WORLD_SIZE=2, MASTER_ADDR="127.0.0.1", MASTER_PORT=1)):
        os.environ.update({name: str(value) for name, value in variables.items()})
        loader = dlclient.Loader("f")
        assert (loader.rank, loader.world_size) == (rank, 2), (variables, loader)
        for name in variables: del os.environ[name]
    out("done")
spawn(2, work)
""")
    equal(lines, ["done"] * 2, "both ranks")


@case("a loader that was opened before init_process_group() says so, instead of giving all ranks the same samples")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 40)})
    need("torch")
    lines = trainer(box, daemon, """
import torch.distributed, torch.multiprocessing
def start(rank, world):
    early = dlclient.Loader("f", batch_size=5)
    given = dlclient.Loader("f", batch_size=5, rank=0, world_size=1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=world)
    refused(dlclient.OptionError, lambda: next(iter(early)), "opened as rank 0 of 1", f"rank {rank} of 2",
            "init_process_group")
    assert len(list(batch.step for batch in given)) == 8
    late = dlclient.Loader("f", batch_size=5)
    out([rank, sum((batch.indices.tolist() for batch in late), [])])
    torch.distributed.barrier()
if __name__ == "__main__":
    torch.multiprocessing.start_processes(start, (2,), 2, start_method="fork")
""", box.path("rendezvous"), seconds=120, OMP_NUM_THREADS="1")
    equal(sorted(lines), [[rank, expected_order(40, world=2, rank=rank)] for rank in range(2)], "samples")


@case("without an initialised torch.distributed the environment decides, and torch is not imported for the question")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 40)})
    trainer(box, daemon, """
        loader = dlclient.Loader("f")
        assert (loader.rank, loader.world_size) == (0, 1) and "torch" not in sys.modules
        loader.close()
        import types
        sys.modules["torch.distributed"] = types.ModuleType("torch.distributed")    # in the midst of being imported
        assert dlclient.Loader("f").world_size == 1
    """)


# environment, rank and world, a part of the warning
SLURM = [
    (dict(SLURM_PROCID=0, SLURM_NTASKS=8, SLURM_JOB_ID=7), [0, 1], "SLURM_NTASKS=8"),               # a batch script
    (dict(SLURM_PROCID=0, SLURM_NTASKS=8, SLURM_STEP_NUM_TASKS=1, SLURM_JOB_ID=7), [0, 1], "rank 0 of 1"),
    (dict(SLURM_PROCID=0, SLURM_NTASKS=1, SLURM_STEP_NUM_TASKS=1, SLURM_JOB_ID=7), [0, 1], None),
    (dict(SLURM_NTASKS=8, SLURM_JOB_ID=7), [0, 1], None),                                           # salloc's shell
    (dict(SLURM_PROCID=2, SLURM_NTASKS=8, SLURM_STEP_NUM_TASKS=8, SLURM_JOB_ID=7), [2, 8], None),
    (dict(SLURM_PROCID=2, SLURM_NTASKS=8, SLURM_STEP_NUM_TASKS=4, SLURM_JOB_ID=7), [2, 4], None),   # srun -n4
]


@case("of Slurm a step of several tasks counts alone; one process of an allocation gets all samples, and a warning")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 40)})
    for variables, place, warning in SLURM:
        lines = trainer(box, daemon, """
            import warnings
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                loader = dlclient.Loader("f", batch_size=5)
                n = sum(batch.n_samples for batch in loader)
            out([loader.rank, loader.world_size])
            out(n)
            out([str(one.message) for one in caught if one.category is dlclient.LoaderWarning])
            assert all(one.filename == __file__ for one in caught), [one.filename for one in caught]
        """, **{name: str(value) for name, value in variables.items()})
        equal(lines[:2], [place, 40 // place[1]], f"{variables}: rank, world, and samples")
        equal([warning in text for text in lines[2]], [True] if warning else [], f"{variables}: {lines[2]}")


# environment of a loader that is alone, options, a part of the warning
LAUNCHED = dict(MASTER_ADDR="10.0.0.1", MASTER_PORT=1)
ALONE = [
    (dict(RANK=0, WORLD_SIZE=4, LOCAL_RANK=0, LOCAL_WORLD_SIZE=4), "", "not attached so far: 1-3. It gets 10 of 40 samples"),
    (dict(RANK=3, WORLD_SIZE=4, LOCAL_RANK=1, LOCAL_WORLD_SIZE=2), "", "not attached so far: 2. It"),
    (dict(RANK=0, WORLD_SIZE=4, MASTER_ADDR="localhost"), "persistent=False", "not attached so far: 1-3. It"),
    (dict(SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=3, SLURM_STEP_NUM_NODES=1, SLURM_JOB_ID=3), "", "not attached so far: 0, 2. It"),
    (dict(OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE=8, OMPI_COMM_WORLD_LOCAL_SIZE=2), "", "1 of the 2 on this node"),
    (dict(RANK=0, WORLD_SIZE=4), "", None),                                         # several nodes, for all that is known
    (dict(RANK=0, WORLD_SIZE=4, LOCAL_RANK=0, LOCAL_WORLD_SIZE=1), "", None),       # a rank a node
    (dict(RANK=0, WORLD_SIZE=1, LOCAL_RANK=0, LOCAL_WORLD_SIZE=1), "", None),
    (dict(SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=4, SLURM_STEP_NUM_NODES=2, SLURM_JOB_ID=4), "", None),
    (dict(RANK=0, WORLD_SIZE=4, LOCAL_RANK=0, LOCAL_WORLD_SIZE=4), "rank=0, world_size=4, job='mine'", None),
    (dict(RANK=0, WORLD_SIZE=4, LOCAL_RANK=0, LOCAL_WORLD_SIZE=4), "rank=0, world_size=1", None),
]

WARNED = """
    import warnings
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loader = dlclient.Loader("f", batch_size=5, **eval(f"dict({sys.argv[1]})"))
        for epoch in range(2):
            for batch in loader: pass
            if epoch == 0: n = len(caught)
        assert n == len(caught), "told once, at the end of the first epoch"
    assert all(one.filename == __file__ for one in caught), [one.filename for one in caught]
    out([str(one.message) for one in caught if one.category is dlclient.LoaderWarning])
"""


@case("a loader on one rank alone says which ranks never came; not to several nodes, nor who asked for a share")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 40)}, memory_limit="2GiB")
    need("numpy")
    runs = [Trainer(box, daemon, WARNED, [options], **{name: str(value) for name, value in dict(
        LAUNCHED, MASTER_PORT=number, OMPI_MCA_ess_base_jobid=number).items() if name not in variables},
        **{name: str(value) for name, value in variables.items()})
        for number, (variables, options, _) in enumerate(ALONE)]
    for run, (variables, options, warning) in zip(runs, ALONE):
        told = run.finish()[0]
        equal([warning in text for text in told], [True] if warning else [], f"{variables} {options}: {told}")


@case("ranks that come late, and ranks that have come and gone, are not missed")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 40)})
    need("numpy")
    launched = {name: str(value) for name, value in LAUNCHED.items()}
    def start(rank, source):
        return Trainer(box, daemon, source, [""], RANK=str(rank), WORLD_SIZE="3", LOCAL_RANK=str(rank),
                       LOCAL_WORLD_SIZE="3", **launched)
    waits = """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    out("ready")
    signal.sigwait({signal.SIGUSR1})
"""
    start(1, 'dlclient.Loader("f", batch_size=5).close()').finish()             # it has come and gone, and so has its job
    late, first = start(2, waits + WARNED), start(0, waits + WARNED)
    for run in (late, first):
        run.wait_lines(1)
    first.process.send_signal(signal.SIGUSR1)
    within(20, lambda: daemon.objects("jobs"), "rank 0 is there")
    late.process.send_signal(signal.SIGUSR1)
    equal([run.finish()[1:] for run in (first, late)], [[[]], [[]]], "what they were told")


main()
