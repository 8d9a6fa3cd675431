#!/usr/bin/env python3
"""Sound in archives and in listings: the samples that python-soundfile read (tests/vectors/sound), cropped or whole; a
sound that is damaged does not stop the others."""
import hashlib
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import case, contains, equal, indices, main, write
from tars import archive, web
from tfrecords import example, record_file, texts

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "sound")


def vector(name):
    with open(os.path.join(VECTORS, name), "rb") as file:
        return file.read()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def digests(lines, field):
    return [line["fields"][field]["sha256"] for line in lines]


@case("FLAC in archives: whole, cropped in the middle and padded; the stored bytes without a step")
def _(box):
    sound, samples = vector("s16.flac"), vector("s16.flac.f32")
    archive(box.path("d", "all.tar"), [(f"{i:03d}.{kind}", content) for i in range(8)
                                       for kind, content in (("flac", sound), ("cls", b"%d" % i))])
    daemon = box.daemon({"d": web(box.path("d"))})
    for steps, wanted in (("raw", sound), ("audio(max_seconds=1)", samples),
                          ("audio(rate=16000, seconds=0.05, crop=center)", samples[400 * 4:1200 * 4]),
                          ("audio(rate=16000, seconds=0.2)", samples + bytes(1600 * 4))):
        lines = daemon.read("d", pipeline=f"flac: {steps}; cls", batch=4, seed=1)
        equal(digests(lines, "flac"), [sha256(wanted)] * 8, steps)
        equal([line["fields"]["cls"]["value"] for line in lines], indices(lines), "classes")


@case("files of a listing, in three formats; one that is cut is a damaged sample, and dlctl says where")
def _(box):
    names = ["s16.wav", "float.wav", "u8.wav", "s16.flac"]
    for name in names:
        write(box.path("d", name), vector(name))
    write(box.path("d", "cut.flac"), vector("s16.flac")[:1500])
    rows = [{"path": name, "text": name} for name in names[:2] + ["cut.flac"] + names[2:]]
    write(box.path("d", "l.jsonl"), "".join(json.dumps(row) + "\n" for row in rows).encode())
    daemon = box.daemon({"d": {"path": box.path("d"), "format": "jsonl", "files": "audio=path"}})
    lines = daemon.read("d", pipeline="audio: audio(max_seconds=1); text", shuffle=False, on_error="skip", batch=2)
    equal([line["fields"]["text"]["text"] for line in lines], names, "texts")
    equal(digests(lines, "audio"), [sha256(vector(name + ".f32")) for name in names], "samples")
    contains(daemon.dlctl("errors", "d").stdout, "l.jsonl:2", "cut short")


@case("rows of a manifest that are parts of one recording: each gets its own seconds, and none the beginning unasked")
def _(box):
    write(box.path("d", "long.flac"), vector("s16.flac"))  # 0.1 s at 16,000 frames a second
    samples, parts = vector("s16.flac.f32"), [(0, 0.025), (0.025, 0.05), (0.075, 0.03), (0.075, None)]
    rows = [{"path": "long.flac", "offset": begin, "duration": seconds} for begin, seconds in parts]
    wrong = [(0.2, 0.01), (-1, 0.01), (0.05, 0.5), (0.05, 0), (0.05, -1)]
    rows += [{"path": "long.flac", "offset": begin, "duration": seconds} for begin, seconds in wrong]
    write(box.path("d", "l.jsonl"), "".join(json.dumps({name: value for name, value in row.items() if value is not None}) + "\n"
                                            for row in rows).encode())
    daemon = box.daemon({"d": {"path": box.path("d"), "format": "jsonl", "files": "audio=path"}})
    wanted = [samples[int(begin * 16000) * 4:][:int((seconds or 1) * 16000) * 4] for begin, seconds in parts]
    lines = daemon.read("d", pipeline="audio: audio(start=offset, duration=duration)", shuffle=False, on_error="skip", batch=1)
    equal(digests(lines, "audio"), [sha256(part) for part in wanted], "parts")
    errors = daemon.dlctl("errors", "d").stdout
    contains(errors, "begins at 0.2 s", "begins at -1 s", "has 0.5 s from 0.05 s", "has 0 s from", "has -1 s from", "the file has 0.1 s")

    # A part is cropped and padded like a file.
    lines = daemon.read("d", pipeline="audio: audio(start=offset, duration=duration, rate=16000, seconds=0.0375, crop=center)",
                        shuffle=False, on_error="skip", batch=1)
    equal(digests(lines, "audio")[:2], [sha256(wanted[0] + bytes(200 * 4)), sha256(wanted[1][100 * 4:700 * 4])], "crops")
    lines = daemon.read("d", pipeline="audio: audio(start=0)", shuffle=False, batch=3)
    equal(digests(lines, "audio"), [sha256(samples)] * len(rows), "whole files")
    for steps, word in (("audio()", "write audio(start=offset, duration=duration), or audio(start=0)"),
                        ("audio(start=ofset)", "no column ofset"), ("audio(start=-1)", "the name of a column")):
        daemon.refused("d", word, pipeline=f"audio: {steps}")


