#!/usr/bin/env python3
"""What a torch program gives, reads and does on its first day here: it is taken, or the sentence says what to write."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import BUILD, ROOT, case, equal, main
from private import Home
from pyclient import need, trainer
from torch_calls import picture_kinds, torch_call


# ---- options --------------------------------------------------------------------------------------------------------

@case("a Compose as pipeline= or transform= is answered with its steps as text, and that text gives the same loader")
def _(box):
    need("torch")
    need("torchvision")
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12, width=40, height=30)})
    trainer(box, daemon, """
        import re, torch
        from torchvision import transforms as t
        L = dlclient.Loader
        def told(value, keyword="pipeline"):
            text = refused(TypeError if keyword == "transform" else dlclient.OptionError, lambda: L("p", 4, **{keyword: value}),
                           keyword, "write the steps as text")
            found = re.search('pipeline="([^"]*)"', text)[1]
            assert "ToTensor" in found or L("p", 4, pipeline=found).pipeline, found
            return found, text.partition('"; ')[2]
        flips = [t.RandomResizedCrop(24), t.RandomHorizontalFlip(), t.ToTensor(), t.Normalize([0.5] * 3, [0.25, 0.5, 1])]
        whole = "random_resized_crop(24) hflip(0.5) to(float32) normalize(mean=0.5:0.5:0.5, std=0.25:0.5:1) layout(nchw)"
        for value in (t.Compose(flips), flips, t.Compose([t.Compose(flips[:2]), *flips[2:]]),
                      t.Compose([torch.nn.Sequential(*flips[:2]), *flips[2:]])):
            for keyword in ("pipeline", "transform"):
                assert told(value, keyword) == (whole, ""), told(value, keyword)
        for step, text in [
                (t.Resize(24), "resize(24)"), (t.Resize((20, 24)), "resize(20:24)"), (t.Resize([24, 24]), "resize(24:24)"),
                (t.Resize(24, max_size=100), "resize(24, max=100)"), (t.CenterCrop(24), "center_crop(24)"),
                (t.Resize(24, interpolation=t.InterpolationMode.BICUBIC), "resize(24, interpolation=bicubic)"),
                (t.RandomResizedCrop(24, scale=(0.5, 1)), "random_resized_crop(24, scale=0.5:1)"),
                (t.RandomCrop(16, padding=4), "random_crop(16, padding=4)"), (t.Pad(2), "pad(2)"),
                (t.ColorJitter(0.4, hue=0.1), "color_jitter(0.6:1.4, hue=-0.1:0.1)"),
                (t.RandomRotation(15), "random_rotation(-15:15)"),
                (t.RandomRotation((0, 90), t.InterpolationMode.BILINEAR, True, (3, 4.5), (1, 2, 3)),
                 "random_rotation(0:90, interpolation=bilinear, expand=true, center=3:4.5, fill=1:2:3)"),
                (t.RandomAffine(5), "random_affine(-5:5)"),
                (t.RandomAffine(5, (0.1, 0.2), (0.5, 2), 7, fill=9), "random_affine(-5:5, translate=0.1:0.2, scale=0.5:2, shear=-7:7, fill=9)"),
                (t.RandomPerspective(0.25, p=1), "random_perspective(0.25, p=1)"),
                (t.GaussianBlur(3), "gaussian_blur(3)"), (t.GaussianBlur((3, 5), 1.5), "gaussian_blur(3:5, sigma=1.5)"),
                (t.RandomErasing(), "erasing(0.5)"),
                (t.RandomErasing(0.25, (0.1, 0.2), value=(1, 2, 3)), "erasing(0.25, scale=0.1:0.2, value=1:2:3)"),
                (t.ConvertImageDtype(torch.float16), "to(float16)"),
                (t.RandomApply([t.RandomInvert(1), t.CenterCrop(16)], p=0.8),
                 "random_apply([invert(1), center_crop(16)], p=0.8)"),
                (t.RandomChoice([t.Compose([t.Resize(20), t.RandomInvert(1)]), t.RandomOrder([t.Pad(1), t.Grayscale(3)])]),
                 "random_choice([random_apply([resize(20), invert(1)], p=1), random_order([pad(1), grayscale(3)])])"),
                (t.RandomChoice([t.Pad(1), t.Pad(2)], p=[0.25, 0.75]), "random_choice([pad(1), pad(2)], p=0.25:0.75)"),
                (t.AutoAugment(), "auto_augment(imagenet)"),
                (t.AutoAugment(t.AutoAugmentPolicy.SVHN, fill=[1, 2, 3]), "auto_augment(svhn, fill=1:2:3)"),
                (t.RandAugment(), "rand_augment(2, 9)"),
                (t.RandAugment(3, 5, 11, t.InterpolationMode.BILINEAR), "rand_augment(3, 5, num_magnitude_bins=11, interpolation=bilinear)"),
                (t.TrivialAugmentWide(), "trivial_augment_wide"),
                (t.AugMix(), "aug_mix(3)"),
                (t.AugMix(5, 2, 0, 0.5, False, t.InterpolationMode.NEAREST, [0]),
                 "aug_mix(5, mixture_width=2, chain_depth=0, alpha=0.5, all_ops=false, interpolation=nearest, fill=0)"),
                (t.AugMix(chain_depth=2), "aug_mix(3, chain_depth=2)")]:
            # what follows makes pictures of one size
            found, rest = told([step, "center_crop(8)"] if not text.startswith("to") else ["center_crop(8)", step])
            assert (found, rest) in ((text + " center_crop(8)", ""), ("center_crop(8) " + text, "")), (found, rest, text)
        found, rest = told(t.Compose([t.CenterCrop(8), t.LinearTransformation(torch.eye(1), torch.zeros(1)), t.ToTensor()]))
        assert found == "center_crop(8) to(float32) layout(nchw)" and rest.startswith("LinearTransformation: not a step"), rest
        found, rest = told(t.Compose([t.CenterCrop(8), *flips[2:], t.RandomErasing(value="random")]))
        assert found == ("center_crop(8) to(float32) normalize(mean=0.5:0.5:0.5, std=0.25:0.5:1) erasing(0.5, value=random) "
                         "layout(nchw)") and not rest, (found, rest)
        for group in (t.RandomApply([t.LinearTransformation(torch.eye(1), torch.zeros(1))]), t.RandomOrder([t.ToTensor()]), t.RandomChoice([])):
            found, rest = told([t.CenterCrop(8), group])
            assert found == "center_crop(8)" and rest.startswith(f"{type(group).__name__}: not a step"), (found, rest)
        from dlclient._answers.transforms import written
        def sound(name, **attributes):                        # Debian has no torchaudio
            return type(name, (), attributes)()
        spectrogram = dict(n_fft=512, win_length=400, hop_length=160, pad=0, power=2.0, normalized=False, center=True, pad_mode="reflect",
                           window=torch.hamming_window(400))
        bands = dict(sample_rate=16000, n_fft=512, n_mels=80, f_min=0.0, spectrogram=sound("Spectrogram", **spectrogram),
                     mel_scale=sound("MelScale", f_max=8000.0, norm="slaney", mel_scale="htk"))
        mel, text = sound("MelSpectrogram", **bands), "n_fft=512, win_length=400, hop_length=160, n_mels=80, window_fn=hamming, norm=slaney"
        for steps, found in [
                ([mel], f"audio(rate=16000) mel_spectrogram({text})"),
                ([sound("Resample", new_freq=8000), sound("Vol", gain=10.0, gain_type="amplitude")], "audio(rate=8000) gain(20, clamp=true)"),
                ([mel, sound("AmplitudeToDB", stype="power", top_db=80.0), sound("TimeMasking", mask_param=9, iid_masks=False, p=0.5),
                  sound("FrequencyMasking", mask_param=7, iid_masks=True, p=1.0)],
                 f"audio(rate=16000) mel_spectrogram({text}) amplitude_to_db(top_db=80) time_mask(9, p=0.5) freq_mask(7, iid_masks=true)"),
                ([sound("Spectrogram", **{**spectrogram, "power": 1.0, "window": torch.hann_window(400)})],
                 "audio spectrogram(n_fft=512, win_length=400, hop_length=160, power=1)"),
                ([sound("MFCC", sample_rate=16000, n_mfcc=13, norm="ortho", log_mels=True, MelSpectrogram=mel)],
                 "audio(rate=16000) mfcc(n_mfcc=13, log_mels=true, " + text.replace("norm", "mel_norm") + ")")]:
            assert written(steps) == (found, []), written(steps)
        assert written([sound("Spectrogram", n_fft=9, power=2, window=torch.hann_window(9))])[1] == ["Spectrogram"], "another class of this name"
        assert written([mel, sound("PitchShift"), sound("Spectrogram", **{**spectrogram, "power": None})])[1] == ["PitchShift", "Spectrogram"]
        class MixUp:
            def __init__(self, alpha=1.0, num_classes=None):
                self.alpha, self.num_classes = alpha, num_classes
        class CutMix(MixUp):
            pass
        class Mixup:                                                # timm's
            mixup_alpha, cutmix_alpha, cutmix_minmax, mix_prob, switch_prob, mode = 0.8, 1.0, (0.2, 0.8), 1.0, 0.5, "elem"
            correct_lam, label_smoothing, num_classes = True, 0.1, 10
        for step, text in [
                (MixUp(0.2, 10), "mixup(alpha=0.2, num_classes=10)"), (CutMix(num_classes=10), "cutmix(num_classes=10)"),
                (Mixup(), "mix(mixup_alpha=0.8, cutmix_alpha=1, cutmix_minmax=0.2:0.8, mode=elem, num_classes=10)"),
                (t.RandomChoice([MixUp(0.2, 10), CutMix(1, 10)], p=[0.25, 0.75]),
                 "mix(mixup_alpha=0.2, cutmix_alpha=1, switch_prob=0.75, label_smoothing=0, num_classes=10, partner=previous)")]:
            assert told([t.CenterCrop(8), t.ToTensor(), step])[0] == f"image, label: center_crop(8) to(float32) layout(nchw) {text}"
        assert told({"image": [t.CenterCrop(8)], "label": None})[0] == "image: center_crop(8); label"
        assert told(["center_crop(8)", "hflip"])[0] == "center_crop(8) hflip"
    """)


@case("each class of torchvision that a kind is like is answered with the text of its kind's example, if it is made as that says")
def _(box):
    need("torch")
    need("torchvision")
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12, width=40, height=30)})
    kinds = picture_kinds(BUILD)
    examples = {kind["like"].rpartition(".")[2]: kind["example"] for kind in kinds if "like" in kind}
    calls = {name: torch_call(example, kinds) for name, example in examples.items()}
    lines = trainer(box, daemon, """
        import json, re, torchvision
        from dlclient._answers.transforms import FORMS, written
        module = getattr(torchvision.transforms, "v2", torchvision.transforms)
        calls, examples = json.loads(sys.argv[1]), json.loads(sys.argv[2])
        for name, call in calls.items():
            if not call or not hasattr(module, name) or name in FORMS:
                continue
            try:
                step = eval(call)
            except TypeError:       # it insists on floats
                step = eval(re.sub(r"(?<![\\w.])([0-9]+)(?![\\w.])", r"\\1.0", call))
            text, others = written(step)
            assert text and not others, (call, text, others)
            if name not in ("SanitizeBoundingBoxes", "RandomIoUCrop"):      # which need boxes
                texts = [dlclient.Loader("p", 4, pipeline=one + " center_crop(8)").pipeline for one in (text, examples[name])]
                assert texts[0] == texts[1], texts
            out(name)
    """, json.dumps(calls), json.dumps(examples))
    assert len(lines) > 20, lines


@case("timm's text of a RandAugment is the daemon's step, and what is not in it is named")
def _(box):
    path = os.path.join(ROOT, "client", "python")
    code = """
