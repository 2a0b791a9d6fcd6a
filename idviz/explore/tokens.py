"""Weights on the text itself, as HTML without scripts: for Streamlit's ``st.html`` and Jupyter's HTML widget."""

from __future__ import annotations

import html

import matplotlib as mpl
import numpy as np

from idviz.explore.base import TokenView
from idviz.figures.style import POSITIVE_MAP, QUERY, SIGNED_MAP, Look
from idviz.words import number

_SPACES = {" ": "·", "\t": "⇥", "\u00a0": "·", "\u3000": "·"}


def token_html(view: TokenView, look: Look = Look()) -> str:
    """The text with a background by weight for each token, its number on hover and focus, and a table of the numbers.

    Signed weights are coloured by RdBu, centred at 0; positive ones by viridis, from 0. A NaN reads ``view.unread``.
    Where the view names a control, the outermost element has it as ``data-control``, for a front end with scripts.
    Raises ``ValueError`` where there is not one weight a token, or the query is not one of the tokens.
    """
    weights = np.asarray(view.weights, dtype=float).ravel()
    if len(weights) != len(view.tokens):
        raise ValueError(f"weights must have one number per token: {len(view.tokens)} tokens, {len(weights)} weights")
    if view.query is not None and not 0 <= view.query < len(weights):
        raise ValueError(f"query must be from 0 to {len(weights) - 1}, not {view.query}")
    backgrounds, texts = _colours(weights, view.signed)
    label = html.escape(view.label, quote=True)
    control = "" if view.control is None else f' data-control="{html.escape(view.control, quote=True)}"'
    spans = [
        _span(token, _shown(weight, view.unread), n, n == view.query, background, text, np.isnan(weight))
        for n, (token, weight, background, text) in enumerate(
            zip(view.tokens, weights, backgrounds, texts, strict=True)
        )
    ]
    rows = "".join(
        f"<tr><td>{n + 1}</td><td>{html.escape(_readable(token))}</td><td>{_shown(weight, view.unread)}</td></tr>"
        for n, (token, weight) in enumerate(zip(view.tokens, weights, strict=True))
    )
    return (
        f'<div class="idviz-tokens"{control} style="color:{look.ink}">{_style(look)}'
        f'<div class="idviz-label">{label}</div>'
        f'<div class="idviz-box"><div class="idviz-hint">Point at a token, or reach it with Tab, for its number.</div>'
        f'<div class="idviz-text" dir="auto" role="group" aria-label="{label}">{"".join(spans)}</div></div>'
        f"{_scale(weights, view.signed)}"
        f"<details><summary>The same numbers as a table</summary>"
        f"<table><thead><tr><th>position</th><th>token</th><th>weight</th></tr></thead><tbody>{rows}</tbody></table>"
        f"</details></div>"
    )


def _colours(weights: np.ndarray, signed: bool) -> tuple[list[str], list[str]]:
    """Background and text colour of each token: no background without a weight (NaN), grey for an infinite one."""
    finite = np.isfinite(weights)
    top = float(np.abs(weights[finite]).max(initial=0.0)) or 1.0
    safe = np.where(finite, weights, 0.0)
    share = 0.5 + 0.5 * safe / top if signed else np.clip(safe / top, 0, 1)
    rgb = mpl.colormaps[SIGNED_MAP if signed else POSITIVE_MAP](share)[:, :3]
    rgb[~finite] = 0.6
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    dark_text = luminance > 0.179  # where black and white have the same contrast (WCAG)
    backgrounds = ["#{:02x}{:02x}{:02x}".format(*(round(255 * part) for part in row)) for row in rgb.tolist()]
    texts = ["#000" if dark else "#fff" for dark in dark_text]
    for n in np.flatnonzero(np.isnan(weights)):
        backgrounds[n], texts[n] = "transparent", "inherit"
    return backgrounds, texts


def _shown(weight: float, unread: str) -> str:
    return html.escape(unread) if np.isnan(weight) else number(weight)


