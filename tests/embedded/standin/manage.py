"""A small application in the place of the real one: the launcher's tests are about processes."""

import json
import os
import sys

import psycopg

with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
    match sys.argv[1:]:
        case ["migrate", "--no-input"]:
            connection.execute("CREATE TABLE IF NOT EXISTS answer (text text)")
        case ["luria_setup"]:
            address = os.environ["PUBLIC_URL"]
            sys.stdout.write(json.dumps({"survey_url": f"{address}/s/1", "login_url": f"{address}/login/once"}) + "\n")
        case ["demo"]:
            connection.execute("INSERT INTO answer VALUES ('simulated')")
            sys.stdout.write("demo filled\n")
        case other:
            sys.exit(f"unknown command {other}")