import dlclient
text = dlclient.timm_rand_augment
assert text("rand") == "timm_rand_augment(10)"
assert text("rand-m9-mstd0.5-inc1", (0.485, 0.456, 0.406), "bicubic") == (
    "timm_rand_augment(9, mstd=0.5, increasing=true, interpolation=bicubic, fill=124:116:104)")
assert text("rand-n3-p1.0-mmax20-mstd101-inc0-m10") == "timm_rand_augment(10, num_layers=3, p=1, mstd=101, mmax=20)"
for wrong, word in (("original", "not a RandAugment"), ("rand-m9-tweights", "tweights"), ("rand-m9.5", "m9.5"),
                    ("rand-k3", "k3"), ("augmix-m5-w4", "write aug_mix("), ("rand-mstdinf", "mstdinf"), ("", "not a RandAugment"), ("rand--", '""')):
    try:
        raise SystemExit(f"{wrong}: {text(wrong)}")
    except dlclient.OptionError as error:
        assert word in str(error), (wrong, error)
try:
    from timm.data.auto_augment import rand_augment_transform
except ImportError:
    rand_augment_transform = None
if rand_augment_transform:
    from dlclient._answers.timm import text_of
    params = {"translate_const": 100, "img_mean": (124, 116, 104)}
    assert text_of(rand_augment_transform("rand-m9-mstd0.5-inc1", dict(params))) == text(
        "rand-m9-mstd0.5-inc1", (0.485, 0.456, 0.406))
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env={
        **os.environ, "PYTHONPATH": path, "DATALOADERD_LIBRARY": os.path.join(BUILD, "libdlclient.so.0")})