def _span(token: str, weight: str, n: int, query: bool, background: str, text: str, unread: bool) -> str:
    """One token: spaces as a thin mark, a new line as a mark and a break."""
    name = f"{_readable(token)}, token {n + 1}{', the query' if query else ''}: {weight}"
    name = html.escape(name, quote=True)
    body = "".join(_sign(sign) for sign in token)
    after = "<br>" if body.endswith("<br>") else ""  # outside, or the frame would reach into the next line
    body = body.removesuffix("<br>")
    kind = ' class="q"' if query else ' class="u"' if unread else ""
    return (
        f'<span{kind} tabindex="0" role="img" aria-label="{name}" data-w="{name}" '
        f'style="background:{background};color:{text}">{body}</span>{after}'
    )


def _sign(sign: str) -> str:
    if sign == "\n":
        return '<i aria-hidden="true">⏎</i><br>'
    if sign in _SPACES:
        return f'<i aria-hidden="true">{_SPACES[sign]}</i><wbr>'
    return html.escape(sign)


def _readable(token: str) -> str:
    if token == "\n":
        return "new line"
    return "space" if token.isspace() else token.strip()


def _scale(weights: np.ndarray, signed: bool) -> str:
    """What the colours mean: a strip between its two ends."""
    finite = weights[np.isfinite(weights)]
    top = float(np.abs(finite).max(initial=0.0))
    low, name = (-top, SIGNED_MAP) if signed else (0.0, POSITIVE_MAP)
    stops = ",".join(mpl.colors.to_hex(colour) for colour in mpl.colormaps[name](np.linspace(0, 1, 9)))
    return (
        f'<div class="idviz-scale" aria-hidden="true">{number(low)}'
        f'<b style="background:linear-gradient(to right,{stops})"></b>{number(top)}</div>'
    )


def _style(look: Look) -> str:
    """Rules that reach only inside ``.idviz-tokens``; the number appears by CSS alone."""
    return f"""<style>
.idviz-tokens{{font-size:15px;line-height:1.9;max-width:100%;margin-bottom:12px}}
.idviz-tokens .idviz-label{{font-weight:600;line-height:1.4}}
.idviz-tokens .idviz-box{{position:relative}}
.idviz-tokens .idviz-hint{{font-size:13px;line-height:24px;opacity:.75}}
.idviz-tokens .idviz-text{{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;\
overflow-wrap:anywhere;max-height:22em;overflow-y:auto;padding:4px}}
.idviz-tokens .idviz-text span{{padding:2px 0;cursor:default;white-space:pre-wrap}}
.idviz-tokens .idviz-text span i{{font-style:normal;opacity:.45}}
.idviz-tokens .idviz-text span.q{{outline:3px solid {QUERY};outline-offset:-1px}}
.idviz-tokens .idviz-text span.u{{opacity:.55}}
.idviz-tokens .idviz-text span:focus{{box-shadow:0 0 0 2px {look.ink}}}
.idviz-tokens .idviz-text span:hover::after,.idviz-tokens .idviz-text span:focus::after{{content:attr(data-w);\
position:absolute;left:0;top:0;z-index:9;padding:0 7px;border-radius:4px;white-space:nowrap;direction:ltr;\
font:13px/24px system-ui,sans-serif;background:{look.ink};color:{look.paper};pointer-events:none}}
.idviz-tokens .idviz-scale{{font-size:13px;display:flex;align-items:center;gap:8px}}
.idviz-tokens .idviz-scale b{{display:inline-block;width:120px;height:10px;border-radius:2px}}
.idviz-tokens details{{margin-top:4px;font-size:14px}}
.idviz-tokens table{{border-collapse:collapse;font-size:13px}}
.idviz-tokens td,.idviz-tokens th{{padding:1px 10px 1px 0;text-align:start;color:inherit}}
.idviz-tokens tbody{{font-variant-numeric:tabular-nums}}
</style>"""
