"""As kill_rank.c, in Python: a trainer that may be killed at any moment and begins anew after what it wrote down.

    kill_rank.py DATASET BATCH SEED LOG PAUSE_US
"""
import json
import os
import signal
import sys
import time

import dlclient


def fnv1a(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value


def state_of(path):
    """The state that was saved last, or None. Saved by rename: it is whole or not there."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def main():
    dataset, batch_size, seed, log_path, pause_us = sys.argv[1:]
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    with open(log_path, "ab") as log:
        # The line and the state after it are two writes: the state says how long the log is that belongs to it.
        saved = state_of(log_path + ".state")
        log.truncate(saved["log_bytes"] if saved else 0)
        log.seek(0, os.SEEK_END)
        while True:
            try:
                loader = dlclient.Loader(dataset, batch_size=int(batch_size), seed=int(seed), job="kills", epochs=None,
                                         state=saved["state"] if saved else None)
                break
            except (dlclient.DaemonNotRunning, dlclient.DaemonGone):
                if ended:
                    return
                time.sleep(0.005)
        for batch in loader:
            samples = " ".join(f"{index}:{fnv1a(bytes(data)):x}" for index, data in zip(batch.indices, batch["image"]))
            log.write(f"{batch.epoch} {batch.step} 0 {samples}\n".encode())
            log.flush()
            with open(log_path + ".new", "w", encoding="utf-8") as file:
                json.dump({"log_bytes": log.tell(), "state": loader.state_dict()}, file)
            os.rename(log_path + ".new", log_path + ".state")
            time.sleep(int(pause_us) / 1e6)
            if ended:
                return


main()