@case("words that are nearly steps, a function as pipeline=: the sentence says what to write")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12)})
    trainer(box, daemon, """
        L, E = dlclient.Loader, dlclient.OptionError
        def augment(picture): return picture
        refused(E, lambda: L("p", pipeline=augment), "augment() is an object of Python", "random_resized_crop(224)",
                "augment: not a step", "on the batch")
        refused(E, lambda: L("p", pipeline=7), "pipeline: 7 is not a string", "random_resized_crop(224)")
        for pipeline, words in (("fp16", "to(float16)"), ("NCHW", "layout(nchw)"), ("random-resized-crop", "random_resized_crop("),
                                ("center_crop(4) fp16", "to(float16)"), ("resize(224,224)", "resize(224:224)"),
                                ("center_crop(4) normalize(imagenet)", "mean=0.485:0.456:0.406"),
                                ("center_crop(4) to(double)", "tensor.double()")):
            refused(E, lambda: L("p", pipeline=pipeline), words)
    """)


@case("a dataset that is not a path, an empty list, a framework in other letters: the sentence says what to write")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12)})
    trainer(box, daemon, """
        L, E = dlclient.Loader, dlclient.OptionError
        refused(E, lambda: L([1, 2, 3]), "1 is neither a path nor a name", "numpy.save()")
        refused(E, lambda: L([numpy.zeros(3)]), "neither a path nor a name")
        for empty in ("", "  "):
            refused(E, lambda: L(empty), "the text is empty", "/data/photos")
        refused(E, lambda: L(L("p")), "a Loader already")
        refused(E, lambda: L("p", indices=[]), "the list is empty", "None is all samples")
        for given, meant in (("Torch", "torch"), ("pytorch", "torch"), ("np", "numpy"), ("TensorFlow", "tensorflow"), ("jaxx", "jax")):
            refused(E, lambda: L("p", framework=given), given, f"did you mean '{meant}'?")
        refused(E, lambda: L("p", framework="caffe"), "'numpy', 'torch', 'jax', 'tensorflow' are allowed")
    """)


