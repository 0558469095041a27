import os

import psycopg


def application(environ, start_response):
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        if environ["REQUEST_METHOD"] == "POST":
            connection.execute("INSERT INTO answer VALUES ('given')")
        count = connection.execute("SELECT count(*) FROM answer").fetchone()[0]
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(count).encode()]
