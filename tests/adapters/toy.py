"""A format of another package: a graph of numbers as lines of reverse Polish notation, `y = x x + 3 *`, below `# toy`."""

from tidu_cli.errors import DocumentError, EvaluationError, KeyTextError
from tidu_cli.formats.write import format_document
from tidu_cli.port_data import Imported, Option, Remarks, Written
from tidu_cli.runtime.plans.program import plain_program

SIGNS = {"+": "add", "*": "mul", "-": "sub"}


def _sign(text):
    if text not in ("#", ";"):
        raise KeyTextError(f"'{text}' is not # or ;")
    return text


class Toy:
    name, title, subject, suffixes, binary, runtimes = "toy", "toy notation", "files of toy notation", (".toy",), False, ()
    reading = (Option("--x-type", "x_type", "The dtype of the inputs of toy notation.", "DTYPE", str, lambda name, value: value),)
    writing = (Option("--sign", "sign", "What comments in toy notation begin with.", "#|;", _sign, lambda name, value: value),)

    def sniff(self, source):
        return source.head(5)[1:] == b" toy"

    def read(self, source, where, options, from_plain):
        inputs, nodes, outputs = [], [], []
        lines = [line.split() for line in source.read().decode().splitlines()[1:]]
        names = list(dict.fromkeys(word for line in lines for word in line[2:] if word not in SIGNS))
        inputs = [{"key": name, "type": options.get("x_type", "f64") + "[]"} for name in names]
        for line in lines:
            stack = []
            for word in line[2:]:
                if word in SIGNS and len(stack) < 2:
                    raise DocumentError(f"{where}: output '{line[0]}': '{word}' takes two operands")
                if word in SIGNS:
                    nodes.append({"op": SIGNS[word], "inputs": [stack.pop(-2), stack.pop()]})
                    stack.append(len(names) + len(nodes) - 1)
                else:
                    stack.append(names.index(word))
            outputs.append({"key": line[0], "value": stack[-1]})
        graph = {"name": "toy", "inputs": inputs, "nodes": nodes, "outputs": outputs}
        return Imported(_document({"tidu": 1, "graphs": [graph]}), {}, ("toy notation is for tests",))

    def write(self, document, beside, options):
        graph, of_op = document.head, {op: sign for sign, op in SIGNS.items()}
        texts = [str(i.key) for i in graph.inputs]
        for case, args in graph.nodes():
            if case.op not in of_op:
                raise DocumentError(f"toy notation has no {case.op}")
            texts.append(f"{texts[args[0]]} {texts[args[1]]} {of_op[case.op]}")
        lines = [f"{options.get('sign', '#')} toy", *(f"{o.key} = {texts[o.value]}" for o in graph.outputs)]
        return Written(["\n".join(lines).encode() + b"\n"])

    def double(self, options):
        return None

    def remarks(self, source, where, imported, options, asked):
        return Remarks({"notation": "reverse Polish"})

    def outline(self, data):
        import json

        return json.loads(format_document(self.read(_Bytes(data), "", {}, None).document, "json"))


class _Bytes:
    def __init__(self, data):
        self.read = lambda: data


def _document(plain):
    import json

    from tidu_cli.formats.read import parse_document

    return parse_document(json.dumps(plain).encode(), "toy")[0]


TOY = Toy()


class Slide:
    """An engine of another package: the plain interpreter, for graphs without sin."""

    name, package, extra, devices = "slide", "tidu_toy", "toy", False

    def seconds(self, n_nodes, n_calls, n_numbers, runs, call):
        return float("inf")

    def refusal(self, graph, primitives):
        return next((f"node {k} (sin): not on a slide rule" for k, (case, _) in enumerate(graph.nodes()) if case.op == "sin"), None)

    def program(self, graph, primitives, outputs, device):
        if reason := self.refusal(graph, primitives):
            raise EvaluationError(reason)
        return plain_program(graph, outputs)

    def batch(self, graph, keys, size, max_memory=None):
        return None


SLIDE = Slide()
