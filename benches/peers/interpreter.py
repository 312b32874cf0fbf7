"""A Python with the packages that a benchmark needs."""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path.home() / ".cache" / "deltaic-peers"


def python(modules):
    """An interpreter with these modules: this one, or one in an environment made for it."""
    imports = "import " + ", ".join(modules)
    venv = pathlib.Path(os.environ.get("PEERS_VENV", CACHE / "venv"))
    own = venv / "bin" / "python"
    for candidate in (sys.executable, own):
        if pathlib.Path(candidate).exists() and subprocess.run([candidate, "-c", imports], stderr=subprocess.DEVNULL).returncode == 0:
            return str(candidate)
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    install = [str(own), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(HERE / "requirements.txt")]
    subprocess.run(install, check=True)
    return str(own)


def use(modules):
    """Goes on in such a Python."""
    found = python(modules)
    if found != sys.executable:
        os.execv(found, [found, *sys.argv])
