"""Writes a GGUF of 160 KB with random weights: a token costs a tenth of a millisecond and means nothing."""

import sys
from pathlib import Path

import gguf
import numpy

LAYERS, HEADS, WIDTH, INNER, CONTEXT = 2, 2, 32, 64, 32768
WORDS = "a and as at be but by for from gate have in is it not of on or that the to was with".split()
SPECIAL = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
# One token, so that a logit bias for it starts a tool call.
TOOL_CALL = "<tool_call>\n"
# Every byte is a token, so that any prompt can be written.
UNLIKELY = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), TOOL_CALL]
TOKENS = [*UNLIKELY, *(f"▁{word}" for word in WORDS)]


def type_of(token):
    if token == "<unk>":
        return gguf.TokenType.UNKNOWN
    if token in SPECIAL:
        return gguf.TokenType.CONTROL
    if token == TOOL_CALL:
        return gguf.TokenType.USER_DEFINED
    return gguf.TokenType.BYTE if token.startswith("<0x") else gguf.TokenType.NORMAL


def add_metadata(writer):
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(TOKENS)
    writer.add_token_scores([-float(n) for n in range(len(TOKENS))])
    writer.add_token_types([int(type_of(token)) for token in TOKENS])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(4)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    writer.add_chat_template((Path(__file__).parent / "chat-template.jinja").read_text())


def add_weights(writer):
    random = numpy.random.default_rng(14)

    def add(name, rows, columns, scale=1.0):
        weights = random.standard_normal((rows, columns)) * scale / columns**0.5
        writer.add_tensor(f"{name}.weight", weights.astype(numpy.float32))

    def add_norm(name):
        writer.add_tensor(f"{name}.weight", numpy.ones(WIDTH, numpy.float32))

    add("token_embd", len(TOKENS), WIDTH, 4)
    # The end is never the likeliest: a text goes on, in words, up to its limit.
    output = random.standard_normal((len(TOKENS), WIDTH)) * 8 / WIDTH**0.5
    output[: len(UNLIKELY)] = 0
    writer.add_tensor("output.weight", output.astype(numpy.float32))
    add_norm("output_norm")
    for n in range(LAYERS):
        for name in ["attn_q", "attn_k", "attn_v", "attn_output"]:
            add(f"blk.{n}.{name}", WIDTH, WIDTH)
        add(f"blk.{n}.ffn_gate", INNER, WIDTH)
        add(f"blk.{n}.ffn_up", INNER, WIDTH)
        add(f"blk.{n}.ffn_down", WIDTH, INNER)
        add_norm(f"blk.{n}.attn_norm")
        add_norm(f"blk.{n}.ffn_norm")


def write_model(path):
    writer = gguf.GGUFWriter(path, "llama")
    add_metadata(writer)
    add_weights(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write_model(sys.argv[1])
