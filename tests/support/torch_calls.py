"""The calls that make the objects of classes that kinds are like: of random_affine(10, translate=0.1:0.1), RandomAffine(10,
translate=(0.1, 0.1))."""
import json
import os
import re
import subprocess

TORCHVISION = "torchvision.transforms.v2"


def picture_kinds(build):
    done = subprocess.run([os.path.join(build, "tools", "print_kinds")], check=True, stdout=subprocess.PIPE, timeout=60)
    return next(family["kinds"] for family in json.loads(done.stdout) if family["family"] == "pictures")


def sure(kind):
    """Its example, done to each picture."""
    example, names = kind["example"], [argument["name"] for argument in kind["arguments"]]
    if "p" not in names:
        return example
    values = [value for value in example.partition("(")[2].rstrip(")").split(", ") if value and not value.startswith("p=")]
    return f"{kind['name']}({', '.join(['1'] if names[0] == 'p' else values + ['p=1'])})"


def torch_call(text, kinds, module=TORCHVISION):
    """The same as module.CLASS(...). None: some step of it is not the module's."""
    likes = {kind["name"]: kind.get("like", "").rpartition(".") for kind in kinds}
    names = re.findall(r"\w+(?=\(|$)", text)
    if any(likes.get(name, "")[:1] != (module,) for name in names):
        return None
    text = text if text.endswith(")") else text + "()"
    text = re.sub(r"\(([a-z]\w+)\)", "()", text)   # a word of an enumeration, which is the default
    text = re.sub(r"([a-z_]\w*)\(", lambda name: f"module.{likes[name[1]][2]}(", text)
    text = re.sub(r"\b(nearest|bilinear|bicubic)\b", lambda name: f"module.InterpolationMode.{name[0].upper()}", text)
    return re.sub(r"-?[\d.]+(:-?[\d.]+)+", lambda numbers: f"({numbers[0].replace(':', ', ')})", text)
