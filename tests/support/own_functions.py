"""What trainers of the tests of functions of their own begin with: what a loader delivers, and which processes it has."""

BEGIN = """
import hashlib
def hashes(loader, name="image", epochs=1):
    lines = []
    for epoch in range(epochs):
        loader.set_epoch(epoch)
        for batch in loader:
            for index, array in zip(batch.indices.tolist(), batch[name]):
                lines.append((epoch, index, str(array.dtype), list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()))
    loader.close()
    return lines
def group_of(pid):
    try:
        return os.getpgid(int(pid))
    except ProcessLookupError:
        return 0
def processes():
    return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and group_of(pid) == os.getpgid(0)]
"""
