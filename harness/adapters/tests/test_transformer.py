"""The transformers of `zeroproof train` beside the same models in PyTorch, number by number.

Both compute in fp32 or bf16 and take their sums in orders of their own, so that the numbers differ.
By how much they may is measured in the same run. The truth is PyTorch in fp64, from the same
weights and batches. The controls are PyTorch in the program's precision, with the work divided in
several ways. Of each tensor the program's largest error, and the norm of its errors, may be ALLOWED
times that of the worst control: how roundings fall decides over a small factor, a mistake over
more. Where the truth and all controls have a zero, it has to be one. Tests of the tests show that
other models and other optimizers do not pass.
"""

from __future__ import annotations

import functools
import json
import math
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.judging import ADAPTERS, PROGRAM
from zeroproof_adapter.transformer import WEIGHTS, Recording, Run, StepTaken, parts

ALLOWED = 8.0  # with 8 seeds, the worst of all tensors was at 4.5, most were below 2
ALLOWED_TOGETHER = 4.0  # for the norm over all tensors; the worst was at 2.04
STEPS = 3
UNIT = 2.0**-24  # of rounding to fp32, relative
EXACT = torch.float64

Values = Mapping[str, Tensor]  # by parameter, or by part of one


@dataclass(frozen=True)
class Setting:
    family: str
    stage: int
    precision: str

    def __str__(self) -> str:
        return f"{self.family}-stage{self.stage}-{self.precision}"


SETTINGS = [
    Setting(family, stage, precision)
    for family in ("gpt2", "llama")
    for stage in (0, 3)
    for precision in ("fp32", "bf16")
]


def train(folder: Path, model: str, options: Mapping[str, Any]) -> tuple[int, str]:
    """Runs the program on a known model without its dropout: exit code and messages."""
    if not PROGRAM:
        pytest.fail("ZEROPROOF_PROGRAM does not name the program, build/release/zeroproof")
    known = ADAPTERS.parent.parent / "scenarios" / "models" / f"{model}.json"
    file = folder / f"{model}.json"
    file.write_text(json.dumps({**json.loads(known.read_text()), "dropout": 0}))
    words = [str(word) for pair in options.items() for word in pair]
    command = [PROGRAM, "train", "--model", str(file), "--progress", "never", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    return done.returncode, done.stderr


class Trajectory:
    """What a run comes to in each step, from 1."""

    def __init__(self, run: Run) -> None:
        self.steps: dict[int, StepTaken] = {}
        self.masters: dict[int, dict[str, Tensor]] = {}
        for number in range(1, STEPS + 1):
            self.steps[number] = run.step(number)
            self.masters[number] = {n: w.detach().clone() for n, w in run.masters.items()}


class Comparison:
    """A run of the program, and what PyTorch makes of the same steps."""

    def __init__(self, setting: Setting, folder: Path) -> None:
        # A bound that clips, a learning rate that grows, and gradients that are averaged.
        options = {
            "--stage": setting.stage,
            "--precision": setting.precision,
            "--ranks": 2,
            "--batch": 2,
            "--steps": STEPS,
            "--learning-rate": 0.001,
            "--warm-up": 2,
            "--clip": 0.5,
            "--tensors": folder / "tensors",
        }
        code, messages = train(folder, f"{setting.family}-tiny", options)
        assert code == 0, messages
        self.recording = Recording(folder / "tensors")
        self.precision = WEIGHTS[setting.precision]

    @functools.cached_property
    def truth(self) -> Trajectory:
        return self.trajectory(compute=EXACT, master=EXACT)

    @functools.cached_property
    def controls(self) -> list[Trajectory]:
        samples = len(self.recording.batch(1)[0])
        with sdpa_kernel(SDPBackend.MATH):
            attention_by_products = self.trajectory()
        return [
            self.trajectory(),
            self.trajectory(order=range(samples - 1, -1, -1)),
            self.trajectory(ranks=2),
            attention_by_products,
        ]

    def trajectory(self, **changes: Any) -> Trajectory:
        return Trajectory(Run(self.recording, **{"compute": self.precision, **changes}))

    def split(self, values: Values) -> dict[str, Tensor]:
        """By part, in fp64."""
        shape = self.recording.shape
        return {
            part: rows.to(EXACT)
            for name, value in values.items()
            for part, rows in parts(shape, name, value)
        }

    def recorded(self, of: Callable[[str], Tensor]) -> dict[str, Tensor]:
        return self.split({name: of(name) for name in self.recording.names})

    def clipped(self, taken: StepTaken) -> dict[str, Tensor]:
        scaled = {n: taken.clip_coefficient * g.to(EXACT) for n, g in taken.gradients.items()}
        return self.split(scaled)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that wait for each other in tensors as small as these cost minutes where processors
    are busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=SETTINGS, ids=str)
