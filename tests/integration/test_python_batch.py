#!/usr/bin/env python3
"""Functions of the trainer's own that get whole batches: python(NAME, batch=true). One call for a batch, when all its samples
are done and before mixing; what it draws belongs to the batch's first sample."""
import json
import os
import sys
import textwrap

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from failing_fs import FailingFs
from harness import case, contains, equal, identity_pixels, main, png, within, write
from pyclient import Trainer, need, trainer

CUT = "image, label: random_resized_crop(16) hflip(0.5)"
PLAIN = "image: random_resized_crop(16) hflip(0.5); label"
KILL_BATCHES = int(os.environ.get("OWN_KILL_BATCHES", "60"))

HELP = """
def load(pipeline, workers=None, batch_size=4, **more):
    return dlclient.Loader("p", batch_size=batch_size, pipeline=pipeline, workers=workers, copy=True, as_tuple=False, **more)
def taken(loader, epochs=1):
    rows = []
    with loader:
        for epoch in range(epochs):
            loader.set_epoch(epoch)
            for batch in loader:
                rows.append((epoch, batch.indices.tolist(),
                             [(name, [(str(one.dtype), one.shape, one.tobytes()) for one in
                                      (batch[name] if isinstance(batch[name], list) else [batch[name]])])
                              for name in batch]))
    return rows
"""


def pictures(box, n=33, **more):
    return box.daemon({"p": box.folder_of_pictures("p", n, width=40, height=32)}, workers=2, **more)


def run(box, daemon, source, *arguments, **more):
    return trainer(box, daemon, HELP + textwrap.dedent(source), *arguments, **more)


# ---- the same bits -------------------------------------------------------------------------------------------------

@case("the result is that of the function on the collated batch in the loop, with torch too, with any number of processes")
def _(box):
    need("torch")
    run(box, pictures(box), f"""
        import torch
        def noise(image, label, rng, samples, epoch):
            assert image.ndim == 4 and label.shape == (len(image),) and samples.dtype == numpy.int64
            mean = image.mean(axis=0).astype(numpy.uint8)              # of the batch
            image[...] = image // 2 + mean // 4 + rng.integers(0, 30, image.shape, dtype=numpy.uint8)
            label[...] = label[::-1].copy() + samples + 1000 * epoch
        def mixed(image, label, rng):
            image, order = torch.from_numpy(image), torch.from_numpy(rng.permutation(len(image)))
            image.copy_((image.float() * 0.7 + image[order].float() * 0.3).to(torch.uint8))
            return {{"label": label + label[order.numpy()]}}
        def here(function, **given):
            rows = []
            with load("{PLAIN}", seed=5) as loader:
                for epoch in range(2):
                    loader.set_epoch(epoch)
                    for batch in loader:
                        samples = batch.indices
                        more = {{"rng": dlclient.sample_rng(5, epoch, int(samples[0]))}}
                        if given:
                            more.update(samples=samples, epoch=epoch)
                        image, label = batch["image"].copy(), batch["label"].copy()
                        label = (function(image, label, **more) or {{}}).get("label", label)
                        rows.append((epoch, samples.tolist(),
                                     [("image", [("uint8", image.shape, image.tobytes())]),
                                      ("label", [("int64", label.shape, label.tobytes())])]))
            return rows
        CUT = "{CUT}"
        wanted = {{"noise": here(noise, more=True), "mixed": here(mixed)}}
        assert wanted["noise"][-1][2][0][1][0][1][0] in (1, 4), "a short last batch"
        for name in wanted:
            for n in (1, 3):
                with load(CUT + f" python({{name}}, batch=True)", {{name: globals()[name]}}, n_workers=n, seed=5) as loader:
                    assert loader.pipeline.endswith(f" python({{name}}, batch=true)"), loader.pipeline
                    assert taken(loader, 2) == wanted[name], (name, n)
        assert len(wanted["noise"][8][1]) == 1, "a short last batch"
    """, seconds=240)


