"""First on PYTHONPATH, this makes an interpreter one without torch: it is neither found nor importable."""

import importlib.metadata
import sys

ABSENT = ("torch", "torchvision", "intel_extension_for_pytorch", "intel-extension-for-pytorch")
_version = importlib.metadata.version


def version(name):
    if name in ABSENT:
        raise importlib.metadata.PackageNotFoundError(name)
    return _version(name)


class NoTorch:
    """Refuses what is absent before any other finder is asked."""

    @staticmethod
    def find_spec(name, *_):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


importlib.metadata.version = version
sys.meta_path.insert(0, NoTorch)