def comparison(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Comparison:
    return Comparison(request.param, tmp_path_factory.mktemp("transformer"))


def largest(values: Tensor) -> float:
    return float(values.abs().max())


def length(values: Tensor) -> float:
    return float(torch.linalg.vector_norm(values))


def beyond(
    part: str,
    measure: Callable[[Tensor], float],
    error: Tensor,
    of_controls: list[Tensor],
    allowed: float = ALLOWED,
) -> Iterator[str]:
    bound = allowed * max(measure(e) for e in of_controls)
    if not measure(error) <= bound:  # NaN is neither more nor less
        yield f"{part}: {measure.__name__} error {measure(error):.2e}, allowed {bound:.2e}"


def errors_of_gradients(c: Comparison, gradients: Values) -> Iterator[str]:
    """What is wrong with those of the first step."""
    truth = c.split(c.truth.steps[1].gradients)
    controls = [c.split(control.steps[1].gradients) for control in c.controls]
    for part, exact in truth.items():
        error = gradients[part] - exact
        of_controls = [control[part] - exact for control in controls]
        yield from beyond(part, largest, error, of_controls)
        yield from beyond(part, length, error, of_controls)
        if error[is_zero(exact, of_controls)].any():
            yield f"{part}: a zero is none"


def is_zero(exact: Tensor, errors: list[Tensor]) -> Tensor:
    """Where nothing is added up, so that there is nothing to round."""
    return functools.reduce(torch.logical_and, (e == 0 for e in errors), exact == 0)


def test_loss(comparison: Comparison) -> None:
    exact = comparison.truth.steps[1].loss
    of_controls = [abs(control.steps[1].loss - exact) for control in comparison.controls]
    # That of a control is rounded to fp32, and may be right by chance.
    allowed = ALLOWED * max(*of_controls, UNIT * exact)
    assert abs(comparison.recording.loss(1) - exact) <= allowed


def test_every_element_of_the_gradient(comparison: Comparison) -> None:
    recording = comparison.recording
    gradients = comparison.recorded(lambda name: recording.gradient(1, name))
    assert list(errors_of_gradients(comparison, gradients)) == []
    squares = sum(float(g.square().sum()) for g in gradients.values())
    assert recording.norm(1) == pytest.approx(math.sqrt(squares), rel=1e-12)
    assert recording.norm(1) > recording.training.clip_norm  # so that something is clipped


def other_models(c: Comparison) -> list[dict[str, Any]]:
    """Changes of the shape that are little, for the precision."""
    is_fp32 = c.precision == torch.float32
    change: dict[str, Any] = {"norm_epsilon": 1.001e-5 if is_fp32 else 1e-3}
    if not c.recording.shape.is_gpt2:
        return [change, {"rotary_base": 10010.0 if is_fp32 else 1000.0}]
    return [change, {"gelu": "none"}] if is_fp32 else [change]


def test_another_model_is_noticed(comparison: Comparison) -> None:
    for change in other_models(comparison):
        other = comparison.trajectory(shape=replace(comparison.recording.shape, **change))
        gradients = comparison.split(other.steps[1].gradients)
        assert list(errors_of_gradients(comparison, gradients)), change
        weights = comparison.split(other.masters[STEPS])
        assert list(errors_of_weights(comparison, weights)), change


@dataclass
class Adam:
    """A part's moments in fp64, to say how far weights may be from those of another gradient.

    With weights w and z that each add up to 1, over the steps so far,
        m = sum of w g,    s = sqrt(sum of z g^2),    u = m / (s + epsilon),
    and the weight changes by the learning rate times u. By the inequality of Cauchy and Schwarz |u|
    is at most R = sqrt(sum of w^2 / z). If no gradient is off by more than d, then m is off by at
    most d, and so is s, a norm; then
        |u' - u| <= |m' - m| / (s' + epsilon) + |u| |s' - s| / (s' + epsilon)
                 <= d (1 + |u|) / (max(s - d, 0) + epsilon),
    and never more than 2 R. Where gradients are hardly above their errors that says nothing, and
    there is nothing to say: Adam makes the same of +1e-9 and of -1e-9, but for the sign.
    """

    beta1: float
    beta2: float
    epsilon: float
    m: Tensor
    v: Tensor
    off: Tensor  # the largest d so far
    weights: list[tuple[float, float]]  # of each step so far, neither of them divided by its sum

    def accept(self, gradient: Tensor, off: Tensor) -> None:
        self.m = self.beta1 * self.m + (1 - self.beta1) * gradient
        self.v = self.beta2 * self.v + (1 - self.beta2) * gradient.square()
        self.off = torch.maximum(self.off, off)
        self.weights = [(w * self.beta1, z * self.beta2) for w, z in self.weights]
        self.weights.append((1 - self.beta1, 1 - self.beta2))

    def most(self) -> float:
        """R."""
        of_w, of_z = (sum(column) for column in zip(*self.weights))
        return math.sqrt(sum((w / of_w) ** 2 / (z / of_z) for w, z in self.weights))

    def difference(self) -> Tensor:
        """The bound on |u' - u|."""
        of_w, of_z = (sum(column) for column in zip(*self.weights))
        s = (self.v / of_z).sqrt()
        u = self.m / of_w / (s + self.epsilon)
        least = (s - self.off).clamp(min=0) + self.epsilon
        return torch.clamp(self.off * (1 + u.abs()) / least, max=2 * self.most())


def rounding(c: Comparison, step: int, before: Tensor, after: Tensor, most: float) -> Tensor:
    """What a step in fp32 may add to the error of a weight.

    The gradient is clipped: 2 roundings of each element, one of them of the factor. Within 3 steps
    an element then goes through at most 6 in the momentum and 2 in its correction; in the variance,
    squared, through 4 + 7 and 2, which its root halves and adds 1 to; and through 1 each in adding
    epsilon, in dividing, in adding the decay and in multiplying by the learning rate: 22, relative
    to R at most, and 3 for the decay. The sum is rounded to the weight. 24 and 4 leave room for the
    products of roundings.
    """
    training = c.recording.training
    decay = training.weight_decay_of_matrices * before.abs()
    return UNIT * (training.rate_of(step) * (24 * most + 4 * decay) + after.abs())


def start(c: Comparison) -> dict[str, Adam]:
    training = c.recording.training
    zeros = {part: torch.zeros_like(w) for part, w in c.recorded(c.recording.weight).items()}
    settings = (training.beta1, training.beta2, training.epsilon)
    return {part: Adam(*settings, zero, zero, zero, []) for part, zero in zeros.items()}


def errors_of_optimizer(c: Comparison) -> Iterator[str]:
    """What is wrong with the steps of the program's optimizer, given the program's gradients."""
    recording = c.recording
    run = Run(recording, compute=EXACT, master=EXACT)
    before = c.recorded(recording.weight)
    allowed = {part: torch.zeros_like(weight) for part, weight in before.items()}
    adams = start(c)
    for step in range(1, STEPS + 1):
        factor = recording.training.clip_coefficient(recording.norm(step))
        gradients = {n: factor * recording.gradient(step, n).to(EXACT) for n in recording.names}
        run.apply(step, gradients)
        exact = c.split({name: weight.detach() for name, weight in run.masters.items()})
        masters = c.recorded(functools.partial(recording.master, step))
        for part, gradient in c.split(gradients).items():
            adams[part].accept(gradient, torch.zeros_like(gradient))
            allowed[part] += rounding(c, step, before[part], exact[part], adams[part].most())
            over = (masters[part] - exact[part]).abs() / allowed[part]
            if not largest(over) <= 1:
                yield f"step {step}, {part}: {largest(over):.2f} times what is allowed"
        before = exact


def test_every_element_of_the_optimizer_s_steps(comparison: Comparison) -> None:
    assert list(errors_of_optimizer(comparison)) == []


def test_another_optimizer_is_noticed(comparison: Comparison) -> None:
    right = comparison.recording.training
    changes: list[dict[str, Any]] = [
        {"beta1": 0.9001},
        {"beta2": 0.9501},
        {"epsilon": 1.1e-8},
        {"weight_decay_of_matrices": 0.0999},
        {"warm_up_steps": 3},
        {"clip_norm": 0.0},
    ]
    try:
        for change in changes:
            comparison.recording.training = replace(right, **change)
            assert list(errors_of_optimizer(comparison)), change
    finally:
        comparison.recording.training = right


def errors_of_weights(c: Comparison, weights: Values) -> Iterator[str]:
    """What is wrong with those after all steps, each trainer with its own gradients."""
    adams = start(c)
    before = c.recorded(c.recording.weight)
    allowed = {part: torch.zeros_like(weight) for part, weight in before.items()}
    for step in range(1, STEPS + 1):
        exact = c.clipped(c.truth.steps[step])
        controls = [c.clipped(control.steps[step]) for control in c.controls]
        after = c.split(c.truth.masters[step])
        rate = c.recording.training.rate_of(step)
        for part, gradient in exact.items():
            of_controls = [control[part] - gradient for control in controls]
            off = ALLOWED * max(largest(error) for error in of_controls)
            adams[part].accept(gradient, torch.where(is_zero(gradient, of_controls), 0.0, off))
            allowed[part] += rate * adams[part].difference()
            allowed[part] += rounding(c, step, before[part], after[part], adams[part].most())
        before = after
    ends = [c.split(control.masters[STEPS]) for control in c.controls]
    for part, weight in weights.items():
        over = largest((weight - before[part]) / allowed[part])
        if not over <= 1:
            yield f"{part}: {over:.2f} times what is allowed"
    # In 16 bits many elements are not so far above their errors that a bound on each tells much;
    # all of them together do. Not those of one part, in which a single sign may be most of it.
    of_controls = [together(end, before) for end in ends]
    errors = together(weights, before)
    yield from beyond("all parts", length, errors, of_controls, ALLOWED_TOGETHER)


def together(values: Values, exact: Values) -> Tensor:
    """All errors, one part after the other."""
    return torch.cat([(values[part] - exact[part]).flatten() for part in exact])


def test_every_element_of_the_weights_after_all_steps(comparison: Comparison) -> None:
    recording = comparison.recording
    masters = comparison.recorded(lambda name: recording.master(STEPS, name))
    assert list(errors_of_weights(comparison, masters)) == []


def test_weights_are_rounded_masters(comparison: Comparison) -> None:
    recording = comparison.recording
    for step in range(1, STEPS + 1):
        for name in recording.names:
            rounded = recording.master(step, name).to(comparison.precision).float()
            assert torch.equal(recording.after(step, name), rounded)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--tensor-parallel", 2, "--tensors: needs --tensor-parallel 1"),
        ("--steps", 1000000, "--tensors: 1000000 steps of"),
        ("--resume", "nowhere", "--tensors: not with --resume"),
    ],
)
def test_what_cannot_be_written_is_refused(
    tmp_path: Path, option: str, value: Any, message: str
) -> None:
    file = tmp_path / "tensors"
    code, messages = train(tmp_path, "gpt2-tiny", {"--tensors": file, option: value})
    assert code == 2
    assert message in messages
    assert not file.exists()