@case("it delivers another dtype and shape, in each view, and one field is the first parameter")
def _(box):
    run(box, pictures(box), """
        def floats(pixels, rng):
            return (pixels.transpose(0, 3, 1, 2) / 255 + rng.random()).astype(numpy.float32)
        text = "center_crop(8) python(floats, dtype=float32, shape=3:8:8, batch=true)"
        with load("center_crop(8)", seed=1) as plain, load(text, {"floats": floats}, n_workers=2, seed=1) as loader:
            assert loader.pipeline == text, loader.pipeline
            for batch, raw in zip(loader, plain):
                rng = dlclient.sample_rng(1, 0, int(raw.indices[0]))
                assert batch["image"].dtype == numpy.float32
                assert (batch["image"] == floats(raw["image"], rng)).all() and (batch["label"] == raw["label"]).all()
        def both(image, y, rng):
            return {"image": image[:, :4, :4].copy(), "y": rng.random((len(y), 3))}
        text = "image, y=label: center_crop(8) python(f, image=[4:4:3], y=float64[3], batch=true) views(2); label"
        with load(text, {"f": both}, n_workers=2, seed=1) as loader:
            assert loader.pipeline == "image, y=label: center_crop(8) python(f, image=[4:4:3], y=float64[3], batch=true)" \\
                " views(2); label", loader.pipeline
            for batch in loader:
                assert (batch["y"][0] == dlclient.sample_rng(1, 0, int(batch.indices[0])).random((len(batch.indices), 3))).all()
                assert not (batch["y"][0] == batch["y"][1]).all() and batch["image"][1].shape[1:] == (4, 4, 3)
        f = lambda label: -label
        with load("label: python(f, batch=true)", {"f": f}) as loader, load("label") as plain:
            assert [batch["label"].tolist() for batch in loader] == [(-batch["label"]).tolist() for batch in plain]
    """, seconds=240)


@case("samples that differ in size before it are a list")
def _(box):
    for i in range(6):
        write(box.path(f"c/{i}.png"), png(40, 32, identity_pixels(i, 40, 32)))
    with open(box.path("a.json"), "w") as file:
        json.dump({"categories": [{"id": 1, "name": "cat"}],
                   "images": [{"id": i, "file_name": f"{i}.png", "width": 40, "height": 32} for i in range(6)],
                   "annotations": [{"id": 10 * i + k, "image_id": i, "category_id": 1, "bbox": [k, 1, 10, 10], "area": 100,
                                    "iscrowd": 0} for i in range(6) for k in range(i)]}, file)
    daemon = box.daemon({"p": {"path": box.path("c"), "format": "coco", "annotations": box.path("a.json")}})
    run(box, daemon, """
        def lengths(image, samples):
            assert isinstance(image, list) and all(bytes(one[:4]) == b"\\x89PNG" for one in image), image
            return numpy.array([[len(one), sample] for one, sample in zip(image, samples)], numpy.int64)
        with load("image: raw python(f, dtype=int64, shape=2, batch=true)", {"f": lengths}) as loader:
            for batch in loader:
                for i, sample in enumerate(batch.indices.tolist()):
                    assert batch["image"][i].tolist() == [os.path.getsize(os.environ["C"] + f"/{sample}.png"), sample]
        def pad(image, boxes):
            assert isinstance(boxes, list) and isinstance(image, numpy.ndarray)
            image[...] = image[:, :, ::-1].copy()
            padded = numpy.zeros((len(image), 5, 4), numpy.float32)
            for i, some in enumerate(boxes):
                padded[i, :len(some)] = some
            return {"boxes": padded}
        with load("image, boxes: center_crop(32) python(pad, boxes=float32[5:4], batch=true)", {"pad": pad}, n_workers=2,
                  shuffle=False) as loader, load("image, boxes: center_crop(32)", shuffle=False) as plain:
            for batch, raw in zip(loader, plain):
                assert (batch["image"] == raw["image"][:, :, ::-1]).all()
                for i, sample in enumerate(batch.indices.tolist()):
                    assert (batch["boxes"][i][:sample] == raw["boxes"][i]).all() and not batch["boxes"][i][sample:].any()
    """, seconds=120, C=box.path("c"))