@case("seed=None draws a seed, which loader.seed has; a state keeps it; without seed= it is 0; ranks must be given one")
def _(box):
    daemon = box.daemon({"f": box.folder_of_files("f", 60)})
    trainer(box, daemon, """
        def order(loader):
            return [i for batch in loader for i in batch.indices.tolist()]
        one, other = dlclient.Loader("f", 8, seed=None), dlclient.Loader("f", 8, seed=None)
        assert one.seed != other.seed and order(one) != order(other), (one.seed, other.seed)
        assert order(dlclient.Loader("f", 8, seed=one.seed)) == order(dlclient.Loader("f", 8, seed=one.seed))
        state = one.state_dict()
        assert dlclient.Loader("f", 8, seed=None, state=state).seed == dlclient.Loader("f", 8, state=state).seed == one.seed
        assert dlclient.Loader("f", 8).seed == 0
        assert dlclient.Loader("f", 8, seed=None, ranks=[0, 1]).world_size == 2
        refused(dlclient.OptionError, lambda: dlclient.Loader("f", 8, seed=None, rank=0, world_size=2), "seed: None draws",
                "the 2 ranks", "seed=\\"torch\\"")
        os.environ.update(RANK="0", WORLD_SIZE="3")
        refused(dlclient.OptionError, lambda: dlclient.Loader("f", 8, seed=None), "the 3 ranks")
    """)


@case("targets= takes the place of labels and numbers, and not of pictures, texts or bytes")
def _(box):
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12)})
    trainer(box, daemon, """
        mine = numpy.arange(12)
        for pipeline, name in (("center_crop(4)", "image"), ("raw", "image")):
            loader = dlclient.Loader("p", 4, pipeline=pipeline, targets={name: mine})
            refused(dlclient.OptionError, lambda: next(iter(loader)), "targets: 'image' is a field of the dataset", "another name")
        batch = next(iter(dlclient.Loader("p", 4, pipeline="center_crop(4)", targets={"label": mine, "age": mine})))
        assert (batch["label"] == batch.served).all() and (batch["age"] == batch.served).all()
        for mix in ("mixup", "cutmix", "mix"):
            refused(dlclient.OptionError, lambda: dlclient.Loader("p", 4, targets=mine, job="other",
                    pipeline=f"image, label: center_crop(4) {mix}(num_classes=2)"), f"targets: {mix} of the pipeline")
    """)


# ---- attributes -----------------------------------------------------------------------------------------------------

