"""Keeps the session that all operations are sent with, and names keys and running requests that exist."""

import itertools
import os

import schemathesis
from schemathesis import GenerationMode

own_session = os.environ["SESSION_ID"]
spare_keys = itertools.cycle(os.environ["SPARE_KEY_IDS"].split())
running = itertools.cycle(os.environ["RUNNING_IDS"].split())


@schemathesis.hook
def before_call(context, case, kwargs):
    path = case.operation.path
    if case.method == "GET" or not case.path_parameters:
        return
    value = str(case.path_parameters.get("id"))
    if path.startswith("/api/keys/") and value.isdecimal():
        case.path_parameters["id"] = next(spare_keys)
    elif path.startswith("/api/in-flight/") and case.meta and case.meta.generation.mode == GenerationMode.POSITIVE:
        case.path_parameters["id"] = next(running)
    elif value == own_session:
        case.path_parameters["id"] = "0" * len(value)
