from gpu_cookbook.cli import app

app(prog_name="gpu-cookbook")
