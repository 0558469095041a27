import os

from celery import Celery

app = Celery("standin", broker=os.environ.get("BROKER_URL"))
