"""Train the scorer of prompt injections: `python -m benchmarks.train_scorer`.

Reads `benchmarks/injection_texts/` (what each file is, its README says) and writes
`vault_index/check/scorer/weights.json`. Logistic regression on the features of pieces of text; of an
attack of several pieces the one that scores highest counts, the others are left out. Full-batch
gradient steps in a fixed order, so that every run writes the same numbers.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vault_index.check import scorer
from vault_index.check.prompt_injection import as_read, without_reported

TEXTS = Path(__file__).parent / "injection_texts"
WEIGHTS = Path(scorer.__file__).parent / "weights.json"

STEPS = 250
ROUNDS = 3  # each chooses again which piece of an attack counts
DECAY = 2e-5
STEP = 4.0
PUBLIC_WEIGHT = 1.5  # of all public texts together, those of our own being 1
# how far a weight of each kind of feature may go: there are many pairs, and they say less
_SCALE = 1 / 6
_PAIR, _WORD = 0.4, 1.0

Pieces = list[np.ndarray]


@dataclass(frozen=True)
class Texts:
    """Texts as the features of their pieces."""

    attacks: list[Pieces]
    harmless: list[Pieces]
    public: list[Pieces]


@dataclass(frozen=True)
class Model:
    """The weight of each feature, and what is added to their sum."""

    weights: np.ndarray
    bias: float

    def score(self, text: Pieces) -> float:
        """Return the score of the piece that scores highest."""
        return max((float(self.weights[piece].sum()) for piece in text), default=0.0) + self.bias


def pieces(text: str) -> Pieces:
    """Return the features of each piece of a text, without what it only reports."""
    plain_text = as_read(without_reported(text))
    return [
        np.array(sorted(scorer.numbers(piece)), dtype=np.int64)
        for _, piece in scorer.pieces(plain_text)
    ]


def read(name: str) -> list[str]:
    """Read a file of texts: one a line, "\\n" for a new line."""
    lines = (TEXTS / name).read_text("utf-8").split("\n")
    return [line.replace("\\n", "\n") for line in lines if line.strip()]


def load() -> Texts:
    """Read the texts that the shipped weights are trained on."""
    kinds = {
        kind: [text for file in sorted(TEXTS.glob(f"{kind}-*.txt")) for text in read(file.name)]
        for kind in ("attacks", "harmless", "public")
    }
    return Texts(**{kind: [pieces(text) for text in texts] for kind, texts in kinds.items()})


def train(texts: Texts, steps: int = STEPS, rounds: int = ROUNDS) -> Model:
    """Return the model of some texts; a harmless text counts once for each of its pieces."""
    negative = [piece for text in texts.harmless for piece in text]
    public = [piece for text in texts.public for piece in text]
    chosen = [max(text, key=len) for text in texts.attacks if text]
    importance = np.concatenate([
        np.full(len(chosen), len(negative) / max(1, len(chosen))),
        np.ones(len(negative)),
        np.full(len(public), PUBLIC_WEIGHT * len(negative) / max(1, len(public))),
    ])  # fmt: skip
    target = np.concatenate([np.ones(len(chosen)), -np.ones(len(negative) + len(public))])
    model = Model(np.zeros(scorer.COUNT), 0.0)
    for _ in range(rounds):
        model = _fit(chosen + negative + public, target, importance / importance.sum(), steps)
        chosen = [
            text[int(np.argmax([model.weights[piece].sum() for piece in text]))]
            for text in texts.attacks
            if text
        ]
    return model


def _fit(
    rows: Sequence[np.ndarray], target: np.ndarray, importance: np.ndarray, steps: int
) -> Model:
    """Minimise the logistic loss by Nesterov's accelerated gradient."""
    columns = np.concatenate(rows)
    lengths = np.array([len(row) for row in rows])
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    scale = _scales()
    weights = ahead = np.zeros(scorer.COUNT)
    bias = bias_ahead = 0.0
    for step in range(steps):
        sums = np.add.reduceat((ahead * scale)[columns], starts) + bias_ahead
        slope = -target * importance / (1 + np.exp(np.clip(target * sums, -50, 50)))
        gradient = np.bincount(columns, np.repeat(slope, lengths), scorer.COUNT) * scale
        momentum = step / (step + 3)
        last, last_bias = weights, bias
        weights = ahead - STEP * (gradient + DECAY * ahead)
        bias = bias_ahead - STEP * float(slope.sum())
        ahead = weights + momentum * (weights - last)
        bias_ahead = bias + momentum * (bias - last_bias)
    return Model(weights * scale, bias)


def _scales() -> np.ndarray:
    scale = np.full(scorer.COUNT, _SCALE * _WORD)
    scale[: scorer.IDEA_FEATURES] = _SCALE * _PAIR
    scale[: 2 * scorer.MAX_IDEAS] = _SCALE
    return scale


def written(model: Model) -> str:
    """Return `weights.json` for a model: each weight as a whole number from -127 to 127."""
    unit = float(np.abs(model.weights).max()) / 127
    rounded = np.round(model.weights / unit).astype(np.int8)
    packed = base64.b64encode(rounded.tobytes()).decode("ascii")
    return (
        json.dumps({"bias": round(model.bias, 4), "unit": round(unit, 6), "weights": packed}) + "\n"
    )


def main() -> None:
    """Train, and write the weights."""
    model = train(load())
    WEIGHTS.write_text(written(model), "utf-8")


if __name__ == "__main__":
    main()
