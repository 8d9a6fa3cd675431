"""Breaks each rule that keeps batches on a device from being overwritten, one at a time: libdlclient-cuda is built again
with one call left out. With a driver that works late, what arrives must be wrong then; else nobody knows whether the
rule is kept by the code or by luck."""
import os
import subprocess

# Name, file, what stands there, what stands in its place.
RULES = [
    ("a slot is given back only after the copy from it", "cuda_next.c",
     "r = flight_is_copied(flight, &cuda->device, wait, &cuda->why);", "(void)wait; r = 1;"),
    ("a kernel waits for the copy to the stage", "flight.c",
     "cu_result result = driver->stream_wait(device->working, flight->copied, 0);", "cu_result result = CU_SUCCESS;"),
    ("an output is written only after the trainer's stream is done with it", "flight.c",
     "return result == CU_SUCCESS ? driver->stream_wait(device->working, before, 0) : result;", "(void)before; return result;"),
    ("a stage is written only after the kernel has read it", "flight.c",
     "result = driver->stream_wait(device->copying, flight->finished, 0);", "result = CU_SUCCESS;"),
    ("the trainer's stream waits until the batch is finished", "cuda_next.c",
     "cuda->device.driver->stream_wait(stream, flight->finished, 0)", "0 * (int)(uintptr_t)stream"),
    ("a release marks where the trainer's stream is", "cuda_next.c",
     "result = driver->event_record(flight->freed, stream);", "(void)stream; result = CU_SUCCESS;"),
    ("a release waits for the other streams that use the batch", "cuda_next.c",
     "result = flight_await_users(flight, &cuda->device, stream);", "result = CU_SUCCESS;"),
    ("another stream waits until the batch is finished", "cuda_use.c",
     "result = driver->stream_wait(stream, flight->finished, 0);", "(void)driver; result = CU_SUCCESS;"),
]


def build(root, build_folder, folder, rule):
    """Builds the library without this rule in `folder`. Returns its path."""
    _, file, right, wrong = rule
    sources = []
    for name in sorted(os.listdir(os.path.join(root, "client/cuda"))):
        if not name.endswith(".c"):
            continue
        source = os.path.join(root, "client/cuda", name)
        if name == file:
            with open(source, encoding="utf-8") as original:
                text = original.read()
            flat = " ".join(text.split())
            if flat.count(right) != 1:
                raise AssertionError(f"{file} has not this one place: {right}")
            text = replaced(text, right, wrong)
            source = os.path.join(folder, name)
            with open(source, "w", encoding="utf-8") as broken:
                broken.write(text)
        sources.append(source)
    library = os.path.join(folder, "libdlclient-cuda.so.0")
    command = ["cc", "-std=c11", "-fPIC", "-O1", "-pthread", "-shared", "-D_GNU_SOURCE", "-w", "-fvisibility=hidden",
               f"-I{root}", f"-I{build_folder}/generated", "-Wl,-soname,libdlclient-cuda.so.0", f"-Wl,--version-script={root}/client/cuda/libdlclient-cuda.map", "-o", library, *sources,
               f"{build_folder}/libkernels.a", f"{build_folder}/libproto.a", f"-L{build_folder}", "-ldlclient", "-ldl"]
    subprocess.run(command, check=True, cwd=root)
    return library


def replaced(text, right, wrong):
    """As str.replace(), wherever the lines are broken."""
    words = right.split()
    start = 0
    while True:
        start = text.index(words[0], start)
        at = start
        for word in words:
            while text[at].isspace():
                at += 1
            if not text.startswith(word, at):
                break
            at += len(word)
        else:
            return text[:start] + wrong + text[at:]
        start += 1
