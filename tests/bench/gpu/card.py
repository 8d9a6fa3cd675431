"""What the results were measured on: the GPU, its driver, and its place in the machine, as sysfs says."""
import os
import re

SYSFS = "/sys/bus/pci/devices"
# GT/s of a lane -> generation, and the share of it that is not coding.
GENERATIONS = {2.5: (1, 0.8), 5.0: (2, 0.8), 8.0: (3, 128 / 130), 16.0: (4, 128 / 130), 32.0: (5, 128 / 130),
               64.0: (6, 242 / 256)}


def read(*path):
    """A file's line; "" if it cannot be read."""
    try:
        with open(os.path.join(*path), encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def link(folder, which):
    """(generation, lanes, GB/s at most) of the link as it is ("current") or can be ("max"); None if that is unknown."""
    speed = re.match(r"([\d.]+) GT/s", read(folder, f"{which}_link_speed"))
    lanes = read(folder, f"{which}_link_width")
    if not speed or not lanes.isdigit() or float(speed[1]) not in GENERATIONS:
        return None
    generation, share = GENERATIONS[float(speed[1])]
    return generation, int(lanes), float(speed[1]) * share * int(lanes) / 8


def link_text(found):
    return f"PCIe {found[0]} x{found[1]}, {found[2]:.1f} GB/s at most" if found else "link unknown"


def driver_version(proc="/proc/driver/nvidia/version"):
    """As nvidia-smi shows it."""
    found = re.search(r"Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)", read(proc))
    return found[1] if found else "unknown"


def about(probe, sysfs=SYSFS):
    """probe: what `gpu probe` printed."""
    folder = os.path.join(sysfs, probe["bus_id"].lower())
    found = {which: link(folder, which) for which in ("current", "max")}
    return {"gpu": probe["name"], "bus_id": probe["bus_id"], "multiprocessors": probe["n_multiprocessors"],
            "cuda": f"{probe['cuda_version'] // 1000}.{probe['cuda_version'] % 1000 // 10}", "driver": driver_version(),
            "link": link_text(found["max"]), "link_now": link_text(found["current"]),
            "numa_node": read(folder, "numa_node") or "unknown"}
