"""The one palette of all pictures, from the colours of Okabe and Ito that colour-blind readers can tell apart.

No meaning hangs on colour alone: observed nodes also have a thick border and, where a state is known, its name.
"""

from typing import Final

INK: Final = "#1A1A1A"
EDGE: Final = "#4D4D4D"
BACKGROUND: Final = "#FFFFFF"
NODE_FILL: Final = "#EAF3FA"
NODE_BORDER: Final = "#0072B2"
OBSERVED_FILL: Final = "#FBE3AE"
OBSERVED_BORDER: Final = "#B26F00"
FACTOR_FILL: Final = "#4D4D4D"
SEPARATOR_FILL: Final = "#F2F2F2"
BAR: Final = "#56B4E9"
BAR_OBSERVED: Final = "#E69F00"
BAR_TRACK: Final = "#FFFFFF"
HIGHLIGHTS: Final = ("#D55E00", "#009E73", "#CC79A7", "#E69F00", "#0072B2")

FONT_SIZE: Final = 10.0
SMALL_FONT_SIZE: Final = 8.0
