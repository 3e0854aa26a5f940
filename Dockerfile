# The operator. The build context is the repository.
ARG BASE=docker.io/library/python:3.11-slim-bookworm
ARG UV=ghcr.io/astral-sh/uv:0.13.9
FROM $UV AS uv

FROM $BASE AS build
COPY --from=uv /uv /usr/local/bin/uv
# uv trusts the image's certificates; it neither fetches another Python nor links into its cache.
ENV UV_NATIVE_TLS=1 \
    UV_PYTHON_DOWNLOADS=never \
    UV_LINK_MODE=copy \
    UV_COMPILE_BYTECODE=1 \
    UV_NO_CACHE=1 \
    UV_PROJECT_ENVIRONMENT=/opt/venv
WORKDIR /src
COPY . .
RUN uv sync --frozen --no-dev --no-editable --no-progress --quiet --python python3.11

FROM $BASE
RUN grep -q '^[^:]*:[^:]*:1000:' /etc/passwd || echo 'sglang:x:1000:1000::/:/bin/sh' >>/etc/passwd
COPY --from=build /opt/venv /opt/venv
# Nothing is written: the root file system may be read-only.
ENV PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 1000:1000
ENTRYPOINT ["sglang-operator"]
CMD ["run"]