def wav(kind, n_bits, n_channels, frames, before=b"", rate=8000, n_data=None, inner=None):
    """A WAV file whose chunk of data comes after `before`, and says that it has n_data bytes. `inner`: the kind of an extensible one."""
    n_frame = n_channels * n_bits // 8
    form = struct.pack("<HHIIHH", kind, n_channels, rate, rate * n_frame, n_frame, n_bits)
    if inner:
        form += struct.pack("<HHIH", 22, n_bits, 0, inner) + bytes.fromhex("000000001000800000aa00389b71")
    chunks = b"WAVEfmt " + struct.pack("<I", len(form)) + form + before
    chunks += b"data" + struct.pack("<I", len(frames) if n_data is None else n_data) + frames
    return b"RIFF" + struct.pack("<I", len(chunks)) + chunks


@case("of a long WAV file only the head and the sample's part are read; what says not where the part is, is read as a whole")
def _(box):
    import numpy
    n, long_note = 80_000, b"LIST" + struct.pack("<I", 6000) + bytes(6000)
    whole = (numpy.arange(2 * n) * 7919 % 65521 - 32760).astype("<i2").reshape(n, 2)
    real = (whole[:, 0] / 40000).astype("<f4")
    ulaw = (numpy.arange(n) * 7919 % 253).astype("u1")  # each frame four times this; the head claims 16 bits
    ulaw_loud = ((8 * (~ulaw & 15).astype("i4") + 132) << ((~ulaw >> 4) & 7)) - 132
    law = (numpy.where(~ulaw & 128, -ulaw_loud, ulaw_loud) / 32768).astype("<f4")
    files = {"law": wav(0xfffe, 16, 4, ulaw.repeat(4).tobytes(), inner=7), "extensible": wav(0xfffe, 16, 2, whole.tobytes(), inner=1),
             "pcm": wav(1, 16, 2, whole.tobytes()), "float": wav(3, 32, 1, real.tobytes(), b"LIST" + struct.pack("<I", 5) + b"note.\0"),
             "late": wav(1, 16, 2, whole.tobytes(), long_note), "lies": wav(1, 16, 2, whole.tobytes(), n_data=4 * n + 4000),
             "cut": wav(1, 16, 2, whole.tobytes())[:-1000]}
    parts = [(0, 0.5), (3.25, 0.125), (9.5, 0.5), (9.9995, None), (9, 2), (11, 1)]
    for name, content in files.items():
        write(box.path(name, "long.wav"), content)
        write(box.path(name, "l.jsonl"), "".join(json.dumps({"path": "long.wav", "offset": begin} | ({"duration": s} if s else {})) + "\n"
                                                 for begin, s in parts).encode())
    daemon = box.daemon({name: {"path": box.path(name), "format": "jsonl", "files": "audio=path"} for name in files})
    n_before = 0
    for name in files:
        lines = daemon.read(name, pipeline="audio: audio(start=offset, duration=duration, mono=%s)" % ("true" if name in ("float", "law") else "false"),
                            shuffle=False, on_error="skip", batch=1)
        source = real if name == "float" else law if name == "law" else (whole / 32768).astype("<f4")
        wanted = [source[round(begin * 8000):][:round((seconds or 9) * 8000)] for begin, seconds in parts[:4]]
        is_cut = name in ("lies", "cut")
        equal(digests(lines, "audio"), [sha256(part.tobytes()) for part in wanted if not is_cut], name)
        contains(daemon.dlctl("errors", name).stdout,
                 *(["is cut short"] if is_cut else ["has 2 s from 9 s of its file", "begins at 11 s of its file"]))
        n_read = int({row["name"]: row["value"] for row in daemon.status()["counters"]}["n_bytes_read"])
        equal(n_read - n_before < 2 * len(files[name]) + 100_000, name in ("pcm", "float", "extensible"), f"{n_read - n_before} bytes are read of {name}")
        n_before = n_read
    with open(box.path("pcm", "long.wav"), "r+b") as file:
        file.truncate(100)
    daemon.read("pcm", pipeline="audio: audio(start=offset, duration=duration, mono=false)", shuffle=False, on_error="skip", batch=1)
    equal({error["field"] for error in daemon.objects("errors", "pcm")}, {"audio"}, "the field whose file was cut")


@case("a long part of a WAV file does not go through the tray of the process that decodes it")
def _(box):
    write(box.path("d", "long.wav"), wav(1, 16, 1, bytes(1_200_000)))
    write(box.path("d", "l.jsonl"), b'{"path": "long.wav", "offset": 1, "duration": 60}\n')
    daemon = box.daemon({"d": {"path": box.path("d"), "format": "jsonl", "files": "audio=path"}}, isolation="process")
    lines = daemon.read("d", pipeline="audio: audio(start=offset, duration=duration)", shuffle=False, batch=1)
    equal(digests(lines, "audio"), [sha256(bytes(4 * 60 * 8000))], "silence")
    with open(f"/proc/{daemon.pid}/maps", encoding="ascii") as maps:
        trays = [[int(end, 16) for end in line.split()[0].split("-")] for line in maps if "dataloaderd-tray" in line]
    equal([end - begin < 400_000 for begin, end in trays], [True] * max(1, len(trays)), "trays")