@case("what torch programs read of a loader, its dataset and its sampler is there, or an AttributeError says what is")
def _(box):
    home, folder = Home(box), box.folder_of_pictures("p", 12)
    daemon = box.daemon({"p": folder})
    trainer(box, None, """
        folder = sys.argv[1]
        loader = dlclient.Loader(folder, 4, pipeline="center_crop(4)")
        dataset = loader.dataset
        assert dataset.root == folder and dataset.imgs == dataset.samples and len(dataset.imgs) == 12
        assert dlclient.Loader({"path": folder, "split": "0:50%"}, 4, pipeline="center_crop(4)").dataset.root == folder
        assert loader.timeout == 0 and dlclient.Loader(folder, 4, pipeline="center_crop(4)", timeout=9).timeout == 9
        batch = next(iter(loader))
        refused(AttributeError, lambda: batch.cuda, "'cuda'; its fields are image, label", "batch.to(")
        stored = next(iter(dlclient.Loader(folder, 4)))["image"]
        refused(AttributeError, lambda: stored.shape, "not one array", "bytes until a step decodes them")
        refused(AttributeError, lambda: stored.no_such_thing, "no_such_thing")
        refused(dlclient.LoaderClosed, lambda: dlclient.Loader(folder).dataset.classes, "keep it in a variable")
        refused(TypeError, lambda: dlclient.Loader(folder, path="x", split="train"), "first argument", "split: a key of")
        for name, words in (("to", "batch.to(device)"), ("classes", "loader.dataset.classes"), ("collate_fn", "the daemon makes batches"), ("generator", "loader.seed"), ("prefetch_factor", "stats().slots"),
                            ("multiprocessing_context", "no worker processes"), ("no_such_thing", "no_such_thing")):
            refused(AttributeError, lambda: getattr(loader, name), name, words)
            assert not hasattr(loader, name) and getattr(loader, name, 3) == 3
        for name, words in (("transform", "loader.pipeline"), ("target_transform", "targets="), ("loader", "decodes"),
                            ("data", "numbers("), ("no_such_thing", "no_such_thing")):
            refused(AttributeError, lambda: getattr(dataset, name), name, words)
        refused(TypeError, lambda: dataset[0], "Loader(..., indices=[...]")
        refused(TypeError, lambda: loader[0], "iterated over", "do not wrap it")
        assert repr(loader.sampler) == "<Sampler of rank 0 of 1: 12 samples of an epoch>", repr(loader.sampler)
        both = dlclient.Loader([folder, {"path": folder, "split": "0:50%"}], 4, pipeline="center_crop(4)")
        refused(AttributeError, lambda: both.dataset.root, "made of several")
    """, folder, **home.variables())
    lines = trainer(box, daemon, """
        loader = dlclient.Loader("p", 4, pipeline="center_crop(4)")
        refused(AttributeError, lambda: loader.dataset.root, "a name of the configuration", "dlctl datasets")
        sampler = loader.sampler
        loader.close()
        out(repr(sampler))
    """)
    equal(lines, ["<Sampler of rank 0 of 1: 12 samples of an epoch>"], "of a loader that is closed")


@case("torch's DataLoader around a Loader says not to do that")
def _(box):
    need("torch")
    daemon = box.daemon({"p": box.folder_of_pictures("p", 12)})
    trainer(box, daemon, """
        from torch.utils.data import DataLoader
        loader = dlclient.Loader("p", 4, pipeline="center_crop(4)")
        for arguments in ({}, {"batch_size": 2, "shuffle": True}, {"batch_size": None}):
            refused(TypeError, lambda: next(iter(DataLoader(loader, **arguments))), "do not wrap it in one")
        class Things:
            root = "/data/things"
            def __len__(self): return 3
            def __getitem__(self, index): return index
        refused(dlclient.OptionError, lambda: dlclient.Loader(DataLoader(Things())), "/data/things")
    """)


# ---- parts that are paths -------------------------------------------------------------------------------------------

@case("mix() calls a part that is a path by its last word")
def _(box):
    home = Home(box)
    for name in ("cats", "dogs"):
        box.folder_of_files(name, 20)
    trainer(box, None, """
        cats, dogs = sys.argv[1] + "/cats", sys.argv[1] + "/dogs"
        loader = dlclient.Loader([cats, {"path": dogs, "split": "0:50%"}], 5, sampler="mix(cats=0.75, dogs=0.25, n=20)")
        got = numpy.concatenate([batch.indices for batch in loader])
        assert ((got < 20).sum(), (got >= 20).sum()) == (15, 5), got
        refused(dlclient.OptionError, lambda: dlclient.Loader([cats, dogs], sampler="mix(cat=1)"), "no part \\"cat\\"", "/cats")
        refused(dlclient.OptionError, lambda: dlclient.Loader([cats, {"path": cats, "split": "0:50%"}], sampler="mix(cats=1)"),
                "two parts end in \\"cats\\"")
    """, box.folder, **home.variables())


main()
