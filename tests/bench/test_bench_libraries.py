"""What is recorded of libraries: digests of content."""

from pathlib import Path

from ipexperf.bench.machine import libraries


def test_libraries_that_variables_or_the_system_put_first_have_digests(tmp_path: Path) -> None:
    """Those of the packages have none here: the inventory describes packages."""
    for name in ("libslow.so", "libmkl_core.so.2", "libevery.so", "libtorch.so"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "libgomp.so.1").write_text("gomp")
    everywhere = tmp_path / "ld.so.preload"
    everywhere.write_text(f"{tmp_path}/libevery.so\n")
    files = ["libslow.so", "libmkl_core.so.2", "libevery.so", "libtorch.so", "path/libgomp.so.1"]
    maps = "\n".join(f"7f00-7f01 r-xp 00000000 fe:01 12   {tmp_path}/{file}" for file in files * 2)
    variables = {"LD_PRELOAD": f"{tmp_path}/libslow.so:libc.so", "LD_LIBRARY_PATH": f":{tmp_path}/path/:/nowhere"}
    found = libraries.preloaded(maps, variables, everywhere)
    assert list(found) == ["libevery.so", "libslow.so", "libgomp.so.1"]
    assert len(set(found.values())) == 3
    assert libraries.preloaded(maps, {}, tmp_path / "none") == {}


def test_a_preloaded_library_with_another_content_has_another_digest(tmp_path: Path) -> None:
    library = tmp_path / "libfast.so"
    digests = []
    for content in ("one", "two"):
        library.write_text(content)
        libraries._digest.cache_clear()  # a process that loaded it keeps what it loaded
        maps = f"7f00-7f01 r-xp 00000000 fe:01 12 {library}"
        digests.append(libraries.preloaded(maps, {"LD_PRELOAD": str(library)}, tmp_path / "none")["libfast.so"])
    assert digests[0] != digests[1]