@case("other parts may have functions for single samples and other collations, and mixing comes last")
def _(box):
    run(box, pictures(box), """
        def one(label, sample):
            label[...] = sample
        def whole(image, samples):
            image[...] = samples.reshape(-1, 1, 1, 1)
        text = "image: center_crop(8) python(whole, batch=true); y=label: python(one); label"
        for n in (1, 3):
            for batch in load(text, {"one": one, "whole": whole}, n_workers=n):
                assert (batch["y"] == batch.indices).all()
                assert (batch["image"] == batch.indices.reshape(-1, 1, 1, 1)).all()
        def soft(image, label, rng):
            assert label.dtype == numpy.float32 and label.shape[1:] == (9,), (label.dtype, label.shape)
            image[...] = numpy.arange(len(image)).reshape(-1, 1, 1, 1) * 60
        text = "image, label: center_crop(8) python(soft, batch=true) mixup(alpha=1.0, num_classes=9)"
        seen = set()
        found = [taken(load(text, {"soft": soft}, n_workers=n, seed=3)) for n in (1, 3)]
        assert found[0] == found[1]
        for batch in load(text, {"soft": soft}, n_workers=2, seed=3):
            assert numpy.allclose(batch["label"].sum(axis=1), 1)
            seen.update(batch["image"].ravel().tolist())
        assert any(value % 60 for value in seen), "mixed after it"
    """, seconds=240)


@case("rows that are only copied are given whole as well, also beside a function that gets them one by one")
def _(box):
    need("numpy")
    run(box, None, """
        folder = os.environ["P"]
        x, y = numpy.random.default_rng(1).random((500, 8)).astype("f4"), numpy.arange(500)
        numpy.save(folder + "/x.npy", x)
        numpy.save(folder + "/y.npy", y)
    """, P=make(box.path("p")))
    run(box, box.daemon({"p": {"path": box.path("p"), "format": "npy"}}, workers=2), """
        where = os.environ["WHERE"]
        x = numpy.random.default_rng(1).random((500, 8)).astype("f4")
        def whole(x, y, samples):
            y += len(x)
            if 77 in samples and len(os.listdir(where)) < 2:
                open(os.path.join(where, str(len(os.listdir(where)))), "w").close()
                os._exit(3)
            x -= x.mean(axis=0)
        def one(x, sample):
            x *= sample
        def number(y, samples):
            return samples.astype("f8").reshape(-1, 1) * [1, 2]
        for n in (1, 3):
            for batch in load("x, y: python(whole, batch=true)", {"whole": whole}, n_workers=n, batch_size=64):
                rows = x[batch.indices]
                assert (batch["y"] == batch.indices + len(rows)).all()
                assert (batch["x"] == rows - rows.mean(axis=0)).all()
            assert len(os.listdir(where)) == 2
            text = "x: python(one); y: python(number, dtype=float64, shape=2, batch=true)"
            for batch in load(text, {"one": one, "number": number}, n_workers=n, batch_size=64):
                assert (batch["y"] == batch.indices.reshape(-1, 1) * [1.0, 2.0]).all()
                assert (batch["x"] == x[batch.indices] * batch.indices.reshape(-1, 1).astype("f4")).all()
    """, seconds=240, WHERE=make(box.path("where")))


@case("two ranks, and a run that is resumed, have the batches of a function that gets them whole")
def _(box):
    run(box, pictures(box, 40), f"""
        def work(image, rng, samples):
            image[...] = rng.integers(0, 255, image.shape, dtype=numpy.uint8)
        for rank in (1, 0):
            for batch in load("{CUT} python(work, batch=true)", {{"work": work}}, n_workers=2, seed=2, rank=rank,
                              world_size=2, job="two"):
                rng = dlclient.sample_rng(2, 0, int(batch.indices[0]))
                assert (batch["image"] == rng.integers(0, 255, batch["image"].shape, dtype=numpy.uint8)).all()
        everything = taken(load("{CUT} python(work, batch=true)", {{"work": work}}, n_workers=2, seed=2))
        loader = load("{CUT} python(work, batch=true)", {{"work": work}}, n_workers=2, seed=2)
        iterator = iter(loader)
        for i in range(3):
            next(iterator)
        state = loader.state_dict()
        loader.close()
        rest = load("{CUT} python(work, batch=true)", {{"work": work}}, n_workers=1, seed=2)
        rest.load_state_dict(state)
        rows = [(0, batch.indices.tolist(), batch["image"].tobytes()) for batch in rest]
        rest.close()
        assert rows == [(0, indices, fields[0][1][0][2]) for _, indices, fields in everything[3:]]
        assert dlclient.check_steps("p", pipeline="{CUT} python(work, batch=true)", workers={{"work": work}}) == 40
        try:
            def unsound(image):
                image[...] = os.getpid() % 251
            dlclient.check_steps("p", pipeline="{CUT} python(f, batch=true)", workers={{"f": unsound}})
        except AssertionError as error:
            assert "differ" in str(error)
        else:
            raise Exception("the function was found to be sound")
    """, seconds=240)


