"""What is compared with what: the peers, the items that are measured, and the names of the results."""
import collections

# group: the list of packages; row: "A" gives the same pixels as Pillow's decoder and filter (to rounding), "B" what is
# usual for speed.
Peer = collections.namedtuple("Peer", "name row group title")

PEERS = [
    Peer("dlclient", "A", "torch", "dataloaderd"),
    Peer("torch_tuned", "A", "torch", "torch: simplejpeg, torch's resize"),
    Peer("torch_io", "A", "torch", "torch: torchvision.io, v2"),
    Peer("torch_pil", "A", "torch", "torch: v2 on Pillow"),
    Peer("dali", "A", "dali", "DALI, whole picture"),
    Peer("spdl", "A", "spdl", "SPDL: simplejpeg, torch's resize"),
    Peer("tfdata", "A", "tensorflow", "tf.data, exact"),
    Peer("tfdata_roi", "B", "tensorflow", "tf.data, crop decoded, fast DCT"),
    Peer("opencv", "B", "torch", "torch: OpenCV, linear"),
    Peer("dali_roi", "B", "dali", "DALI, crop decoded"),
    Peer("ffcv", "B", "ffcv", "FFCV, jpg"),
]
TITLES = {peer.name: peer.title for peer in PEERS}
TITLES.update(transport_dlclient="dataloaderd", transport_torch="torch's DataLoader",
              transport_spdl="SPDL's segments")

# kind: see trial.run(); workers: those that are tried before, or the item whose best number is taken over.
Item = collections.namedtuple("Item", "name peer group kind workers")
SWEEP = (1, 2, 3)
PAIRED = ("torch_pil", "dali")  # the peers of two ranks and two jobs
BARE = ("dlclient", "dali")     # loaders without torch, whose trainers need not import it


def items():
    all_items = [Item(peer.name, peer.name, peer.group, "one", SWEEP) for peer in PEERS]
    groups = {peer.name: peer.group for peer in PEERS}
    for kind in ("ranks", "jobs"):
        all_items.append(Item(f"{kind}_dlclient", "dlclient", "torch", kind, "dlclient"))
        for name in PAIRED:
            workers = (1, 2) if kind == "ranks" else f"ranks_{name}"
            all_items.append(Item(f"{kind}_{name}", name, groups[name], kind, workers))
    for name in BARE:
        all_items.append(Item(f"bare_{name}", name, groups.get(name, "torch"), "bare", f"ranks_{name}"))
    for name, group, workers in (("dlclient", "torch", (1,)), ("torch", "torch", (1, 2)), ("spdl", "spdl", (1,))):
        all_items.append(Item(f"transport_{name}", f"transport_{name}", group, "one", workers))
    return all_items


# A result: its name, the item it needs (and the one that it is divided by, or None), the figure, the unit.
Result = collections.namedtuple("Result", "name ours theirs key unit")


def results():
    found = []
    for peer in (peer.name for peer in PEERS):
        if peer != "dlclient":
            found.append(Result(f"ratio_{peer}", "dlclient", peer, "images_per_s", "ratio"))
            found.append(Result(f"ratio_cpu_{peer}", "dlclient", peer, "images_per_cpu_s", "ratio"))
    found += [Result("ratio_two_ranks", "ranks_dlclient", "dlclient", "images_per_s", "ratio"),
              Result("ratio_memory_two_ranks", "ranks_dlclient", "ranks_torch_pil", "pss_mib", "ratio"),
              Result("ratio_memory_two_ranks_bare", "bare_dlclient", "ranks_torch_pil", "pss_mib", "ratio"),
              Result("ratio_transport", "transport_dlclient", "transport_torch", "images_per_s", "ratio"),
              Result("ratio_transport_spdl", "transport_dlclient", "transport_spdl", "images_per_s", "ratio")]
    for kind in ("ranks", "jobs"):
        for peer in PAIRED:
            found.append(Result(f"ratio_{kind}_{peer}", f"{kind}_dlclient", f"{kind}_{peer}", "images_per_s", "ratio"))
    for prefix, key, unit in (("rate", "images_per_s", "images/s"), ("cpu", "cpu_s_per_1000", "s/1000"),
                              ("first_batch", "first_ms", "ms"), ("next_p50", "next_p50_ms", "ms"),
                              ("next_p99", "next_p99_ms", "ms"), ("memory", "pss_mib", "MiB")):
        found += [Result(f"{prefix}_{item.name}", item.name, None, key, unit) for item in items()
                  if prefix in ("rate", "memory") or item.kind == "one"]
    return found


def chosen(prefix):
    """The results whose names begin so, the items that they need, and whether pixels are compared."""
    wanted = [result for result in results() if result.name.startswith(prefix)]
    needed = {name for result in wanted for name in (result.ours, result.theirs)}
    by_name = {item.name: item for item in items()}
    needed |= {by_name[name].workers for name in needed if name and isinstance(by_name[name].workers, str)}
    return wanted, [item for item in items() if item.name in needed], "psnr".startswith(prefix) or prefix.startswith("psnr")
