"""Build the second device: `python build.py FOLDER` makes a library and the entry point by which torch finds it."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).parent
METADATA = "Metadata-Version: 2.1\nName: late\nVersion: 1.0\n"
ENTRY = "[torch.backends]\nlate = late:backend\n"


def build(folder: Path) -> Path:
    """Compile into this folder, and return the library."""
    import torch
    from torch.utils.cpp_extension import include_paths, library_paths

    library = folder / "late_device.so"
    command = [shutil.which(os.environ.get("CXX") or "g++") or "g++", "-shared", "-fPIC", "-std=c++17", "-O1"]
    abi = int(torch.compiled_with_cxx11_abi())
    command += ["-DTORCH_EXTENSION_NAME=late_device", f"-D_GLIBCXX_USE_CXX11_ABI={abi}"]
    command += [f"-I{path}" for path in (*include_paths(), sysconfig.get_path("include"))]
    command += [str(HERE / "late" / "late.cpp"), "-o", str(library)]
    command += [word for path in library_paths() for word in (f"-L{path}", f"-Wl,-rpath,{path}")]
    command += ["-lc10", "-ltorch", "-ltorch_cpu", "-ltorch_python"]
    subprocess.run(command, check=True)
    information = folder / "late-1.0.dist-info"
    information.mkdir(exist_ok=True)
    (information / "METADATA").write_text(METADATA)
    (information / "entry_points.txt").write_text(ENTRY)
    return library


def variables(folder: Path) -> dict[str, str]:
    """Return what lets any Python below find the device that was built into this folder."""
    paths = (str(folder), str(HERE), os.environ.get("PYTHONPATH", ""))
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "LATE_BUILT": str(folder / "late_device.so")}


if __name__ == "__main__":
    build(Path(sys.argv[1]))
