# One image for the web server, the worker, the beat and the migrations; docker-compose.yml says which one it is.
FROM python:3.13-slim AS build
WORKDIR /app
COPY requirements/base.txt requirements/base.txt
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements/base.txt
COPY . .
# The settings want a secret even here; this one ends with the command and signs nothing.
RUN SECRET_KEY=only-for-this-command-and-not-for-any-other STATIC_MANIFEST=true STATIC_ROOT=/app/static-collected \
    /opt/venv/bin/python manage.py collectstatic --no-input --verbosity 0

FROM python:3.13-slim
RUN groupadd --system --gid 10001 inspector \
    && useradd --system --uid 10001 --gid 10001 --home-dir /nonexistent --shell /usr/sbin/nologin inspector \
    && install -d -o inspector -g inspector -m 0700 /var/lib/inspector /var/lib/inspector/uploads
COPY --from=build /opt/venv /opt/venv
COPY --from=build /app /app
WORKDIR /app
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    MALLOC_ARENA_MAX=2 \
    CELERY_SKIP_CHECKS=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    INSPECTOR_STATE_DIR=/var/lib/inspector \
    STATIC_MANIFEST=true \
    STATIC_ROOT=/app/static-collected \
    UPLOAD_TEMP_DIR=/var/lib/inspector/uploads
USER 10001:10001
EXPOSE 8000
CMD ["gunicorn", "inspector.wsgi:application", "--bind=0.0.0.0:8000", "--worker-class=gthread", "--workers=2", \
     "--threads=4", "--timeout=120", "--worker-tmp-dir=/dev/shm", "--no-control-socket", "--config=python:inspector.server"]
