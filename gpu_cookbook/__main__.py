"""The command gpu-cookbook. Ctrl-C ends it without a traceback even while its modules are imported, for 0.3 s."""

import sys


def main() -> None:
    try:
        from gpu_cookbook.cli import app

        app(prog_name="gpu-cookbook")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
