"""Keeps the session that all operations are sent with, and names keys, backends and running requests that exist."""

import datetime
import itertools
import os

import schemathesis
from schemathesis import GenerationMode

own_session = os.environ["SESSION_ID"]
spare_keys = itertools.cycle(os.environ["SPARE_KEY_IDS"].split())
running = itertools.cycle(os.environ["RUNNING_IDS"].split())


today = datetime.date.today()


@schemathesis.hook
def before_call(context, case, kwargs):
    path = case.operation.path
    for name, value in (case.query or {}).items():
        # It takes 0000-00-00 for a day, and begins with it.
        if isinstance(value, str) and value.startswith("0000-00-00"):
            day = today if name == "to" else today - datetime.timedelta(days=1)
            case.query[name] = value.replace("0000-00-00", day.isoformat())
    if case.method == "GET" or not case.path_parameters:
        return
    value = str(case.path_parameters.get("id"))
    if path.startswith("/api/keys/") and value.isdecimal():
        case.path_parameters["id"] = next(spare_keys)
    elif path.startswith("/api/in-flight/") and case.meta and case.meta.generation.mode == GenerationMode.POSITIVE:
        case.path_parameters["id"] = next(running)
    elif path.startswith("/api/backends/") and case.meta and case.meta.generation.mode == GenerationMode.POSITIVE:
        case.path_parameters["name"] = os.environ["BACKEND"]
    elif value == own_session:
        case.path_parameters["id"] = "0" * len(value)
