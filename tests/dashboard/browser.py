"""A browser without a window, driven by the WebDriver protocol: as much of it as the tests of the pages need."""

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
MISSING = "" if BROWSER and DRIVER else "needs Chromium and its chromedriver"
ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,900"),
    "--host-resolver-rules=MAP * ~NOTFOUND",  # the browser finds no host: a page that needs one would say so
)
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""The key under which the protocol names an element."""
PATIENCE = 20


class Browser:
    """One window. `logs` are what its console said since they were last asked for."""

    def __init__(self, log: Path) -> None:
        command = [str(DRIVER), "--port=0", f"--log-path={log}"]
        self._driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._driver.stdout is not None
        lines = iter(self._driver.stdout.readline, "")
        port = next(line.split("port ")[1].strip(" .\n") for line in lines if "successfully" in line)
        self._at = f"http://127.0.0.1:{port}"
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": {"binary": BROWSER, "args": list(ARGUMENTS)},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._at += f"/session/{made['sessionId']}"

    def _ask(self, method: str, path: str, document: dict[str, Any] | None = None) -> Any:
        data = json.dumps(document or {}).encode() if method == "POST" else None
        request = Request(self._at + path, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310 - our own
        with urlopen(request, timeout=PATIENCE * 3) as answer:  # noqa: S310 - as above
            return json.load(answer)["value"]

    def open(self, page: Path, hash_: str = "") -> None:
        """Load a file, as a double click does; never the page that is shown already."""
        self._ask("POST", "/url", {"url": "about:blank"})
        address = page.absolute().as_uri()
        self._ask("POST", "/url", {"url": address + hash_})
        # On a busy machine the driver may answer before the page has replaced the blank one, or has run its scripts.
        self.until("return location.href.startsWith(arguments[0]) && document.readyState === 'complete'", address)

    def run(self, script: str, *values: Any) -> Any:
        """Run a script in the page and return what it returns."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": list(values)})

    def until(self, script: str, *values: Any) -> Any:
        """Wait until a script returns something."""
        end = time.monotonic() + PATIENCE
        while not (found := self.run(script, *values)):
            assert time.monotonic() < end, f"never so: {script}"
            time.sleep(0.05)
        return found

    def type(self, selector: str, text: str) -> None:
        """Type into an element."""
        found = self._ask("POST", "/element", {"using": "css selector", "value": selector})
        self._ask("POST", f"/element/{found[ELEMENT]}/value", {"text": text})

    def click(self, selector: str) -> None:
        """Click on an element."""
        found = self._ask("POST", "/element", {"using": "css selector", "value": selector})
        self._ask("POST", f"/element/{found[ELEMENT]}/click")

    def texts(self, selector: str) -> list[str]:
        """What the matching elements say that are to be seen."""
        seen = "[...document.querySelectorAll(arguments[0])].filter(x => x.checkVisibility())"
        return list(self.run(f"return {seen}.map(x => x.innerText)", selector))

    def logs(self) -> list[str]:
        """The errors and warnings of the console."""
        found = self._ask("POST", "/se/log", {"type": "browser"})
        return [one["message"] for one in found if one["level"] in ("SEVERE", "WARNING")]

    def close(self) -> None:
        """End the browser and its driver."""
        try:
            self._ask("DELETE", "")
        finally:
            self._driver.terminate()
            self._driver.wait(PATIENCE)
            assert self._driver.stdout is not None
            self._driver.stdout.close()
