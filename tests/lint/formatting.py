"""How CSS and JavaScript are laid out."""

import cssbeautifier
import jsbeautifier

WIDTH = 120


def formatted(text: str, suffix: str) -> str:
    """The text as it should be; `suffix` is ".css" or ".js"."""
    if suffix == ".css":
        return str(cssbeautifier.beautify(text, _css_options()))
    return str(jsbeautifier.beautify(text, _js_options()))


def _css_options() -> "cssbeautifier.BeautifierOptions":
    options = cssbeautifier.default_options()
    options.indent_size = 2
    options.end_with_newline = True
    options.space_around_combinator = True
    return options


def _js_options() -> "jsbeautifier.BeautifierOptions":
    options = jsbeautifier.default_options()
    options.indent_size = 2
    options.end_with_newline = True
    options.wrap_line_length = WIDTH
    options.brace_style = "collapse,preserve-inline"
    options.space_after_anon_function = True
    options.operator_position = "before-newline"
    options.max_preserve_newlines = 2
    return options
