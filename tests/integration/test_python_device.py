#!/usr/bin/env python3
"""Loader(device="cuda"): the Python client with libdlclient-cuda on the tests' driver, which begins all work late; without
a framework, with what stands in for JAX, and where there is no device. torch is in test_python_device_torch.py."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import pyclient
from device_scripts import CROP, PICTURES, SUPPORT, TOOLS, on_device, with_torch
from gpu import STAND_IN, has_real_driver
from harness import case, equal, main
from pyclient import need
from tars import archive, web


# ---- without a framework

@case("arrays on the device: CUDA's array interface and DLPack have the numbers of the CPU, and hold their batch")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 26, **PICTURES)}, workers=2)
    on_device(box, daemon, f"""
        on_device.begin()
        from dlclient._device.array import _DLTensor, _capsule_pointer
        options = dict(batch_size=6, pipeline="{CROP} to(float16) layout(nchw)", seed=3)
        with dlclient.Loader("p", device="cuda", **options) as there, dlclient.Loader("p", copy=True, **options) as here:
            for epoch in range(2):
                for a, b in zip(there, here):
                    for name in ("image", "label"):
                        array = a[name]
                        assert isinstance(array, dlclient.DeviceArray) and array.device == "cuda:0"
                        assert array.dtype == b[name].dtype and array.shape == b[name].shape and len(array) == len(b[name])
                        assert array.strides == b[name].strides and array.nbytes == b[name].nbytes and array.ndim == b[name].ndim
                        interface = array.__cuda_array_interface__
                        assert interface["version"] == 3 and interface["stream"] == 1 and interface["data"][1] is False
                        same(on_device.values(array), b[name])
                        same(on_device.values(array[-1]) if name == "image" else b[name][-1], b[name][-1])
                    assert a.indices.tolist() == b.indices.tolist()
                    side = on_device.stream()
                    capsule = a["image"].__dlpack__(stream=side)      # the stream waits for the batch
                    assert a["image"].__dlpack_device__() == (2, 0)
                    tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
                    assert (tensor.device_type, tensor.device_id, tensor.code, tensor.bits, tensor.lanes, tensor.ndim) == (2, 0, 2, 16, 1, 4)
                    same(numpy.frombuffer(on_device.read(tensor.data, b["image"].nbytes, side), "<f2").reshape(b["image"].shape), b["image"])
                    repr(a), repr(a["image"])
                    del a, array, tensor
            refused(TypeError, lambda: numpy.asarray(next(iter(there))["image"]), "cuda:0", "cupy")
            image = next(iter(there))["image"]
            for wrong in (lambda: image.__dlpack__(copy=True), lambda: image.__dlpack__(dl_device=(1, 0))): refused(BufferError, wrong, "where it lies")
            refused(TypeError, lambda: image["x"], "framework")
            refused(IndexError, lambda: image[6])
            refused(TypeError, lambda: image.used_on("x"), "not a stream")
            del image, capsule
        gc.collect()
        counts = clean()
        assert counts.n_allocations == counts.n_registrations == 0, "what is left"
        """)


@case("arrays on the device: those that are kept hold memory, and a sentence says so; closing a loader leaves them as they are")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    on_device(box, daemon, f"""
        on_device.begin()
        options = dict(batch_size=4, pipeline="{CROP} to(float16)", seed=3)
        with dlclient.Loader("p", copy=True, **options) as here: expected = [batch["image"] for batch in here]
        loader = dlclient.Loader("p", device="cuda", **options)
        batches = iter(loader)
        kept = [next(batches)["image"] for _ in range(4)]
        refused(dlclient.RingFull, lambda: next(batches), "4 of 4 batches on the device", "image", "framework=\\"torch\\"")
        for i in range(4): same(on_device.values(kept[i]), expected[i])
        del kept[1]
        batch = next(batches)
        same(on_device.values(batch["image"]), expected[4])
        batch.release()
        refused(dlclient.BatchReleased, lambda: batch["image"], "released")
        cycle = [next(batches)["image"]]; cycle.append(cycle); del cycle        # garbage that only the collector finds
        gc.disable()
        same(on_device.values(next(batches)["image"]), expected[6])
        gc.enable()
        on_device.check(on_device.cuda.cuCtxSynchronize())
        loader.close()
        refused(dlclient.LoaderClosed, lambda: next(batches), "closed")
        for i, number in enumerate((0, 2, 3)): same(on_device.values(kept[i]), expected[number], "after close()")
        assert on_device.counts().n_allocations > 0
        del kept, batch
        gc.collect()
        counts = clean()
        assert counts.n_allocations == counts.n_registrations == counts.n_streams == 0, "given back with the last array"
        refused(dlclient.OptionError, lambda: dlclient.Loader("p", device="cuda", copy=True, **options), "copy: True", "torch")
        refused(dlclient.OptionError, lambda: dlclient.Loader("p", device="cuda", framework="numpy", into={{}}, **options), "into: ")
        """)


@case("arrays on the device: streams that do not block are waited for, by used_on() and by DLPack: 0 of 160, and without them some")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    source = f"""
        on_device.begin()
        class Theirs: pass                                       # as torch, CuPy and Numba have streams
        options = dict(batch_size=4, pipeline="{CROP} to(float16)", epochs=5)
        with dlclient.Loader("p", copy=True, **options) as here: expected = [batch["image"].tobytes() for batch in here]
        def run(tell):
            streams, results = [on_device.stream() for _ in range(3)], []
            with dlclient.Loader("p", device="cuda", **options) as loader:
                for i, batch in enumerate(loader):
                    image, stream = batch["image"], streams[i % 3]
                    if tell == "used_on":
                        theirs = Theirs(); setattr(theirs, ("cuda_stream", "ptr", "handle")[i % 3], stream)
                        image.used_on(theirs)
                    elif tell == "dlpack": capsule = image.__dlpack__(stream=stream)
                    result = on_device.allocate(image.nbytes)
                    busy(stream)
                    on_device.copy(result, image.pointer, image.nbytes, stream)
                    results.append(result)
                    del batch, image
                    capsule = None
            on_device.check(on_device.cuda.cuCtxSynchronize())
            return sum(on_device.read(result, len(bytes)) != bytes for result, bytes in zip(results, expected))
        """
    out = on_device(box, daemon, source + "out([run('used_on'), run('dlpack'), any(run(None) for _ in range(5))]); clean()", delay_us=4000)
    equal(out[0], [0, 0, True], "batches that were overwritten; without it some are")


@case("arrays on the device: single samples and joined fields without a framework; pieces; what cannot be copied or pickled says so")
def _(box):
    members = [(f"{i:03d}.json", b'{"numbers": [%s]}' % b", ".join(b"%d" % k for k in range(i % 4))) for i in range(12)]
    archive(box.path("w", "a.tar"), members)
    daemon = box.daemon({"w": web(box.path("w"))}, workers=2)
    on_device(box, daemon, """
        import copy, pickle
        on_device.begin()
        for end in ("", " ragged(joined=true)"):
            options = dict(pipeline="json: json(numbers) to(int64, shape=-1)" + end, seed=1)
            for batch_size in (4, None):
                with dlclient.Loader("w", device="cuda", batch_size=batch_size, **options) as there, \\
                        dlclient.Loader("w", copy=True, batch_size=batch_size, **options) as here:
                    for a, b in zip(there, here):
                        if batch_size is None: same(on_device.values(a.json), b.json)
                        else:
                            for mine, theirs in zip(a.json, b.json): same(on_device.values(mine), theirs)
                            assert a.json.lengths == b.json.lengths
                            if a.json._joined is not None: same(on_device.values(a.json.values), b.json.values)
        with dlclient.Loader("w", device="cuda", pipeline="json: json(numbers) to(int64, shape=-1) pad", batch_size=4, shuffle=False) as there:
            batch = next(iter(there))
            array = batch["json"]
            whole = on_device.values(array)
            for place in (slice(1, 3), slice(None), slice(-2, None), slice(3, 1), slice(9, None)): same(on_device.values(array[place]), whole[place])
            refused(TypeError, lambda: array[::2], "framework")
            refused(TypeError, lambda: batch.model_inputs("json"), "framework=\\"torch\\"")
            for function in (copy.copy, copy.deepcopy, pickle.dumps): refused(TypeError, lambda: function(array), "cuda:0", "clone")
        clean()
        class OnCpu: platform, id = "cpu", 0                  # as a jax.Device
        for device, name in ((numpy.int64(0), "cuda:0"), ("GPU:0", "cuda:0"), (OnCpu(), None)):
            with dlclient.Loader("w", device=device, pipeline="raw") as loader: assert loader.device == name
        for device in ("", "cuda:", "cuda:-1", b"cuda", numpy.bool_(True), 99999): refused(dlclient.OptionError, lambda: dlclient.Loader("w", device=device), "device: ")
        """)


@case("a capsule that dies in a thread that is not Python's holds its batch until then, also after the loader is gone")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 26, **PICTURES)}, workers=2)
    on_device(box, daemon, """
        on_device.begin()
        import _thread
        from dlclient._device.array import _capsule_pointer
        class Managed(ctypes.Structure):
            _fields_ = [("tensor", ctypes.c_char * 48), ("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]
        rename = ctypes.pythonapi.PyCapsule_SetName; rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
        def taken(array):
            '''What a consumer does with a capsule: from here on its deleter has to be called.'''
            capsule = array.__dlpack__()
            pointer = _capsule_pointer(capsule, b"dltensor")
            rename(capsule, b"used_dltensor")
            return pointer
        def deleted_elsewhere(pointer):
            done = threading.Event()
            def run():
                Managed.from_address(pointer).deleter(pointer)
                done.set()
            _thread.start_new_thread(run, ())
            assert done.wait(20)
        loader = dlclient.Loader("p", device="cuda", batch_size=4, pipeline="center_crop(8)")
        batches = iter(loader)
        pointers = [taken(next(batches)["image"]) for _ in range(4)]
        refused(dlclient.RingFull, lambda: next(batches), "an export")
        deleted_elsewhere(pointers.pop())
        n_calls = on_device.counts().n_calls
        next(batches)
        loader.close()
        del loader, batches
        gc.collect()
        assert on_device.counts().n_allocations > 0, "three are held"
        for pointer in pointers: deleted_elsewhere(pointer)
        gc.collect()
        with dlclient.Loader("p", device="cuda", batch_size=4, pipeline="center_crop(8)") as loader:    # closes what the thread left
            assert sum(1 for _ in loader) == 7
        gc.collect()
        counts = clean()
        assert counts.n_allocations == counts.n_registrations == 0, "what is left"
        """)


# ---- JAX

JAX = """\
# What the client asks of JAX, on the tests' driver: JAX itself runs on a real one.
import sys, types
class JaxArray:
    def __init__(self, pointer, shape, dtype, source=None):
        self.pointer, self.shape, self.dtype, self.source, self.event = pointer, shape, dtype, source, None
    @property
    def nbytes(self): return int(numpy.prod(self.shape)) * self.dtype.itemsize
    def is_ready(self): return self.event is None or on_device.cuda.cuEventQuery(ctypes.c_void_p(self.event)) == 0
    def block_until_ready(self): on_device.check(on_device.cuda.cuEventSynchronize(ctypes.c_void_p(self.event)))
    def devices(self): return set()
streams = []                                              # it takes memory over on one stream, and computes on another
def ordered(first, second):
    event = on_device.event()
    on_device.check(on_device.cuda.cuEventRecord(ctypes.c_void_p(event), ctypes.c_void_p(first)))
    on_device.check(on_device.cuda.cuStreamWaitEvent(ctypes.c_void_p(second), ctypes.c_void_p(event), 0))
def from_dlpack(array):
    capsule = array.__dlpack__(stream=streams[0])
    ordered(*streams)
    return JaxArray(array.pointer, array.shape, array.dtype, capsule)
def jax_array(theirs, copy):
    mine = JaxArray(on_device.allocate(theirs.nbytes), theirs.shape, theirs.dtype)
    busy(streams[1])
    on_device.copy(mine.pointer, theirs.pointer, theirs.nbytes, streams[1])
    mine.event = on_device.event()
    on_device.check(on_device.cuda.cuEventRecord(ctypes.c_void_p(mine.event), ctypes.c_void_p(streams[1])))
    return mine
jax, jnp = types.ModuleType("jax"), types.ModuleType("jax.numpy")
class GPU: platform, id, local_hardware_id = "gpu", 0, 0
jax.local_devices = lambda backend: [GPU]
jax.device_put = lambda array, device: array
jax.numpy, jnp.from_dlpack, jnp.array, jnp.asarray = jnp, from_dlpack, jax_array, lambda array: array
sys.modules["jax"], sys.modules["jax.numpy"] = jax, jnp
"""


@case("JAX: each field becomes an array of JAX's own, and its batch is held until JAX has read it: 0 of 80")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    on_device(box, daemon, f"""
        on_device.begin()
        streams.extend([on_device.stream(), on_device.stream()])
        options = dict(batch_size=4, pipeline="{CROP} to(float16)", epochs=5)
        with dlclient.Loader("p", copy=True, **options) as here: expected = [batch["image"].tobytes() for batch in here]
        with dlclient.Loader("p", device=GPU(), framework="jax", **options) as loader:
            collected, real = [], gc.collect
            gc.collect = lambda *_: collected.append(real())
            kept = [batch["image"] for batch in loader]              # they are JAX's: all may be kept
            gc.collect = real
        on_device.check(on_device.cuda.cuCtxSynchronize())
        assert [on_device.read(array.pointer, array.nbytes) for array in kept] == expected
        assert not collected, "JAX's own reading is waited for, and no garbage looked for"
        clean()
        def no_gpu(backend): raise RuntimeError("Unknown backend gpu")
        jax.local_devices = no_gpu
        refused(dlclient.DeviceNotFound, lambda: dlclient.Loader("p", device="cuda", framework="jax"), "JAX finds no GPU", "Unknown backend")
        """, tools=TOOLS + JAX, delay_us=4000)


# ---- what is not there, and what ends

@case("no driver, no device, a framework without CUDA: DeviceNotFound says what to do, before anything is attached, and the CPU goes on")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 16, **PICTURES)}, workers=2)
    source = """
        text = refused(dlclient.DeviceNotFound, lambda: dlclient.Loader("p", device="cuda", pipeline="center_crop(8)"), "device: no GPU", *sys.argv[1:])
        assert text.count("device: ") == 1, text
        with dlclient.Loader("p", batch_size=4, pipeline="center_crop(8)") as loader: out(sum(1 for _ in loader))
        """
    for settings, words in ((dict(devices=0), ["CUDA_VISIBLE_DEVICES"]), (dict(version=10020), ["too old", "11.0"])):
        equal(on_device(box, daemon, source, *words, **settings), [4])
    if not has_real_driver():
        equal(on_device(box, daemon, "", driver=False, tools=source, ), [4])
    need("torch")
    equal(on_device(box, daemon, """
        refused(dlclient.DeviceNotFound, lambda: dlclient.Loader("p", device="cuda", framework="torch"), "torch", "without CUDA", "leave device= out")
        refused(dlclient.OptionError, lambda: dlclient.Loader("p", device="cuda", framework="tensorflow"), "TensorFlow", "from_dlpack") if __import__("importlib.util").util.find_spec("tensorflow") else None
        out(1)
        """), [1])
    equal("attached" in daemon.log() and "no GPU" not in daemon.log(), True, "the log")


@case("memory that cannot be registered is a LoaderWarning at the program's own line, and the batches are the same")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 16, **PICTURES)}, workers=2)
    on_device(box, daemon, """
        import warnings
        on_device.begin()
        options = dict(batch_size=4, pipeline="center_crop(8) to(float16)")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with dlclient.Loader("p", device="cuda", **options) as there, dlclient.Loader("p", **options) as here:
                for a, b in zip(there, here): same(on_device.values(a.image), b.image)
        assert [(w.category, w.filename) for w in told] == [(dlclient.LoaderWarning, __file__)], told
        assert "cannot" in str(told[0].message) or "NOT_SUPPORTED" in str(told[0].message), told[0].message
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            refused(dlclient.LoaderWarning, lambda: dlclient.Loader("p", device="cuda", **options), "is waited for")
        del a, b
        counts = clean()
        assert counts.n_registrations == counts.n_streams == counts.n_allocations == 0, "what is left"
        """, fail="cuMemHostRegister_v2:1:801,cuMemHostRegister_v2:2:801")


@case("several threads: one takes ahead of the others, three take in turns, and loaders of one device close in any order")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    with_torch(box, daemon, f"""
        import queue
        options = dict(batch_size=4, pipeline="{CROP} to(float16)", epochs=2, slots=2)
        with dlclient.Loader("p", copy=True, **options) as here: expected = [batch["image"].tobytes() for batch in here]
        def content(batch):
            return (host(batch["image"]) if torch.is_tensor(batch["image"]) else on_device.values(batch["image"])).tobytes()
        def started(function):
            def run():
                on_device.begin()
                function()
            thread = threading.Thread(target=run)
            thread.start()
            return thread
        for framework in ("torch", "numpy"):
            with dlclient.Loader("p", device="cuda", framework=framework, **options) as loader:
                taken = queue.Queue(8)                       # more than the four that numpy's may hold
                def ahead():
                    for batch in loader: taken.put(batch)
                    taken.put(None)
                thread, seen = started(ahead), []
                while True:
                    batch = taken.get(timeout=30)
                    if batch is None: break
                    seen.append(content(batch))
                    del batch
                thread.join()
                assert seen == expected
                found, batches = {{}}, iter(loader)
                loader.set_epoch(0)
                batches = iter(loader)
                def work():
                    for batch in batches:
                        found[batch.epoch, batch.step] = content(batch)
                        del batch
                for thread in [started(work) for _ in range(3)]: thread.join()
                assert [found[key] for key in sorted(found)] == expected
            loaders = [dlclient.Loader("p", device="cuda", framework=framework, **options) for _ in range(4)]
            for i, step in enumerate(zip(*loaders)): assert all(content(batch) == expected[i] for batch in step)
            for i in (2, 0, 3, 1): loaders[i].close()
            if framework == "numpy": assert [content(batch) for batch in step] == [expected[-1]] * 4
            del step, loaders, loader, batches
        counts = clean()
        assert counts.n_registrations == counts.n_streams == 0 and not torch_on_device.State.blocks, "what is left"
        """)


@case("a fork, a signal in the middle, an exception in the loop, an interpreter that ends: nothing hangs, nothing is left")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    on_device(box, daemon, f"""
        on_device.begin()
        options = dict(batch_size=4, pipeline="{CROP} to(float16)", epochs=None)
        loader = dlclient.Loader("p", device="cuda", **options)
        batches = iter(loader)
        batch = next(batches)
        image = batch["image"]
        child = os.fork()
        if child == 0:
            try:
                refused(dlclient.ForkedLoader, lambda: next(batches), "fork")
                refused(dlclient.ForkedLoader, lambda: image.__dlpack__(), "fork")
                refused(dlclient.ForkedLoader, lambda: dlclient.Loader("p", device="cuda", **options), "fork")
                del batch, image, batches, loader
                gc.collect()
                os._exit(7)
            except BaseException as error:
                sys.stderr.write(repr(error)); os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        n = 0
        class Alarm(Exception): pass
        def alarm(_, frame):
            if frame.f_code.co_name != "__del__": raise Alarm
            signal.setitimer(signal.ITIMER_REAL, 0.00003)           # Python only prints what a destructor raises: later
        signal.signal(signal.SIGALRM, alarm)
        for round in range(60):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.0004 * (round % 9))  # may be over before the next line
                while True:
                    batch = next(batches); n += 1
            except Alarm: pass
            finally: signal.setitimer(signal.ITIMER_REAL, 0)
        assert n > 30, n
        position = next(batches).position
        assert position % 4 == 0
        del batch, image
        loader.close()
        gc.collect()
        counts = clean()
        assert counts.n_allocations == counts.n_registrations == 0, "what is left"
        with dlclient.Loader("p", device="cuda", **options) as loader:
            order = []
            for batch in loader:
                order.append(batch.indices.tolist())
                if len(order) == 40: break
        with dlclient.Loader("p", **options) as loader:
            for wanted, batch in zip(order, loader): assert batch.indices.tolist() == wanted
        left = dlclient.Loader("p", device="cuda", **options)
        last = next(iter(left))["image"]       # open at the end
        """)


@case("a daemon that dies comes back, and the loop on the device goes on with the next batch")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 64, **PICTURES)}, workers=2)
    running = pyclient.Trainer(box, daemon, TOOLS + f"""
on_device.begin()
options = dict(batch_size=4, pipeline="{CROP} to(float16)", seed=3, epochs=3)
with dlclient.Loader("p", device="cuda", **options) as loader:
    seen = []
    for i, batch in enumerate(loader):
        seen.append((batch.indices.tolist(), on_device.values(batch["image"]).tobytes()))
        if i == 10:
            out("ten"); time.sleep(0.5)
with dlclient.Loader("p", **options) as here:
    for (indices, image), batch in zip(seen, here):
        assert indices == batch.indices.tolist() and image == batch["image"].tobytes()
out(len(seen)); clean()
""", PYTHONPATH=f"{pyclient.PACKAGE}:{SUPPORT}", LD_LIBRARY_PATH=STAND_IN)
    running.wait_lines(1)
    daemon.kill()
    daemon.start()
    equal(running.finish(), ["ten", 48])


if __name__ == "__main__":
    main()
