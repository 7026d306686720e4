"""What Airflow needs before its components start: tables, a password, the pool of Spark jobs.

`python -m pipeline.services.prepare` does so with the settings of the environment; again does no harm.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pipeline.services import airflow, secrets_file


def main() -> int:
    """Prepare; returns the exit code of the first command that failed."""
    airflow.write_password(Path(os.environ["AIRFLOW_HOME"]), os.environ[secrets_file.ADMIN_PASSWORD])
    for command in (airflow.migrate(), airflow.make_pool()):
        if code := subprocess.run(command).returncode:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