@case("an Arrow file of datasets: an Audio column with bytes, with a file outside, and with nothing")
def _(box):
    for name, file in (("inside", "sounds.arrow"), ("outside", "sounds-outside.arrow")):
        write(box.path(name, "a.arrow"), vector("../arrow/" + file))
        write(box.path(name, "snd", "s16.wav"), vector("s16.wav"))
    daemon = box.daemon({name: {"path": box.path(name), "format": "arrow"} for name in ("inside", "outside")})
    lines = daemon.read("inside", pipeline="audio: audio(max_seconds=1)", shuffle=False, batch=4)
    equal(digests(lines[:2], "audio"), [sha256(vector(name + ".f32")) for name in ("u8.wav", "s16.flac")], "samples")
    equal([lines[2]["fields"]["audio"]["shape"], lines[3]["fields"]["audio"]], [[3200], None], "Opus, and no sound")
    equal(digests(daemon.read("inside", pipeline="audio: raw", shuffle=False)[:3], "audio"),
          [sha256(vector(name)) for name in ("u8.wav", "s16.flac", "opus.opus")], "stored bytes")
    lines = daemon.read("outside", pipeline="audio: audio(max_seconds=1)")
    equal(digests(lines, "audio"), [sha256(vector("s16.wav.f32"))], "a file")
    daemon.refused("outside", "is sound: the first step is audio(...), or raw", pipeline="audio: text")


@case("a Parquet file of datasets: an Audio column with bytes, and with nothing")
def _(box):
    write(box.path("p", "a.parquet"), vector("../parquet/sounds.parquet"))
    daemon = box.daemon({"d": {"path": box.path("p"), "format": "parquet"}})
    lines = daemon.read("d", pipeline="audio: audio(max_seconds=1)", shuffle=False, batch=3)
    equal(digests(lines[:2], "audio"), [sha256(vector(name + ".f32")) for name in ("u8.wav", "s16.flac")], "samples")
    equal([len(lines), lines[2]["fields"]["audio"]], [3, None], "no sound")


@case("sound is told by the endings of files, by what archives call it, and by the bytes of a TFRecord")
def _(box):
    names = ["s16.wav", "s16.flac"]
    for name in names:
        write(box.path("l", name), vector(name))
    write(box.path("l", "m.jsonl"), "".join(json.dumps({"audio_filepath": name, "text": name}) + "\n" for name in names).encode())
    archive(box.path("w", "all.tar"), [(f"{i}.wav", vector("s16.wav")) for i in range(2)])
    write(box.path("r", "r.tfrecord"), record_file([example(sound=texts(vector(name))) for name in names]))
    daemon = box.daemon({"l": {"path": box.path("l", "m.jsonl"), "format": "jsonl"}, "w": web(box.path("w")),
                         "r": {"path": box.path("r"), "format": "tfrecord"}})
    for dataset, field in (("l", "audio"), ("w", "wav"), ("r", "sound")):
        lines = daemon.read(dataset, pipeline=f"{field}: audio(rate=16000, seconds=0.05, crop=start)", shuffle=False)
        equal(digests(lines, field), [sha256(vector(name + ".f32")[:3200]) for name in (names if dataset != "w" else names[:1] * 2)],
              dataset)
        daemon.refused(dataset, "is sound: the first step is audio(...), or raw", pipeline=f"{field}: text")


@case("dlctl look shows what a sound is, and writes it")
def _(box):
    shown = {"float.wav": "WAV, 8000 Hz, 1 channel, 0.200 s", "s24.flac": "FLAC, 16000 Hz, 2 channels, 0.100 s",
             "opus.opus": "Opus, 16000 Hz, 1 channel, 0.200 s", "vorbis.ogg": "Ogg, 16000 Hz, 1 channel, 0.200 s",
             "layer3.mp3": "MP3, 16000 Hz, 1 channel, 0.200 s", "cut.flac": "bytes, 30: \"fLaC"}
    endings = [".wav", ".flac", ".ogg", ".ogg", ".mp3", ".flac"]
    for name in shown:
        write(box.path("d", name), vector("s16.flac")[:30] if name == "cut.flac" else vector(name))
    write(box.path("d", "l.jsonl"), "".join(json.dumps({"path": name}) + "\n" for name in shown).encode())
    daemon = box.daemon({"d": {"path": box.path("d", "l.jsonl"), "format": "jsonl", "files": "audio=path"}})
    done = daemon.dlctl("look", "d", "--save", box.path("saved"), *range(len(shown)))
    equal(done.returncode, 0, done.stderr)
    lines = [line.split(None, 1)[1] for line in done.stdout.splitlines() if line.startswith("  audio")]
    for line, (name, words) in zip(lines, shown.items()):
        contains(line, words if name == "cut.flac" else "sound, " + words)
    equal(sorted(os.listdir(box.path("saved"))), [f"{i}.audio{ending}" for i, ending in enumerate(endings)], "files")
    with open(box.path("saved", "1.audio.flac"), "rb") as file:
        equal(file.read() == vector("s24.flac"), True, "the stored bytes")


main()
