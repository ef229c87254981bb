"""A board of cells on the screen, in which the hand draws; and what is under each place of it."""

from __future__ import annotations

from typing import Any

from shapely.geometry import Polygon, box

Place = tuple[float, float]
CELL, COLUMNS, ROWS = 100, 8, 4  # in pixels of the screen


class Board:
    """Cells on the screen; a place is ``(column, row, x, y)``, x and y of 0 to 100 in the cell."""

    def __init__(self, viewer: Any, scale: float) -> None:
        self.viewer, self.scale = viewer, scale
        self.page, self.mouse, self.keyboard = viewer.page, viewer.page.mouse, viewer.page.keyboard
        room = self.page.locator("[data-map]").bounding_box()
        self.middle = (room["x"] + room["width"] / 2, room["y"] + room["height"] / 2)
        # OpenLayers' map has whole pixels, whatever room the page leaves it
        self.stretch = (
            round(room["width"]) / room["width"],
            round(room["height"]) / room["height"],
        )
        self.left = round(self.middle[0] - CELL * COLUMNS / 2)
        self.top = round(self.middle[1] - CELL * ROWS / 2)

    def screen(self, at: tuple[float, ...]) -> Place:
        column, row, x, y = at
        return self.left + CELL * column + x, self.top + CELL * row + y

    def canvas(self, at: tuple[float, ...]) -> Place:
        """The level-0 pixel under a place."""
        x, y = self.screen(at)
        canvas = self.viewer.canvas
        return (
            canvas.width_px / 2 + (x - self.middle[0]) * self.scale * self.stretch[0],
            canvas.height_px / 2 + (y - self.middle[1]) * self.scale * self.stretch[1],
        )

    def ring(self, *places: tuple[float, ...]) -> Polygon:
        return Polygon([self.canvas(at) for at in places])

    def box(self, cell: Place, left: float, top: float, right: float, bottom: float) -> Polygon:
        return box(*self.canvas((*cell, left, top)), *self.canvas((*cell, right, bottom)))

    def drag(self, *places: tuple[float, ...]) -> None:
        self.mouse.move(*self.screen(places[0]))
        self.mouse.down()
        for at in places[1:]:
            self.mouse.move(*self.screen(at), steps=4)
        self.mouse.up()

    def click(self, *places: tuple[float, ...], held: str = "") -> None:
        if held:
            self.keyboard.down(held)
        for at in places:
            self.mouse.click(*self.screen(at))
        if held:
            self.keyboard.up(held)

    def key(self, *names: str) -> None:
        for name in names:
            self.keyboard.press(name)

    def rectangle(self, cell: Place, left: float, top: float, right: float, bottom: float) -> None:
        self.key("r")
        self.drag((*cell, left, top), (*cell, right, bottom))

    def polygon(self, *places: tuple[float, ...]) -> None:
        self.key("p")
        self.click(*places)
        self.key("Enter")

    def stored(self) -> list[Any]:
        self.viewer.wait_saved()
        return list(self.viewer.stored())

    def by_cell(self) -> dict[Place, list[Any]]:
        """Stored ROIs by the cell of their middle."""
        handles: dict[Place, list[Any]] = {}
        left, top = self.canvas((0, 0, 0, 0))
        side = CELL * self.scale
        for roi in self.stored():
            x, y = (roi.left + roi.right) / 2, (roi.top + roi.bottom) / 2
            handles.setdefault((int((x - left) // side), int((y - top) // side)), []).append(roi)
        return handles
