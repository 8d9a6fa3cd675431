#!/usr/bin/env python3
"""What is made of sound after it was decoded: batches of spectrograms of one length, padded, ragged, refused; samples that are too
short; masks and noise that belong to a sample. The numbers themselves are compared with torchaudio's in test_sound_features.c."""
import json
import os
import random
import struct
import sys
import wave

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, contains, equal, main, write
from pyclient import trainer

LENGTHS = [1600, 900, 3000, 401, 2111, 1600, 777, 2600]
RATE = 16000
MEL = "audio(rate=16000) mel_spectrogram(n_fft=200, n_mels=24)"


def sound(n, channels=1, seed=0):
    dice = random.Random(seed)
    return struct.pack(f"<{n * channels}h", *(dice.randrange(-20000, 20000) for _ in range(n * channels)))


def serve(box, lengths, channels=1):
    os.makedirs(box.path("d"), exist_ok=True)
    for i, n in enumerate(lengths):
        with wave.open(box.path("d", f"{i}.wav"), "wb") as file:
            file.setnchannels(channels)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes(sound(n, channels, i))
    write(box.path("d", "l.jsonl"), "".join(json.dumps({"path": f"{i}.wav"}) + "\n" for i in range(len(lengths))).encode())
    return box.daemon({"d": {"path": box.path("d", "l.jsonl"), "format": "jsonl", "files": "audio=path"}})


@case("features of one length are stacked, those of any length are padded in their last dimension, or ragged with time first")
def _(box):
    for channels in (1, 2):
        steps = MEL if channels == 1 else MEL.replace("16000)", "16000, mono=false)")
        daemon = serve(box, LENGTHS, channels)
        equal(trainer(box, daemon, f"""
            steps, lengths, channels = {steps!r}, {LENGTHS!r}, {channels}
            def batches(end, size):
                with dlclient.Loader("d", pipeline="audio: " + steps + end, batch_size=size, shuffle=False) as loader:
                    for batch in loader:
                        yield {{name: batch[name].copy() for name in batch}}
            alone = [b["audio"][0] for b in batches("", 1)]
            shapes = [((2,) if channels == 2 else ()) + (24, 1 + n // 100) for n in lengths]
            assert [a.shape for a in alone] == shapes, [a.shape for a in alone]
            n = 0
            for batch in batches(" pad(value=-7, multiple=4)", 4):
                padded, mask = batch["audio"], batch["audio_mask"]
                longest = max(a.shape[-1] for a in alone[n:n + 4])
                assert padded.shape == (4, *shapes[0][:-1], -(-longest // 4) * 4), padded.shape
                assert mask.shape == (4, padded.shape[-1]), mask.shape
                for row, real in zip(padded, mask):
                    t = shapes[n][-1]
                    assert (row[..., :t] == alone[n]).all() and (row[..., t:] == -7).all(), n
                    assert real.tolist() == [True] * t + [False] * (len(real) - t), n
                    n += 1
            assert n == len(lengths)
            for batch in batches(" pad(to=40)", 4):
                assert batch["audio"].shape == (4, *shapes[0][:-1], 40)
            n = 0
            for batch in batches(" columns(20, value=9)", 4):
                assert batch["audio"].shape == (4, *shapes[0][:-1], 20)
                for row in batch["audio"]:
                    t = min(20, shapes[n][-1])
                    assert (row[..., :t] == alone[n][..., :t]).all() and (row[..., t:] == 9).all()
                    n += 1
            n = 0
            for batch in batches(" transpose" + (" pad" if channels == 2 else ""), 4):
                for row in batch["audio"]:
                    turned = alone[n].swapaxes(-1, -2)
                    assert (row[..., :turned.shape[-2], :] == turned).all()
                    assert channels == 2 or row.shape == turned.shape
                    n += 1
            out("done")
        """), ["done"], "batches")
        daemon.stop()


