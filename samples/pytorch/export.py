"""Writes the models of this folder, and what torch computes of them: `python export.py [FOLDER]`.

Run with torch 2.13, onnx 1.23, onnxscript 0.7, NumPy 2.4.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
import torch
from networks import Cnn, Gpt, Potential, Voice, counting, molecule, pictures, sound
from torch.nn.functional import cross_entropy, ctc_loss

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-3),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=0.01),
}
STEPS = 20


def fresh(kind):
    """A network with its first parameters, the same in each call."""
    torch.manual_seed(0)
    return kind().train()


def fitted():
    """The Cnn after 100 steps, in evaluation mode."""
    model = fresh(Cnn)
    steps(model, pictures(), torch.optim.Adam(model.parameters(), 3e-3), 100)
    return model.eval()


def steps(model, batches, optimizer, number):
    """Train by steps that take the batches in turn; the loss at each, before it."""
    dtype, losses = next(model.parameters()).dtype, []
    for k in range(number):
        x, labels = (torch.from_numpy(part[k % len(part)]) for part in batches)
        logits = model(x.to(dtype) if x.is_floating_point() else x)
        loss = cross_entropy(logits.flatten(0, -2), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def recorded(network, batches, folder, name):
    """Losses of each optimizer in f32 and f64; adamw's parameters after the last step are written."""
    losses = {}
    for optimizer, make in OPTIMIZERS.items():
        by_dtype = {}
        for key, dtype in (("f32", torch.float32), ("f64", torch.float64)):
            model = network().to(dtype)
            by_dtype[key] = steps(model, batches, make(model.parameters()), STEPS)
        losses[optimizer] = by_dtype
        if optimizer == "adamw":
            state = {key: value.float() if value.is_floating_point() else value for key, value in model.state_dict().items()}
            write_arrays(folder / f"{name}_adamw.npz", state)
    return losses


def forces(model):
    """The energy, its forces, a Hessian-vector product, and the slopes of an error of forces by each parameter, in f64."""
    model = model.double()
    species, pairs, positions = (torch.from_numpy(part) for part in molecule())
    x = positions.double().requires_grad_()
    direction = torch.from_numpy(np.random.RandomState(3).standard_normal(x.shape))
    energy = model(species, pairs, x)
    (slope,) = torch.autograd.grad(energy, x, create_graph=True)
    (product,) = torch.autograd.grad(slope, x, direction, retain_graph=True)
    error = (-slope - direction).square().sum()
    names, parameters = zip(*model.named_parameters(), strict=True)
    slopes = torch.autograd.grad(error, parameters, materialize_grads=True)
    values = {"species": species, "pairs": pairs, "positions": positions, "direction": direction}
    values |= {"energy": energy, "force": -slope, "product": product, "error": error}
    return values | {f"slope {name}": value for name, value in zip(names, slopes, strict=True)}


def chances(model):
    """For each rate the sum of a detector's chances, its slopes by sound, state and parameters, and a Hessian-vector product."""
    x, state = (torch.from_numpy(part).double().requires_grad_() for part in sound())
    direction = torch.from_numpy(np.random.RandomState(6).standard_normal(x.shape))
    values = {"x": x, "state": state, "direction": direction}
    for name, network in model.double().named_children():
        chance, following = network(x, state)
        names, parameters = zip(*network.named_parameters(prefix=name), strict=True)
        slope, *slopes = torch.autograd.grad(chance.sum(), [x, state, *parameters], create_graph=True)
        (product,) = torch.autograd.grad(slope, x, direction, retain_graph=True)
        values |= {f"{name} chance": chance, f"{name} state": following, f"{name} slope x": slope, f"{name} product": product}
        values |= {f"{name} slope {key}": value for key, value in zip(["state", *names], slopes, strict=True)}
    return values


