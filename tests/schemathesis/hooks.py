"""Keeps the session that all operations are sent with, and names keys, backends and running requests that exist."""

import datetime
import itertools
import os

import schemathesis
from schemathesis import GenerationMode

own_session = os.environ["SESSION_ID"]
spare_keys = itertools.cycle(os.environ["SPARE_KEY_IDS"].split())
spare_tokens = itertools.cycle(os.environ["SPARE_TOKEN_IDS"].split())
spare_teams = itertools.cycle(os.environ["SPARE_TEAM_IDS"].split())
spare_users = itertools.cycle(os.environ["SPARE_USER_IDS"].split())
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
    body = case.body if isinstance(case.body, dict) else {}
    if case.meta and case.meta.generation.mode == GenerationMode.POSITIVE:
        for fields in (body, body.get("defaults") or {}):
            if fields.get("allowed_models"):
                # A pattern that allows * at the end only would slow the generator.
                fields["allowed_models"] = [name.replace("*", "x") for name in fields["allowed_models"]]
            if fields.get("team_id"):
                # It is the id of no team.
                fields["team_id"] = None
    if isinstance(body.get("tags"), list):
        # White space around a text does not make it too long.
        body["tags"] = [tag.replace(" ", "0") if isinstance(tag, str) and tag.strip() else tag for tag in body["tags"]]
    if not case.path_parameters or (case.method == "GET" and not path.startswith(("/api/teams/", "/api/users/"))):
        return
    value = str(case.path_parameters.get("id"))
    if path.startswith("/api/keys/") and value.isdecimal():
        case.path_parameters["id"] = next(spare_keys)
    elif path.startswith("/api/tokens/") and case.meta and case.meta.generation.mode == GenerationMode.POSITIVE:
        case.path_parameters["id"] = next(spare_tokens)
    elif path.startswith("/api/teams/") and case.meta and case.meta.generation.mode == GenerationMode.POSITIVE:
        case.path_parameters["id"] = next(spare_teams)
    elif path.startswith("/api/users/") and case.meta and case.meta.generation.mode == GenerationMode.POSITIVE:
        case.path_parameters["id"] = next(spare_users)
    elif path.startswith("/api/in-flight/") and case.meta and case.meta.generation.mode == GenerationMode.POSITIVE:
        case.path_parameters["id"] = next(running)
    elif path.startswith("/api/backends/") and case.meta and case.meta.generation.mode == GenerationMode.POSITIVE:
        case.path_parameters["name"] = os.environ["BACKEND"]
    elif value == own_session:
        case.path_parameters["id"] = "0" * len(value)
