"""What processes use: CPU time by thread, memory by kind. Read from /proc, from outside."""
import os

KINDS = ("Pss_Anon", "Pss_File", "Pss_Shmem")


def threads_ns(pid):
    """thread's name -> ns on a CPU so far. Threads with a number share a name: worker-0, worker-1."""
    times = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/comm", encoding="utf-8") as file:
                name = file.read().strip().rpartition("-")
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                ns = int(file.read().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        name = name[0] if name[2].isdigit() else "".join(name)
        times[name] = times.get(name, 0) + ns
    return times


def n_sleeps(pid):
    """How often threads of it have gone to sleep so far: work that comes one by one wakes a thread for each."""
    n = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/status", encoding="utf-8") as file:
                n += next(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches:"))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return n


def total_ns(pids):
    return sum(sum(threads_ns(pid).values()) for pid in pids)


def memory(pids):
    """Bytes of all of them together, what they share counted once: anonymous, of files, of rings."""
    sums = dict.fromkeys(KINDS, 0)
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            for line in file:
                kind, _, rest = line.partition(":")
                if kind in sums:
                    sums[kind] += int(rest.split()[0]) << 10
    return sums
