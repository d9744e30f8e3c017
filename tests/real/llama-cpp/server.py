"""Starts llama.cpp's own server twice, for text and for embeddings, until standard input closes. Prints their addresses."""

import os
import sys
import tempfile
from pathlib import Path

import xllamacpp
from model import write_model


def start(model, embedding):
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {"tiny"}
    params.port = 0
    params.n_ctx = 65536
    params.n_parallel = 2
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.endpoint_metrics = True
    params.use_jinja = True
    params.warmup = False
    # With a cache, /metrics and `input_tokens` of messages would leave out what was cached.
    params.cache_prompt = False
    params.embedding = embedding
    if embedding:
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    return xllamacpp.Server(params)


with tempfile.TemporaryDirectory() as folder:
    model = str(Path(folder) / "tiny.gguf")
    write_model(model)
    # Named, because a server stops when it is collected.
    text, embeddings = start(model, False), start(model, True)
    # In one piece, because the servers' own log goes there too.
    os.write(1, f"\nlistening {text.listening_address} {embeddings.listening_address}\n".encode())
    sys.stdin.read()
