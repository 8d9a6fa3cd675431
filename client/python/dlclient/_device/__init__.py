"""Batches on a GPU: the loader's option device=.

    wish.py      the option: which devices, and what receives the batches there
    library.py   libdlclient-cuda.so.0 through ctypes
    device.py    one rank's device: opened, used, given back
    rank.py      takes batches on it
    source.py    the fields of such a batch
    array.py     an array on the device for programs without a framework
    memory.py    who owns what a batch is written to: the library, torch (torch.py) or JAX (jax.py)
    buffers.py   torch tensors of the program's own, which batches are written to: the option into="""