@case("what cannot be collated, and a sound that is too short, is refused with what to do")
def _(box):
    daemon = serve(box, LENGTHS + [100])
    lines = daemon.read("d", pipeline=f"audio: {MEL} pad", batch=2, shuffle=False, on_error="skip")
    equal(len(lines), len(LENGTHS), "samples")
    contains(daemon.dlctl("errors", "d").stdout, "l.jsonl:8", "has 100 frames, and mel_spectrogram(n_fft=200) mirrors 100")
    daemon.refused("d", "varies in a dimension that is not its first", pipeline=f"audio: {MEL} ragged")
    daemon.refused("d", "leave truncate out, and cut longer samples with columns(N)", pipeline=f"audio: {MEL} pad(max=5, truncate=true)")
    daemon.refused("d", "leave side out", pipeline=f"audio: {MEL} pad(side=left)")
    daemon.refused("d", 'unknown sound step "hflip"', pipeline=f"audio: {MEL} hflip(0.5)")
    daemon.refused("d", "each sample has 80 frames", pipeline="audio: audio(rate=16000, seconds=0.005) spectrogram")


@case("what is drawn belongs to the sample, its epoch and the seed, whoever reads it in which batch")
def _(box):
    daemon = serve(box, LENGTHS)
    steps = f"audio(rate=16000) gain(-6:6, p=0.5) noise(0:20) {MEL.split(' ', 1)[1]} spec_augment(2, 5, 2, 9)"
    done = daemon.dlctl("check-steps", "d", "--pipeline", f"audio: {steps} pad(to=40)")
    equal(done.returncode, 0, done.stdout + done.stderr)

    def read(**options):
        lines = daemon.read("d", pipeline=f"audio: {steps} columns(40)", shuffle=False, **options)
        return {line["index"]: line["fields"]["audio"]["sha256"] for line in lines}

    first = read(batch=3, seed=1)
    equal(len(set(first.values())), len(LENGTHS), "samples that differ")
    equal(read(batch=1, seed=1), first, "other batches")
    for other in (read(batch=3, seed=2), read(batch=3, seed=3)):
        equal(any(other[i] == first[i] for i in first), False, "equal draws of another seed")


@case("a sample without sound is padded from its beginning, and has no rows where features are not padded")
def _(box):
    vectors = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors")
    with open(os.path.join(vectors, "arrow", "sounds.arrow"), "rb") as file:
        write(box.path("d", "a.arrow"), file.read())
    with open(os.path.join(vectors, "sound", "s16.wav"), "rb") as file:
        write(box.path("d", "snd", "s16.wav"), file.read())
    daemon = box.daemon({"d": {"path": box.path("d"), "format": "arrow"}})
    equal(trainer(box, daemon, f"""
        steps = {MEL!r}
        def batch(end, **options):
            with dlclient.Loader("d", pipeline="audio: " + steps + end, batch_size=4, shuffle=False, **options) as loader:
                return [{{name: b[name] for name in b}} for b in loader][0]
        padded = batch(" pad(value=-7)")
        assert padded["audio"].shape[:2] == (4, 24) and padded["audio_mask"].any(axis=1).tolist() == [True, True, True, False]
        assert (padded["audio"][3] == -7).all()
        rows = list(batch(" columns(5)")["audio"])
        out([None if row is None else list(row.shape) for row in rows])
    """), [[[24, 5], [24, 5], [24, 5], None]], "features")


@case("stacked features of different lengths end with what to do; a batch of one may have any length")
def _(box):
    daemon = serve(box, [1600, 900])
    equal(len(daemon.read("d", pipeline=f"audio: {MEL}", batch=1, shuffle=False)), 2, "samples")
    reader = daemon.reader("d", pipeline=f"audio: {MEL}", batch=2, shuffle=False, on_error="skip")
    equal(reader.finish()[0] != 0, True, "the job ends")
    contains(reader.errors(), "another sample of its batch has", "end the steps with pad")


main()
