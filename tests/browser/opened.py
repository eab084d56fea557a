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
    def at(cls, window: Window, url: str, width: int = 1200, **media: str) -> Opened:
        """Open the page at a URL, in the place of the one before; ``media`` is what its reader prefers."""
        page = window.page
        opened = cls(page)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(**{"color_scheme": "light", "reduced_motion": "no-preference", **media})
        page.mouse.move(0, 0)
        window.shows(opened, url)
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


class Window:
    """A window of a browser, in which one page after the other is opened: a new one takes half a second."""

    def __init__(self, browser: Any) -> None:
        self.page = browser.new_page()
        self._opened, self._url = Opened(self.page), ""
        self.page.on("console", lambda message: self._opened.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self._opened.complaints.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", self._ask)

    def shows(self, opened: Opened, url: str) -> None:
        """From now on what the console says and what is asked for is that of this page."""
        self._opened, self._url = opened, url

    def _dismiss(self, dialog: Any) -> None:
        self._opened.complaints.append(dialog.message)
        dialog.dismiss()

    def _ask(self, request: Any) -> None:
        if request.url != self._url:
            self._opened.requests.append(request.url)


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
