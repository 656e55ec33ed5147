"""Writes tests/data/greedy.json: what llama.cpp drew, and what exact arithmetic says of it.

    python3 exact_reference.py MODEL.gguf NATIVE.json > ../data/greedy.json

NATIVE.json lists, for each prompt, `prompt`, `prompt_tokens`, the greedy `tokens` of native llama.cpp
and, for each step, its `top` 20 as [id, log-probability]. The model's weights are taken as they are
stored; all else is float32, with no quantised activations and no quantised KV. Needs numpy. Written
apart from the engine, so that the two can disagree.
"""
import json
import struct
import sys

import numpy as np

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 8

    def scalar(self, code):
        value = struct.unpack_from("<" + code, self.data, self.at)[0]
        self.at += struct.calcsize("<" + code)
        return value

    def text(self):
        length = self.scalar("Q")
        self.at += length
        return self.data[self.at - length : self.at].decode("utf8", "replace")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            kind, count = self.scalar("I"), self.scalar("Q")
            return [self.value(kind) for _ in range(count)]
        return self.scalar(SCALARS[kind])


def tensor(data, shape, kind, at):
    """A tensor of type F32, Q4_1 or Q8_0 as float32."""
    count = int(np.prod(shape))
    if kind == 0:
        flat = np.frombuffer(data, np.float32, count, at)
    elif kind == 3:
        blocks = np.frombuffer(data, np.uint8, count // 32 * 20, at).reshape(-1, 20)
        scale = blocks[:, :4].copy().view(np.float16).astype(np.float32)
        nibbles = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], 1)
        flat = nibbles.astype(np.float32) * scale[:, :1] + scale[:, 1:]
    elif kind == 8:
        blocks = np.frombuffer(data, np.uint8, count // 32 * 34, at).reshape(-1, 34)
        scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
        flat = blocks[:, 2:].copy().view(np.int8).astype(np.float32) * scale
    else:
        raise ValueError(f"tensor type {kind}")
    return flat.reshape(shape[::-1])


def load(path):
    data = open(path, "rb").read()
    reader = Reader(data)
    tensors, pairs = reader.scalar("Q"), reader.scalar("Q")
    metadata = {}
    for _ in range(pairs):
        key = reader.text()
        metadata[key] = reader.value(reader.scalar("I"))
    table = []
    for _ in range(tensors):
        name, dimensions = reader.text(), reader.scalar("I")
        shape = [reader.scalar("Q") for _ in range(dimensions)]
        table.append((name, shape, reader.scalar("I"), reader.scalar("Q")))
    base = (reader.at + 31) // 32 * 32
    return metadata, {name: tensor(data, shape, kind, base + at) for name, shape, kind, at in table}


def log_probabilities(metadata, weights, tokens):
    """Of every token after each of `tokens`: shape [tokens, vocabulary]."""
    of = lambda key: metadata["llama." + key]
    heads, kv_heads = of("attention.head_count"), of("attention.head_count_kv")
    size = of("embedding_length") // heads
    positions = np.arange(len(tokens))
    angles = positions[:, None] * of("rope.freq_base") ** (-np.arange(0, size, 2) / size)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    future = np.triu(np.full((len(tokens), len(tokens)), -np.inf), 1)

    def norm(x, weight):
        mean = (x * x).mean(-1, keepdims=True)
        return x / np.sqrt(mean + of("attention.layer_norm_rms_epsilon")) * weight

    def rotate(x):
        out = np.empty_like(x)
        out[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
        out[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
        return out

    x = weights["token_embd.weight"][tokens]
    for layer in range(of("block_count")):
        w = lambda name: weights[f"blk.{layer}.{name}.weight"]
        y = norm(x, w("attn_norm"))
        q, k, v = (
            (y @ w(name).T).reshape(len(tokens), -1, size) for name in ("attn_q", "attn_k", "attn_v")
        )
        q, k = rotate(q), rotate(k)
        mixed = np.empty_like(q)
        for head in range(heads):
            group = head // (heads // kv_heads)
            scores = q[:, head] @ k[:, group].T / np.sqrt(size) + future
            weight = np.exp(scores - scores.max(1, keepdims=True))
            mixed[:, head] = weight / weight.sum(1, keepdims=True) @ v[:, group]
        x = x + mixed.reshape(len(tokens), -1) @ w("attn_output").T
        y = norm(x, w("ffn_norm"))
        gate = y @ w("ffn_gate").T
        x = x + (gate / (1 + np.exp(-gate)) * (y @ w("ffn_up").T)) @ w("ffn_down").T
    logits = norm(x, weights["output_norm.weight"]) @ weights["token_embd.weight"].T
    shifted = (logits - logits.max(1, keepdims=True)).astype(np.float64)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))


def main(model, native):
    metadata, weights = load(model)
    result = []
    for run in json.load(open(native)):
        prompt, tokens = run["prompt_tokens"], run["tokens"]
        rows = log_probabilities(metadata, weights, np.array(prompt + tokens[:-1]))[len(prompt) - 1 :]
        steps = [
            [[i, round(p, 4), round(float(row[i]), 4)] for i, p in step["top"]]
            for step, row in zip(run["steps"], rows)
        ]
        result.append({"prompt": run["prompt"], "promptTokens": prompt, "tokens": tokens, "steps": steps})
    json.dump(result, sys.stdout, separators=(",", ":"))


main(*sys.argv[1:])