# ---- when it goes wrong --------------------------------------------------------------------------------------------

@case("samples that are left out or replaced are not in what it gets, and its batch has the others")
def _(box):
    folder = box.folder_of_pictures("p", 33, width=40, height=32)
    bad = sorted(os.path.join(root, name) for root, _, names in os.walk(folder) for name in names)
    for i in (0, 7, 8, 32):
        write(bad[i], b"\x89PNG\r\n\x1a\n no picture at all")
    run(box, box.daemon({"p": folder}, workers=2), """
        def check(image, label, samples):
            assert len(image) == len(label) == len(samples)
            assert not {0, 7, 8, 32} & set(samples.tolist())
            return {"label": samples}
        lost = os.path.join(os.environ["WHERE"], "once")
        def once(image, label, samples):
            check(image, label, samples)
            image[...] = 255 - image
            if 9 in samples and not os.path.exists(lost):
                open(lost, "w").close()
                os._exit(3)
            return {"label": samples}
        plain = {int(i): image for batch in load("center_crop(8)", on_error="skip") for i, image in
                 zip(batch.indices, batch["image"])}
        for function in (check, once):
            for policy in ("skip", "substitute"):
                seen = []
                if os.path.exists(lost):
                    os.unlink(lost)
                for batch in load("image, label: center_crop(8) python(f, batch=true)", {"f": function}, n_workers=2,
                                  on_error=policy, shuffle=False):
                    others = numpy.full(len(batch.indices), -1) if batch.substitutes is None else batch.substitutes
                    served = numpy.where(others >= 0, others, batch.indices)
                    assert (batch["label"] == served).all(), (batch["label"], served)
                    for i, image in zip(served.tolist(), batch["image"]):
                        assert (image == (plain[i] if function is check else 255 - plain[i])).all(), (policy, i)
                    seen += batch.indices.tolist()
                wanted = [i for i in range(33) if policy == "substitute" or i not in (0, 7, 8, 32)]
                assert seen == wanted, (policy, seen)
                assert function is check or os.path.exists(lost)
    """, seconds=240, WHERE=make(box.path("where")))


@case("one that raises ends the job with batch, sample, place and traceback, whatever on_error says")
def _(box):
    daemon = pictures(box)
    found = run(box, daemon, f"""
        def bad(image, samples):
            if 9 in samples:
                raise ValueError("no way")
            image[...] = 1
        for policy in ("fail", "skip", "substitute"):
            loader = load("image: center_crop(8) python(bad, batch=true)", {{"bad": bad}}, n_workers=2, shuffle=False,
                          on_error=policy)
            n = 0
            try:
                for batch in loader:
                    assert (batch["image"] == 1).all()
                    n += 1
            except dlclient.SampleDamaged as error:
                out([n, str(error), str(error.__cause__)])
            loader.close()
    """)
    equal(len(found), 3, "policies")
    for n, text, cause in found:
        equal(n, 2, "batches before it")
        contains(text, "sample 8 (", ".png", "the batch of 4 samples that begins with it (batch 2 of epoch 0)",
                 "python(bad): ValueError: no way, at ", " in bad")
        contains(cause, "in a worker process:", "Traceback (most recent call last)", "raise ValueError(\"no way\")")
    within(10, lambda: len(daemon.objects("errors", "p")) == 1, "a line in the ledger")
    contains(json.dumps(daemon.objects("errors", "p")), "the batch of 4 samples", "ValueError: no way")


