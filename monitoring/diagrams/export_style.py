"""The style sheet inside exported pictures: the console's shapes, in colours for white paper."""

EXPORT_STYLE = """
text { font-family: Helvetica, Arial, sans-serif; fill: #17202b }
.step text { font-size: 13px; font-weight: 600 }
.move text { font-size: 10.5px; paint-order: stroke; stroke: #fff; stroke-width: 3px }
path, polygon, polyline { fill: none; stroke: #5a6675; stroke-width: 1.3 }
.step > path { fill: #fff } .step > path.rim { fill: none } .move > polygon { fill: #5a6675 }
.step.is-done > path:first-of-type { fill: #e8ecf1; stroke: #44505f }
.step.is-waiting > path:first-of-type { fill: #e2f4f2; stroke: #0b7a75; stroke-width: 2.6 }
.step.is-retrying > path:first-of-type { fill: #fdf1dd; stroke: #a85b00; stroke-width: 2.6 }
.step.is-failed > path:first-of-type { fill: #fdebec; stroke: #c2182b; stroke-width: 2.6 }
.move.is-done > path { stroke: #17202b; stroke-width: 2.4 } .move.is-off > path { stroke-dasharray: 4 3 }
.move > path.clock { stroke-width: 1.6; stroke-dasharray: none }
.mark, .badge[data-len="0"] { display: none }
.badge rect { fill: #44505f; width: 22px; x: -11px } .badge.bad rect { fill: #c2182b }
.badge[data-len="3"] rect { width: 30px; x: -15px }
.badge[data-len="4"] rect, .badge[data-len="5"] rect { width: 40px; x: -20px }
.badge text { fill: #fff; font-size: 11px }
.step > .detail { font-size: 11px; font-weight: 400; fill: #44505f }
.step > path.glyph { fill: none; stroke: #44505f; stroke-width: 1.6 }
.gate path { fill: #fff } .gate path.glyph { fill: none; stroke: #17202b; stroke-width: 2 }
.end circle { fill: #fff; stroke: #5a6675; stroke-width: 1.3 }
.end.of-start circle, .end.of-end circle:last-of-type { fill: #44505f; stroke: none }
.move.is-error > path, .move.is-error > path.clock { stroke: #c2182b }
.move.is-error > polygon { fill: #c2182b; stroke: #c2182b } .move.is-error > text { fill: #c2182b }
.move.is-error > path:first-of-type { stroke-dasharray: 7 3 }
.step.is-running > path:first-of-type { fill: #e5eefd; stroke: #1f5fd6; stroke-width: 2.6 }
.step.is-handled > path:first-of-type { stroke: #c2182b; stroke-width: 2 }
.step.is-not_taken > path, .step.is-skipped > path, .step.is-idle > path { stroke-dasharray: 4 3 }
.step.is-cancelled > text { text-decoration: line-through }
.bar { display: none } .bar.is-shown { display: inline } .bar .track { fill: #d9dee6 } .bar .part { fill: #44505f }
.bar .lost { fill: #c2182b }
.badge.note rect { fill: #fff; stroke: #44505f } .badge.note text { fill: #17202b } .badge.lost rect { fill: #c2182b }
"""
