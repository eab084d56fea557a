"""A page that is open in a browser, with what tests ask of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Opened:
    """One page: what its console said, and what it asked for beside itself."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @classmethod
    def at(cls, browser: Any, url: str, width: int = 1200, **context: Any) -> Opened:
        """Open the page at a URL."""
        opened = cls(browser.new_page(viewport={"width": width, "height": 900}, **context))
        page = opened.page
        page.on("console", lambda message: opened.complaints.append(message.text))
        page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (opened.complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: request.url == url or opened.requests.append(request.url))
        page.goto(url)
        opened.frame()
        return opened

    def frame(self) -> None:
        """Wait until what is due has been drawn."""
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            self.page.keyboard.press(key)
        self.frame()

    def text(self, selector: str) -> str:
        """The text of the first element."""
        return str(self.page.text_content(selector))

    def value(self, name: str) -> str | None:
        """An attribute of the river."""
        found: str | None = self.page.get_attribute("#river", name)
        return found

    @property
    def view(self) -> tuple[float, float]:
        """The first and the last place in view."""
        found = self.page.evaluate("() => [timelinePage.view.low, timelinePage.view.high]")
        return found[0], found[1]

    def colors(self) -> set[str]:
        """The colours of the river's pixels, without those that are seldom."""
        return set(self.page.evaluate(_COLORS))

    def close(self) -> None:
        """Close it."""
        self.page.close()


_COLORS = """() => {
  const canvas = document.querySelector("#river canvas");
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data;
  const found = new Map();
  for (let at = 0; at < pixels.length; at += 4) {
    if (pixels[at + 3] < 255) continue;
    const color = "#" + [0, 1, 2].map((each) => pixels[at + each].toString(16).padStart(2, "0")).join("");
    found.set(color, (found.get(color) ?? 0) + 1);
  }
  return [...found].filter(([, count]) => count > 8).map(([color]) => color);
}"""
