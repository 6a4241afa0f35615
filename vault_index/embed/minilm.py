"""all-MiniLM-L6-v2 in this process: CTranslate2 in int8, no torch.

The model is sentence-transformers/all-MiniLM-L6-v2 (Apache 2.0): BERT, 6 layers of 12 heads, mean
pooling over the real tokens, then unit length. Against torch in fp32 the vectors have a mean cosine
of 0.998 and rank the evaluation set the same.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import native
from vault_index.errors import ModelError
from vault_index.text.words import FOREIGN_LETTERS, INDEX_STOP_WORDS, SMALL_WORDS

if TYPE_CHECKING:
    import ctranslate2
    import numpy as np
    import tokenizers

NAME = "minilm-l6-v2-int8"
DIMENSION = 384
MAX_TOKENS = 256  # what the model was trained on; the rest of a text is not read
MAX_WORKERS = 8  # texts embedded at once, if there are so many processors
# What tells another language from English: how many words its tokenizer cuts up, less of the commonest
# English words, small words of other languages and letters with accents; of a few plain words nothing is
# said. Of 3,144 English prompts, headings and titles 5 are taken for another language's, of 653 prompts
# in twenty others 16 for English, half of them Spanish of a few words that English has, too.
CUT_UP, FOR_FEW = 1.25, 1.0
SMALL, ACCENTS = 2.0, 3.0
FEW_WORDS = 5
_PLAIN = re.compile(r"(?<![\w./:@#\\-])[^\W\d_]{2,}(?![\w/@#\\])(?![.:-]\w)")

_LAYERS, _HEADS, _EPSILON = 6, 12, 1e-12
_SAFETENSORS_TYPES = {"F32": "float32", "I64": "int64"}


class MiniLM:
    """The built-in embedder, over a folder that `convert` wrote. Loads on first use (0.1 s)."""

    name = NAME
    dimension = DIMENSION

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors float32[len(texts), 384]; the first 256 tokens of each text count."""
        import numpy as np

        id_lists = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]

        def embed(ids: list[int]) -> np.ndarray:
            output = self._encoder.forward_batch([ids])
            mean = np.array(output.last_hidden_state)[0].mean(axis=0)
            vector: np.ndarray = mean / np.linalg.norm(mean)
            return vector

        if len(id_lists) <= 1:
            vectors = list(map(embed, id_lists))
        else:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(_workers()) as pool:
                vectors = list(pool.map(embed, id_lists))
        return np.array(vectors, np.float32).reshape(-1, DIMENSION)

    embed_queries = embed_documents  # the model has one form for both

    def knows(self, text: str) -> bool:
        """Whether a text is English: its tokenizer has most English words whole, and cuts others up."""
        letters = [char for char in text if char.isalpha()]
        accents = sum(not char.isascii() for char in letters) / max(1, len(letters))
        if accents >= FOREIGN_LETTERS:
            return False
        words = [word.lower() for word in _PLAIN.findall(text) if word[1:].islower()]
        small = sum(word in SMALL_WORDS for word in words)
        if not words or (len(words) < FEW_WORDS and not accents and not small):
            return True
        pieces = self._tokenizer.encode_batch(words, add_special_tokens=False)
        cut_up = sum(min(2, len(each.ids)) for each in pieces)
        common = sum(word in INDEX_STOP_WORDS for word in words)
        share = (cut_up + SMALL * small - common - FOR_FEW) / len(words)
        return share + ACCENTS * accents < CUT_UP

    @cached_property
    def _tokenizer(self) -> tokenizers.Tokenizer:
        from tokenizers import Tokenizer

        # its threads wait for each other longer than the words of a prompt take
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        except Exception as error:  # noqa: BLE001  # the Rust binding raises bare Exception
            raise _damaged(self.folder, error) from None
        tokenizer.enable_truncation(MAX_TOKENS)
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _encoder(self) -> ctranslate2.Encoder:
        try:  # the compiled module: the package around it loads asyncio and more
            ctranslate2: Any = native.load("ctranslate2", "_ext")
        except ImportError:  # a release that is arranged otherwise
            ctranslate2 = importlib.import_module("ctranslate2")
        try:
            # Each text by itself, on one thread. In a batch one text in a hundred gets a vector that
            # is a little different with each company, so that an index would depend on its history;
            # and it is slower: 80 against 144 texts a second, 8 against 1.5 ms for a query.
            return ctranslate2.Encoder(
                str(self.folder), compute_type="int8", intra_threads=1, inter_threads=_workers()
            )
        except (RuntimeError, ValueError) as error:
            raise _damaged(self.folder, error) from None