def alignments():
    """The CTC loss of some sequences and its slopes, in f64.

    Of targets one has repetitions and time, one just enough of it, one too little, one is padded, one empty, one has classes of
    probability 0 around it, and one such a class in it, so that no path is left.
    """
    targets = np.array([[1, 1, 2], [3, 3, 3], [3, 3, 3], [2, 1, -1], [0, 0, 0], [1, 2, 3], [2, 2, 1]])
    lengths = np.array([[7, 3], [5, 3], [4, 3], [2, 2], [6, 0], [7, 3], [7, 3]])  # of the inputs, of the targets
    logits = np.random.RandomState(4).standard_normal((7, len(targets), 4))
    logits[2:5, 5, :2] = -800  # exp(-800) is 0, and log(0) has NaN for its slope in torch
    logits[:, 6, 2] = -np.inf
    x = torch.from_numpy(logits).requires_grad_()
    given = map(torch.from_numpy, (targets, lengths[:, 0], lengths[:, 1]))
    loss = ctc_loss(x.log_softmax(-1), *given, zero_infinity=True)
    (slope,) = torch.autograd.grad(loss, x)
    values = {"logits": logits, "targets": targets, "input_lengths": lengths[:, 0], "target_lengths": lengths[:, 1]}
    return values | {"loss": loss, "slope": slope}


def export(path, model, inputs, *outputs, **options):
    """Export for inputs by name, and leave out what the exporters note of the source: it is most of a file so small."""
    given = tuple(torch.from_numpy(x) for x in inputs.values())
    torch.onnx.export(model, given, path, input_names=list(inputs), output_names=list(outputs), **options)
    written = onnx.load(path)
    without_notes(written.graph)
    onnx.save(written, path)


def without_notes(graph):
    """Leave them out of a graph, and of those within."""
    for part in (graph, *graph.node, *graph.value_info, *graph.input, *graph.output):
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
    graph.ClearField("value_info")
    for attribute in (attribute for node in graph.node for attribute in node.attribute if attribute.HasField("g")):
        without_notes(attribute.g)


def write_arrays(path, values):
    """Write tensors and arrays as .npz."""
    np.savez_compressed(path, **{key: np.asarray(torch.as_tensor(value).detach()) for key, value in values.items()})


def main(folder):
    """Write everything into the folder."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    by_default = {"dynamo": True, "external_data": False, "verbose": False}
    dynamo = by_default | {"optimize": False}
    training = {"training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False}
    script = training | {"dynamo": False, "opset_version": 17}

    images, labels = pictures()
    tokens, following = counting()
    species, pairs, positions = molecule()
    write_arrays(folder / "pictures.npz", {"images": images, "labels": labels})
    write_arrays(folder / "counting.npz", {"tokens": tokens, "labels": following})

    export(folder / "cnn.onnx", fitted(), {"images": images[0]}, "logits", **by_default)
    export(folder / "cnn_dynamo.onnx", fitted(), {"images": images[0]}, "logits", **dynamo)
    export(folder / "cnn_script.onnx", fresh(Cnn), {"images": images[0]}, "logits", **script)
    export(folder / "gpt_dynamo.onnx", fresh(Gpt), {"tokens": tokens[0]}, "logits", **dynamo)
    export(folder / "gpt_script.onnx", fresh(Gpt), {"tokens": tokens[0]}, "logits", **script)
    molecules = {"species": species, "pairs": pairs, "positions": positions}
    export(folder / "potential.onnx", fresh(Potential), molecules, "energy", **dynamo)

    x, state = sound()
    sounds = {"x": x, "state": state, "rate": np.array(16000)}
    axes = {"x": {0: "batch", 1: "samples"}, "state": {1: "batch"}}
    ends = {"chance": {0: "batch"}, "next": {1: "batch"}}
    scripted = {"dynamo": False, "opset_version": 16, "dynamic_axes": axes | ends}
    export(folder / "voice_script.onnx", torch.jit.script(fresh(Voice).eval()), sounds, "chance", "next", **scripted)
    open_axes = {"dynamic_shapes": {**axes, "rate": None}}
    export(folder / "voice_dynamo.onnx", fresh(Voice).eval(), sounds, "chance", "next", **dynamo, **open_axes)

    write_arrays(folder / "voice.npz", chances(fresh(Voice)))
    write_arrays(folder / "potential.npz", forces(fresh(Potential)))
    write_arrays(folder / "alignments.npz", alignments())
    losses = {
        "steps": STEPS,
        "cnn_dynamo": recorded(fitted, (images, labels), folder, "cnn_dynamo"),
        "cnn_script": recorded(lambda: fresh(Cnn), (images, labels), folder, "cnn_script"),
        "gpt": recorded(lambda: fresh(Gpt), (tokens, following), folder, "gpt"),
    }
    (folder / "losses.json").write_text(json.dumps(losses).replace("], ", "],\n") + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
