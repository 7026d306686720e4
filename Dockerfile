# One image for Airflow's components, Spark's and the commands: all import the same package from the same place.

FROM python:3.11.13-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /opt/trendmill
RUN python -m venv /opt/venv
# Before the code, so that a change of it does not install everything again.
COPY requirements.txt requirements-airflow.txt ./
RUN /opt/venv/bin/pip install --requirement requirements.txt --requirement requirements-airflow.txt
COPY pyproject.toml README.md LICENSE requirements-dev.txt ./
COPY pipeline pipeline
COPY dags dags
# The jars are checked against pinned hashes; Java is the one that the requirements bring.
RUN /opt/venv/bin/pip install --no-deps --editable . && /opt/venv/bin/python -m pipeline.jars

FROM python:3.11.13-slim-bookworm
# Debian keeps one version of a package a release, and replaces it when it is mended: a pinned one would be gone.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home trends \
    && install --directory --owner trends --group trends /data/airflow /data/cache /data/lake /data/site /data/spark
COPY --from=build /opt/venv /opt/venv
COPY --from=build /opt/trendmill /opt/trendmill
COPY expectations /opt/trendmill/expectations
COPY queries /opt/trendmill/queries
ENV PATH=/opt/venv/bin:/opt/venv/lib/python3.11/site-packages/pyspark/bin:$PATH \
    JAVA_HOME=/usr/lib/jvm/java-17 \
    NUMBA_CACHE_DIR=/data/cache \
    PYTHONPATH=/opt/trendmill \
    PYTHONUNBUFFERED=1 \
    SPARK_LOCAL_DIRS=/data/spark
# What a first run would write beside the package, where no run may write.
RUN ln -s /usr/lib/jvm/java-17-openjdk-* /usr/lib/jvm/java-17 \
    && python -c "from pipeline.java import CACHE, find_java; find_java().home(); (CACHE / 'warehouse').mkdir()"
USER 10001
WORKDIR /opt/trendmill