@case("parameters and results that do not fit are errors that say what to write")
def _(box):
    run(box, pictures(box), """
        def attempt(function, *words, pipeline="center_crop(8) python(f, batch=true)"):
            loader = load(pipeline, {"f": function}, n_workers=1)
            refused(dlclient.SampleDamaged, lambda: list(loader), *words)
            loader.close()
        attempt(lambda array: array.astype(numpy.float32), "returned float32 (4, 8, 8, 3), and uint8 (4, 8, 8, 3) is declared",
                "python(f, dtype=float32, shape=8:8:3, batch=true)")
        attempt(lambda array: array[:3], "returned uint8 (3, 8, 8, 3), and the batch has 4 samples")
        attempt(lambda array: 5, "and the batch has 4 samples")
        attempt(lambda array: None, "returned None, and what it delivers has another form",
                pipeline="center_crop(8) python(f, dtype=float32, batch=true)")
        attempt(lambda image, sample: None, "with batch=true it gets a whole batch", "samples, an int64 array [n]")
        two = "image, label: center_crop(8) python(f, batch=true)"
        attempt(lambda image, label, sample: None, "with batch=true it gets a whole batch", pipeline=two)
        attempt(lambda image, other: None, "it has the parameter other", pipeline=two)
        attempt(lambda image: {"image": image[:, :4]}, "python(f, image=uint8[4:8:3], batch=true)", pipeline=two)
        attempt(lambda label: {"label": None}, "field label: it was not returned", "float32[2] of each sample",
                pipeline="image, label: center_crop(8) python(f, label=float32[2], batch=true)")
        attempt(lambda array: exit(3), "SystemExit: 3")
        def no(pipeline, *words):
            refused(dlclient.OptionError, lambda: load(pipeline, {"f": print}), *words)
        no("center_crop(8) python(f, batch=true) hflip", "column 38", "only what mixes the batch")
        no("center_crop(8) python(f, batch=true) pad", "its part is stacked")
        no("center_crop(8) python(f, batch=yes)", "true or false")
    """, seconds=240)


@case("a process that ends or hangs over a batch: the batch is rendered and dealt again, twice; then the job ends")
def _(box):
    found = run(box, pictures(box), f"""
        where = os.environ["WHERE"]
        plain = taken(load("{PLAIN}", seed=3))
        def invert(fields):
            return [(name, [(dtype, shape, numpy.invert(numpy.frombuffer(data, dtype)).tobytes()) for dtype, shape, data in
                            arrays]) for name, arrays in fields]
        wanted = [(epoch, indices, invert(fields)) for epoch, indices, fields in plain]
        def attempt(end, times, **more):
            def bad(image, label, samples):
                image[...] = 255 - image        # half of what it does
                if samples[0] == plain[3][1][0]:
                    done = len(os.listdir(where))
                    if done < times:
                        open(os.path.join(where, str(done)), "w").close()
                        end()
                label[...] = ~label
            for name in os.listdir(where):
                os.unlink(os.path.join(where, name))
            found = taken(load("{CUT} python(bad, batch=true)", {{"bad": bad}}, n_workers=2, seed=3, **more))
            assert found == wanted, [(a, b) for a, b in zip(found, wanted) if a != b][0]
        attempt(lambda: os._exit(9), 2)
        attempt(lambda: os.kill(os.getpid(), signal.SIGKILL), 1)
        attempt(lambda: os.closerange(3, 4096), 1)
        attempt(lambda: time.sleep(1000), 1, worker_timeout=0.5)
        for end, more in ((lambda: os._exit(9), {{}}), (lambda: time.sleep(1000), {{"worker_timeout": 0.5}})):
            try:
                attempt(end, 99, on_error="skip", **more)
            except dlclient.SampleDamaged as error:
                out(str(error))
    """, seconds=240, WHERE=make(box.path("where")))
    for text in found:
        contains(text, "sample ", "the batch of 4 samples that begins with it (batch 3 of epoch 0)",
                 "python(bad): 3 worker processes ended over it, the last: ")
    contains(found[0], "it ended with exit status 9")
    contains(found[1], "it did not come back within worker_timeout=0.5 s and was at ")