def _workers() -> int:
    if sys.platform == "linux":
        return min(MAX_WORKERS, len(os.sched_getaffinity(0)))
    return min(MAX_WORKERS, os.cpu_count() or 1)


def _damaged(folder: Path, error: Exception) -> ModelError:
    return ModelError(
        f"the model in {folder} does not load: {error}",
        "run `lessons model remove` and `lessons model fetch`",
    )


def convert(safetensors: Path, tokenizer: Path, target: Path) -> None:
    """Write the CTranslate2 form (int8, 23 MB) of the model's weights to an existing folder.

    Only the weights' names and shapes of this one model are known here. Method: CTranslate2's own
    BERT converter, without the torch it needs to read the weights.
    """
    import numpy as np
    from ctranslate2.specs import common_spec, transformer_spec

    weights = _read_safetensors(safetensors)
    encoder = transformer_spec.TransformerEncoderSpec(
        _LAYERS,
        _HEADS,
        pre_norm=False,
        activation=common_spec.Activation.GELU,
        layernorm_embedding=True,
        num_source_embeddings=2,
        embeddings_merge=common_spec.EmbeddingsMerge.ADD,
    )
    encoder.scale_embeddings = False

    def fill(spec: Any, name: str) -> None:
        is_norm = hasattr(spec, "gamma")
        setattr(spec, "gamma" if is_norm else "weight", weights[f"{name}.weight"])
        setattr(spec, "beta" if is_norm else "bias", weights[f"{name}.bias"])

    encoder.embeddings[0].weight = weights["embeddings.word_embeddings.weight"]
    encoder.embeddings[1].weight = weights["embeddings.token_type_embeddings.weight"]
    encoder.position_encodings.encodings = weights["embeddings.position_embeddings.weight"]
    fill(encoder.layernorm_embedding, "embeddings.LayerNorm")
    for number, layer in enumerate(encoder.layer):
        name = f"encoder.layer.{number}"
        fused = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        attention = layer.self_attention
        attention.linear[0].weight = np.concatenate([weights[f"{part}.weight"] for part in fused])
        attention.linear[0].bias = np.concatenate([weights[f"{part}.bias"] for part in fused])
        fill(attention.linear[1], f"{name}.attention.output.dense")
        fill(attention.layer_norm, f"{name}.attention.output.LayerNorm")
        fill(layer.ffn.linear_0, f"{name}.intermediate.dense")
        fill(layer.ffn.linear_1, f"{name}.output.dense")
        fill(layer.ffn.layer_norm, f"{name}.output.LayerNorm")
    spec = transformer_spec.TransformerEncoderModelSpec(encoder)
    vocabulary: dict[str, int] = json.loads(tokenizer.read_text("utf-8"))["model"]["vocab"]
    spec.register_vocabulary(sorted(vocabulary, key=lambda token: vocabulary[token]))
    spec.config.unk_token = "[UNK]"
    spec.config.layer_norm_epsilon = _EPSILON
    spec.validate()
    spec.optimize("int8")
    spec.save(str(target))


def _read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Read the tensors of a safetensors file: u64 header length, JSON header, raw arrays."""
    import numpy as np

    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    tensors: dict[str, np.ndarray] = {}
    for name, entry in header.items():
        if name != "__metadata__":
            start, end = (8 + length + offset for offset in entry["data_offsets"])
            kind = _SAFETENSORS_TYPES[entry["dtype"]]
            array = np.frombuffer(data[start:end], kind).reshape(entry["shape"])
            tensors[name] = array.copy()  # quantising writes into it
    return tensors
