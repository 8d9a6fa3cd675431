"""torch_graph_trainer.py FOLDER [--epochs N] [--batch-size N]: a whole training step as a CUDA graph.

A graph reads the same memory each time, so the loader writes each batch to tensors that stay (into=). That, and the
replay after it, are queued on torch's current stream: nothing waits on the host. Without a GPU the same step runs
without a graph."""
import argparse
import sys

import dlclient
import torch
from torch.nn.functional import cross_entropy

N_WARM = 3      # steps before the capture, as torch asks for: what is allocated once is there then


def make_model(n_classes):
    return torch.nn.Sequential(torch.nn.Conv2d(3, 16, 7, stride=4), torch.nn.BatchNorm2d(16), torch.nn.ReLU(),
                               torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(16, n_classes))


def captured(step):
    """The step as a graph, and the tensor to which it writes its loss."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(N_WARM):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    return graph, loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=256)
    wish = parser.parse_args()

    on_gpu = torch.cuda.is_available()
    if not on_gpu:
        print("torch finds no GPU: training on the CPU, without a graph", file=sys.stderr)
    device = torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")
    torch.manual_seed(1)
    images = torch.zeros(wish.batch_size, 3, 224, 224, device=device)
    labels = torch.zeros(wish.batch_size, dtype=torch.int64, device=device)
    # Batches of one size alone: drop_last.
    loader = dlclient.Loader(wish.folder, batch_size=wish.batch_size, framework="torch", drop_last=True, device=device,
                             into={"image": images, "label": labels} if on_gpu else None,
                             pipeline="random_resized_crop(224) hflip(0.5) to(float32) layout(nchw)")
    model = make_model(len(loader.dataset.classes)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    # Made of the first batch: what is learned in warming up is learned from photographs.
    graph = loss = None
    for epoch in range(wish.epochs):
        loader.set_epoch(epoch)
        for batch in loader:
            if not on_gpu:
                images.copy_(batch["image"])
                labels.copy_(batch["label"])
                loss = step()
            elif graph is None:
                graph, loss = captured(step)
            else:
                graph.replay()
        if loss is None:
            sys.exit(f"{wish.folder} has fewer than {wish.batch_size} pictures: choose a smaller --batch-size")
        print(f"epoch {epoch} loss {loss.item():.6f}", flush=True)
    loader.close()


if __name__ == "__main__":
    main()