@case("processes that are killed at random moments cost no batch, none comes twice and none is wrong")
def _(box):
    found = run(box, pictures(box, 8 * KILL_BATCHES), """
        import random
        where = os.environ["WHERE"]
        done = os.open(os.path.join(where, "done"), os.O_CREAT | os.O_APPEND | os.O_RDWR)
        def work(image, y, rng):
            before, numbers = image.copy(), y.copy()
            image[...] = 0
            time.sleep(0.001)
            y[...] = rng.integers(0, 1000) + numbers.sum()
            image[...] = before + rng.integers(0, 9, image.shape, dtype=numpy.uint8)
        def one(label, sample):
            label[...] = 3 * sample
        def note(image, y, rng):
            open(os.path.join(where, str(os.getpid())), "w").close()
            work(image, y, rng)
            os.write(done, b".")
        text = "image, y=label: center_crop(16) python(f, batch=true); label: python(one)"
        wanted = taken(load(text, {"f": work, "one": one}, n_workers=2, batch_size=8))
        kills, ended = [], threading.Event()
        def kill():
            rng, wait_for = random.Random(4), 0
            while not ended.is_set():
                time.sleep(rng.random() * 0.002)
                if os.fstat(done).st_size < wait_for:
                    continue
                wait_for = os.fstat(done).st_size + rng.randrange(2, 8)
                pids = [int(name) for name in os.listdir(where) if name.isdigit()]
                if pids:
                    pid = rng.choice(pids)
                    os.unlink(os.path.join(where, str(pid)))
                    try:
                        os.kill(pid, signal.SIGKILL)
                        kills.append(pid)
                    except ProcessLookupError:
                        pass
        loader = load(text, {"f": note, "one": one}, n_workers=3, batch_size=8)
        thread = threading.Thread(target=kill)
        thread.start()
        found = taken(loader)
        ended.set()
        thread.join()
        assert found == wanted, [(a, b) for a, b in zip(found, wanted) if a != b][:1]
        out(len(kills))
    """, seconds=max(240, KILL_BATCHES), WHERE=make(box.path("pids")))
    equal(found[0] >= 3, True, f"processes were killed: {found[0]}")


@case("a batch that is made again while its dataset cannot be read waits for that, and no batch is lost")
def _(box):
    disk = FailingFs(box, box.folder_of_pictures("p", 33, width=40, height=32))
    daemon, where = box.daemon({"p": disk.path}, workers=2), make(box.path("where"))
    job = Trainer(box, daemon, HELP + textwrap.dedent("""
        where = sys.argv[1]
        def once(image, label, samples):
            image[...] = 255 - image
            if 9 in samples and not os.path.exists(where + "/ends"):
                open(where + "/ends", "w").close()
                while not os.path.exists(where + "/fails"):
                    time.sleep(0.01)
                os._exit(3)
        plain = [batch["image"] for batch in load("center_crop(8)", shuffle=False)]
        out("now")
        seen = []
        for batch, image in zip(load("image, label: center_crop(8) python(once, batch=true)", {"once": once},
                                     shuffle=False), plain):
            assert (batch["image"] == 255 - image).all(), batch.indices
            seen += batch.indices.tolist()
        out(seen)
    """), [where])
    within(60, lambda: os.path.exists(os.path.join(where, "ends")), "the process is about to end")
    disk.fail("*", "EIO")
    write(os.path.join(where, "fails"), b"")
    within(60, lambda: any(job["hold"] for job in daemon.objects("jobs")), "it is on hold")
    disk.clear()
    equal(job.finish(60)[-1], list(range(33)), "samples")


@case("a daemon that restarts in the middle of an epoch costs no batch")
def _(box):
    daemon = pictures(box, 200)
    program = Trainer(box, daemon, HELP + """
def f(array, samples):
    time.sleep(0.008)
    array[...] = samples.reshape(-1, 1, 1, 1)
loader = load("center_crop(16) python(f, batch=true)", {"f": f}, n_workers=2)
seen = []
for batch in loader:
    for index, array in zip(batch.indices.tolist(), batch["image"]):
        assert (array == index).all()
        seen.append(index)
    if len(seen) == 40:
        out("now")
        time.sleep(1)
out(sorted(seen))
""")
    program.wait_lines(1)
    daemon.kill()
    daemon.start()
    equal(program.finish(120)[1], list(range(200)), "samples, each once")


@case("a rank that leaves or seeks while a function has its batch harms nothing")
def _(box):
    daemon = pictures(box)
    run(box, daemon, """
        def slow(image):
            time.sleep(0.2)
            image[...] = 1
        for i in range(3):
            loader = load("image: center_crop(8) python(slow, batch=true)", {"slow": slow}, n_workers=2)
            iterator = iter(loader)
            if i:
                assert (next(iterator)["image"] == 1).all()
            if i == 2:
                loader.set_epoch(5)
                batches = list(loader)
                assert len(batches) == 9 and all((batch["image"] == 1).all() for batch in batches)
            loader.close()
    """, seconds=120)


def make(folder):
    os.makedirs(folder, exist_ok=True)
    return folder


if __name__ == "__main__":
    main()
