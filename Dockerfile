# One image for the web server and for the worker; docker-compose.yml says which it is.
FROM python:3.13-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    STATIC_ROOT=/srv/static
WORKDIR /srv/luria

# Any value: with PyTorch, for the transformer classifiers.
ARG ML=
COPY requirements.txt requirements-ml.txt constraints.txt ./
RUN pip install --constraint constraints.txt --requirement requirements.txt ${ML:+--requirement requirements-ml.txt}

COPY . .
# Settings want an address and servers; collectstatic uses none of them.
RUN SECRET_KEY=only-while-the-image-is-built-and-in-no-layer PUBLIC_URL=http://localhost \
    DATABASE_URL=postgres://nobody@localhost/none BROKER_URL=redis://localhost \
    python manage.py collectstatic --no-input \
    && useradd --system --create-home luria \
    && install --directory --owner luria /srv/data
USER luria

EXPOSE 8000
CMD ["gunicorn", "config.wsgi", "--bind", "0.0.0.0:8000", "--worker-class", "gthread", \
     "--workers", "2", "--threads", "4", "--reuse-port", "--keep-alive", "15", "--no-control-socket"]
