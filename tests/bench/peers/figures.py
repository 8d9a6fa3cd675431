"""The arithmetic of the comparison: from trials to medians, spreads and ratios. No file, no process.

A trial is a dict: {"item", "repeat", figure: value ...}; an item is what was measured, such as "dali" or "ranks_dali".
A summary is (median, lowest, highest)."""
import statistics

# Of these more is better; of the others less is.
MORE_IS_BETTER = ("images_per_s", "images_per_cpu_s")


def of(trials, item):
    """An item's trials, by repeat."""
    return {trial["repeat"]: trial for trial in trials if trial["item"] == item}


def summary(values):
    values = list(values)
    return (statistics.median(values), min(values), max(values)) if values else None


def figure(trials, item, key):
    """None if it was never measured."""
    return summary(trial[key] for trial in of(trials, item).values())


def ratio(trials, ours, theirs, key):
    """Ours over theirs, repeat by repeat: what was measured one after the other is divided, so that a machine whose speed
    drifts changes both. None if they share no repeat."""
    a, b = of(trials, ours), of(trials, theirs)
    return summary(a[repeat][key] / b[repeat][key] for repeat in sorted(a.keys() & b.keys()))


def is_loss(key, value):
    """Does this ratio, ours over theirs, say that we are worse?"""
    return value < 1 if key in MORE_IS_BETTER else value > 1


def best_workers(sweep):
    """The number of workers with the highest images/s; of equals the smaller."""
    return max(sorted(sweep), key=lambda workers: sweep[workers])


def rotated(items, turn):
    """Another one begins each time, so that none is always measured after the same one."""
    turn %= max(1, len(items))
    return items[turn:] + items[:turn]
