"""The class that a workload of accelerators.py names."""
import dlclient.dlio


class Loader(dlclient.dlio.Loader):
    """RetinaNet's files."""
    train = "retinanet"
