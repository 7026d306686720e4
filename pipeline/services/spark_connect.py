"""A Spark Connect server on the master of `TRENDS_SPARK`: `python -m pipeline.services.spark_connect --port 15002`."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace

from pipeline.config import Config
from pipeline.errors import TrendsError
from pipeline.spark import CONNECT_PORT, LOOPBACK, connect_server


def main() -> int:
    """Become the server; returns an exit code where that is impossible."""
    parser = argparse.ArgumentParser(description="A Spark Connect server with the settings of TRENDS_SPARK.")
    parser.add_argument("--host", default=LOOPBACK, help=f"the address to listen on (default: {LOOPBACK})")
    parser.add_argument("--port", type=int, default=CONNECT_PORT, help=f"default: {CONNECT_PORT}")
    parser.add_argument("--ui-port", type=int, help="of Spark's pages, which are off without it")
    options = parser.parse_args()
    try:
        config = Config.from_environment()
        if options.ui_port:
            pages = {"spark.ui.enabled": "true", "spark.ui.port": str(options.ui_port), "spark.ui.killEnabled": "false"}
            config = replace(config, spark_conf={**pages, **config.spark_conf})
        command, environment = connect_server(config, options.port, options.host)
    except TrendsError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    os.execvpe(command[0], command, environment)


if __name__ == "__main__":
    sys.exit(main())
